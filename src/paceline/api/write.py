"""Create, replace, patch: checked, stamped, stored under a guard."""

from collections.abc import Callable
from functools import partial
from typing import Any

import orjson

from paceline.api import change, refusal
from paceline.api.admission import Admission, refuse_unknown
from paceline.api.body import MAX_DEPTH, check_depth, read_json, read_object, read_options
from paceline.api.exchange import Answer, Options, Request
from paceline.api.paths import Target, key_for
from paceline.api.render import one_of
from paceline.api.server import Server
from paceline.errors import Conflict, Exists, Malformed, Missing
from paceline.objects.faults import FieldFault
from paceline.objects.meta import Object, is_deleting, name_of
from paceline.objects.patch import Unfit, apply_operations, merge
from paceline.objects.scheme import Resource
from paceline.objects.strategic import Strategic
from paceline.store.store import Stored

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"

# A change that another write overtook is made again on the new state; a guarded one is refused by its guard.
MAX_TRIES = 8
_MAX_PATCH_SHOWN = 300

# Gives the object as its author wants it, from what is there.
Edit = Callable[[Object], Object]


class Writes:
    """The verbs that change objects."""

    def __init__(self, server: Server, admission: Admission) -> None:
        self._server = server
        self._admission = admission
        self._strategic = Strategic(server.scheme.components)

    async def create(self, request: Request, target: Target) -> Answer:
        """Store a new object."""
        resource = target.resource
        if resource.namespaced and not target.namespace:
            raise refusal.not_offered()
        options = read_options(request, "CreateOptions")
        obj = read_object(request, resource.kind)
        change.identify(obj, target)
        said = self._cleaned(obj, target, body=request.body, validation=options.validation)
        self._check_namespace(target, name_of(obj))
        stored = await self._create(obj, target, options=options)
        return Answer(code=201, body=self._shown(request, target, stored), warnings=said)

    async def _create(self, obj: Object, target: Target, *, options: Options) -> Stored:
        resource, chosen = target.resource, bool(obj["metadata"].get("name"))
        for left in reversed(range(1 if chosen else MAX_TRIES)):
            new = change.newborn(obj, resource, now=self._server.clock.now(), ids=self._server.ids)
            resource.default(new)
            self._admission.check(resource, new)
            change.check_size(new)
            key = key_for(resource, target.namespace, name_of(new))
            try:
                return await self._store_new(key, new, options)
            except Exists as error:
                if not left:
                    raise refusal.already_exists(resource, name_of(new)) from error
        raise AssertionError("unreachable: the last try returns or raises")

    async def _store_new(self, key: str, new: Object, options: Options) -> Stored:
        if not options.dry_run:
            return await self._server.store.create(key, partial(change.write, new))
        if self._server.store.get(key) is not None:
            raise Exists(key)
        return Stored(key=key, value=orjson.dumps(new), revision=0, created=0)

    async def replace(self, request: Request, target: Target) -> Answer:
        """Store a whole object in place of another."""
        options = read_options(request, "UpdateOptions")
        obj = read_object(request, target.resource.kind)
        change.identify(obj, target, name=target.name)
        said = self._cleaned(obj, target, body=request.body, validation=options.validation)
        revision = obj["metadata"].get("resourceVersion")
        if not revision and not change.is_builtin(target.resource):
            fault = FieldFault("metadata.resourceVersion", 0, "must be specified for an update")
            raise refusal.invalid(target.resource.plural, target.name, (fault,), group=target.resource.group)

        def edit(old: Object) -> Object:
            self._check_guard(obj, old, target)
            return obj

        stored = await self.change(target, edit, options=options)
        return Answer(body=self._shown(request, target, stored), warnings=said)

    async def patch(self, request: Request, target: Target) -> Answer:
        """Change parts of an object."""
        options = read_options(request, "PatchOptions")
        apply = self._patch_of(request, target.resource)
        said: tuple[str, ...] = ()

        def edit(old: Object) -> Object:
            nonlocal said
            new = apply(old)
            if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
                raise refusal.bad_request("error decoding patch: the result is not an object with metadata")
            check_depth(new, MAX_DEPTH + 1, "error decoding patch")
            # Parts are shared with what is there; cleaning works in place.
            new = change.read(orjson.dumps(new))
            uid = new["metadata"].get("uid")
            if uid != old["metadata"].get("uid"):
                fault = FieldFault("metadata.uid", uid, "field is immutable")
                raise refusal.invalid(target.resource.kind, target.name, (fault,), group=target.resource.group)
            change.identify(new, target, name=target.name)
            said = self._admission.clean(target.resource, new)
            if said and options.validation == "Strict":
                self._refuse_patch(request, target, said)
            self._check_guard(new, old, target)
            return new

        stored = await self.change(target, edit, options=options)
        warnings = said if options.validation == "Warn" else ()
        return Answer(body=self._shown(request, target, stored), warnings=warnings)

    async def change(self, target: Target, edit: Edit, *, options: Options) -> Stored:
        """Edit the object that is there and store what becomes of it; again if another write came between."""
        for left in reversed(range(MAX_TRIES)):
            stored = self.find(target)
            old = change.read(stored.value)
            new = change.successor(old, edit(old), target)
            if target.subresource in {"", "finalize"}:
                target.resource.default(new)
                self._admission.check(target.resource, new, old)
            else:
                self._admission.check_status(target.resource, new)
            if change.is_same(old, new):
                return stored
            change.check_size(new)
            if options.dry_run:
                return Stored(key=stored.key, value=orjson.dumps(new), revision=0, created=stored.created)
            try:
                return await self._store(new, stored)
            except Conflict as error:
                if not left:
                    raise refusal.modified(target.resource, target.name) from error
            except Missing as error:
                raise refusal.not_found(target.resource, target.name) from error
        raise AssertionError("unreachable: the last try returns or raises")

    def find(self, target: Target) -> Stored:
        """Give the object that a target names, or refuse."""
        stored = self._server.store.get(target.key)
        if stored is None:
            raise refusal.not_found(target.resource, target.name)
        return stored

    def _shown(self, request: Request, target: Target, stored: Stored) -> bytes:
        return one_of(request, target.resource, stored, clock=self._server.clock)

    async def _store(self, new: Object, stored: Stored) -> Stored:
        render = partial(change.write, new)
        if is_deleting(new) and _is_released(new):
            return await self._server.store.delete(stored.key, render, expected=stored.revision)
        return await self._server.store.replace(stored.key, render, expected=stored.revision)

    def _cleaned(self, obj: Object, target: Target, *, body: bytes, validation: str) -> tuple[str, ...]:
        said = self._admission.clean(target.resource, obj, body=body)
        if said and validation == "Strict":
            refuse_unknown(target.resource, said)
        return said if validation == "Warn" else ()

    def _check_guard(self, new: Object, old: Object, target: Target) -> None:
        said, there = new["metadata"], old["metadata"]
        revision = said.get("resourceVersion")
        if revision and revision != there["resourceVersion"]:
            raise refusal.modified(target.resource, target.name)
        uid = said.get("uid")
        if uid and uid != there["uid"]:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {there['uid']}"
            raise refusal.conflict(target.resource.plural, target.name, why, group=target.resource.group)

    def _check_namespace(self, target: Target, name: str) -> None:
        """Refuse to put something into a namespace that is not there or on its way out."""
        if not target.namespace:
            return
        namespaces = self._server.scheme.find("", "v1", "namespaces")
        if namespaces is None:
            return
        stored = self._server.store.get(key_for(namespaces, "", target.namespace))
        if stored is None:
            raise refusal.not_found(namespaces, target.namespace)
        if b'"deletionTimestamp"' in stored.value and is_deleting(change.read(stored.value)):
            why = f"unable to create new content in namespace {target.namespace} because it is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {target.namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise refusal.forbidden(target.resource, name, why, causes=(cause,))

    def _patch_of(self, request: Request, resource: Resource) -> Callable[[Object], Any]:
        sort = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        # Only the schemas of Kubernetes' own kinds say how their lists are merged.
        offered = (JSON_PATCH, MERGE, STRATEGIC) if change.is_builtin(resource) else (JSON_PATCH, MERGE)
        if sort not in offered:
            raise refusal.unreadable(", ".join(offered))
        patch = read_json(request.body, "error decoding patch")
        if sort == JSON_PATCH:
            return partial(_fitted, lambda old: apply_operations(old, patch))
        if not isinstance(patch, dict):
            raise refusal.bad_request("error decoding patch: a JSON object is wanted")
        if sort == MERGE:
            return lambda old: merge(old, patch)
        return partial(_fitted, lambda old: self._strategic.apply(old, patch, resource.schema))

    def _refuse_patch(self, request: Request, target: Target, said: tuple[str, ...]) -> None:
        shown = request.body[:_MAX_PATCH_SHOWN].decode(errors="replace")
        fault = FieldFault("patch", shown, f"strict decoding error: {', '.join(said)}")
        raise refusal.invalid(target.resource.kind, target.name, (fault,), group=target.resource.group)


def _is_released(obj: Object) -> bool:
    """Tell whether nothing holds a deleted object back any more."""
    metadata = obj["metadata"]
    held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    kept = obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers")
    return not held and not kept


def _fitted(apply: Callable[[Object], Any], old: Object) -> Any:
    try:
        return apply(old)
    except Unfit as error:
        status = refusal.Status(code=422, reason="Invalid", message=str(error), details={})
        raise refusal.Refusal(status) from error
    except Malformed as error:
        raise refusal.bad_request(str(error)) from error
