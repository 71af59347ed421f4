"""Create, replace, patch: checked, stamped, stored under a guard."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import orjson

from paceline.apimachinery.builtin.go_json import read_struct
from paceline.apimachinery.field_errors import FieldFault
from paceline.apimachinery.fields.apply import AppliedConfig
from paceline.apimachinery.fields.managed_fields import Author
from paceline.apimachinery.meta import Object, is_deleting, name_of
from paceline.apimachinery.scheme import Resource
from paceline.apiserver import object_strategy as change
from paceline.apiserver import status_errors
from paceline.apiserver.admission.chain import Admission, reject_unknown_fields
from paceline.apiserver.admission.plugins import mount_token
from paceline.apiserver.config import Server
from paceline.apiserver.encoding.negotiation import render_object, representation_of
from paceline.apiserver.encoding.request_body import (
    MAX_DEPTH,
    check_depth,
    content_type,
    go_name,
    is_apply,
    not_a_map,
    read_options,
    read_with_warnings,
)
from paceline.apiserver.handlers.patch import JSON_PATCH, MERGE, ApplyHandler, Patch, check_patch_type, read_patch
from paceline.apiserver.http_types import YAML, HttpRequest, HttpResponse, WriteOptions, attach_warnings
from paceline.apiserver.managed_fields import FieldTracker, author_of
from paceline.apiserver.object_strategy import in_version
from paceline.apiserver.paths import Target, key_for
from paceline.apiserver.slicing import offload
from paceline.errors import AlreadyExists, BadRequest, Conflict, NotFound
from paceline.store.store import Stored

__all__ = ["JSON_PATCH", "MAX_TRIES", "MERGE", "WriteHandler"]

# A change that another write overtook is made again on the new state; a guarded one is refused by its guard.
MAX_TRIES = 8
# Services are worked on while everybody else waits. More than the annotations of any object take.
MAX_SERVICE_BYTES = 320 * 1024
# The status of these is completed too: of a node, what is not kept back is for pods; of a service, how it is reached.
_COMPLETED = frozenset({("", "Node"), ("", "Service")})
_META = "meta.v1.ObjectMeta"
# Kinds that come into being when they are updated; all others must be there.
_MADE_BY_UPDATE = frozenset({"Endpoints", "Event", "Lease"})
# Where Kubernetes keeps what it does not keep under its own name.
_PLACES = {"endpoints": "services/endpoints", "nodes": "minions", "services": "services/specs"}

T = TypeVar("T")

# Gives the object as its author wants it, from what is there.
Edit = Callable[[Object], Object]


class WriteHandler:
    """The verbs that change objects."""

    def __init__(self, server: Server, admission: Admission) -> None:
        self._server = server
        self._admission = admission
        self._tracking = FieldTracker(server)
        self._applies = ApplyHandler(self._tracking)

    async def create(self, request: HttpRequest, target: Target) -> HttpResponse:
        """Store a new object."""
        resource = target.resource
        if resource.namespaced and not target.namespace:
            raise status_errors.method_not_allowed()
        representation_of(request)
        options = read_options(request, "CreateOptions")
        obj, entries, said = await self._aside(request, target, partial(self._read, request, target, options))
        with attach_warnings(said):
            change.set_type_and_namespace(obj, target)
            self._check_namespace(target, name_of(obj))
            change.restore_managed_fields(obj, entries)
            author = author_of(request, target)
            stored = await self._create(obj, target, options=options, author=author, size=len(request.body))
        return HttpResponse(code=201, body=self._shown(request, target, stored), warnings=said)

    async def _aside(self, request: HttpRequest | int, target: Target, call: Callable[[], T]) -> T:
        """Do work that grows with a request where it keeps nobody waiting.

        Services are read elsewhere too, but worked on here: what they are given of what all share is given out one by
        one.
        """
        if target.resource.kind == "Service":
            if isinstance(request, int):
                return call()
            if len(request.body) > MAX_SERVICE_BYTES:
                why = f"a Service may be written with {MAX_SERVICE_BYTES} bytes, not {len(request.body)}"
                raise status_errors.too_large(f"Request entity too large: {why}")
        return await offload(self._server.blocking, request if isinstance(request, int) else len(request.body), call)

    def _read(self, request: HttpRequest, target: Target, options: WriteOptions) -> tuple[Object, Any, tuple[str, ...]]:
        """Read an object, apart from it whose its fields are, and what has to be said about it."""
        resource = target.resource
        whole, twice = read_with_warnings(request, resource.kind, needs_kind=not resource.is_builtin)
        self._check_kind(whole, resource)
        if wrong := _metadata_fault(whole, resource):
            raise status_errors.bad_request(f"{_cannot(resource)}: {wrong}")
        obj, entries = change.split_managed_fields(whole)
        said = (*twice, *self._admission.clean(resource, obj))
        obj.setdefault("metadata", {})
        if said and options.validation == "Strict":
            if twice and content_type(request) == YAML:
                listed = "\n  ".join(twice)
                said = (f"yaml: unmarshal errors:\n  {listed}", *said[len(twice) :])
            reject_unknown_fields(resource, said)
        more = change.dedup_owner_refs(obj["metadata"])
        return obj, entries, (*(said if options.validation == "Warn" else ()), *more)

    def _check_kind(self, obj: Object, resource: Resource) -> None:
        version, kind = obj.get("apiVersion") or "", obj.get("kind") or ""
        if resource.is_builtin:
            if why := change.wrong_type_reason(obj, resource, self._server.scheme):
                short = (version or resource.version).rpartition("/")[2]
                start = f'{kind or resource.kind} in version "{short}" cannot be handled as a {resource.kind}'
                raise status_errors.bad_request(f"{start}: {why}")
            return
        if version != resource.api_version:
            wanted = f"does not match the expected API version ({resource.api_version})"
            raise status_errors.bad_request(f"the API version in the data ({version}) {wanted}")
        if kind != resource.kind:
            fault = FieldFault("kind", kind, f"must be {resource.kind}")
            raise status_errors.invalid(kind, name_of(obj), (fault,), group=resource.group)

    def _newborn(self, obj: Object, target: Target, options: WriteOptions, author: Author | None) -> Object:
        """Return a new object as it is stored, checked and complete."""
        resource = target.resource
        new = change.prepare_for_create(obj, resource, now=self._server.clock.now(), ids=self._server.ids)
        new, entries = change.split_managed_fields(new)
        unset = self._tracking.unset_paths(new, resource)
        resource.default(new)
        self._admission.check(resource, new, dry_run=options.dry_run)
        change.restore_managed_fields(new, entries)
        if author is not None:
            self._tracking.track_create(new, target, author, unset=unset)
        mount_token(new, resource, self._server)
        change.check_size(new)
        return new

    async def _create(
        self, obj: Object, target: Target, *, options: WriteOptions, author: Author | None, size: int
    ) -> Stored:
        resource, chosen = target.resource, bool(obj["metadata"].get("name"))
        for left in reversed(range(1 if chosen else MAX_TRIES)):
            new = await self._aside(size, target, partial(self._newborn, obj, target, options, author))
            key = key_for(resource, target.namespace, name_of(new))
            try:
                return await self._store_new(key, new, options)
            except AlreadyExists as error:
                if not left:
                    raise status_errors.already_exists(resource, name_of(new)) from error
        raise AssertionError("unreachable: the last try returns or raises")

    async def _store_new(self, key: str, new: Object, options: WriteOptions) -> Stored:
        if not options.dry_run:
            return await self._server.store.create(key, partial(change.write, new))
        if self._server.store.get(key) is not None:
            raise AlreadyExists(key)
        return Stored(key=key, value=orjson.dumps(new), revision=0, created=0)

    async def replace(self, request: HttpRequest, target: Target) -> HttpResponse:
        """Store a whole object in place of another."""
        representation_of(request)
        options = read_options(request, "UpdateOptions")
        obj, entries, said = await self._aside(request, target, partial(self._read, request, target, options))
        change.set_type_and_namespace(obj, target, name=target.name)
        revision = obj["metadata"].get("resourceVersion")
        if not revision and target.resource.kind in _MADE_BY_UPDATE and self._server.store.get(target.key) is None:
            return await self.create(request, replace(target, name=""))
        if not revision and not target.resource.is_builtin:
            self.find(target)
            fault = FieldFault("metadata.resourceVersion", 0, "must be specified for an update")
            raise status_errors.invalid(target.resource.plural, target.name, (fault,), group=target.resource.group)
        change.restore_managed_fields(obj, entries)

        def edit(old: Object) -> Object:
            self._check_guard(obj, old, target)
            return obj

        with attach_warnings(said):
            author = author_of(request, target)
            stored = await self.change(target, edit, options=options, author=author, size=len(request.body))
        return HttpResponse(body=self._shown(request, target, stored), warnings=said)

    async def patch(self, request: HttpRequest, target: Target) -> HttpResponse:
        """Change parts of an object."""
        representation_of(request)
        check_patch_type(request, target.resource)
        options = read_options(request, "PatchOptions")
        if is_apply(request):
            return await self._apply(request, target, options)
        reading = partial(read_patch, request, target.resource, self._server.scheme.components)
        patch = await self._aside(request, target, reading)
        told: list[str] = []

        def edit(old: Object) -> Object:
            new, told[:] = self._patched(patch, old, target, options=options)
            return new

        with attach_warnings(told):
            author = author_of(request, target)
            stored = await self.change(target, edit, options=options, author=author, size=len(request.body))
        return HttpResponse(body=self._shown(request, target, stored), warnings=tuple(told))

    def _patched(
        self, patch: Patch, old: Object, target: Target, *, options: WriteOptions
    ) -> tuple[Object, tuple[str, ...]]:
        resource, whole = target.resource, patch.apply(old)
        check_depth(whole, MAX_DEPTH + 1, "error decoding patch")
        if why := self._unfit(whole, resource):
            raise status_errors.invalid_patch(patch.shown(whole), why)
        new, entries = change.split_managed_fields(whole)
        if target.subresource == "status" and resource.is_builtin:
            # This door changes the status and metadata alone: of the rest, only what the patch touches is looked at.
            new = {part: value for part, value in new.items() if part == "status" or value is not old.get(part)}
        # Parts are shared with what is there; cleaning works in place.
        new = change.read(orjson.dumps(new))
        try:
            said = (*patch.twice, *self._admission.clean(resource, new))
        except status_errors.StatusError as error:
            why = error.status.message.removeprefix(f"{_cannot(resource)}: ")
            raise status_errors.invalid_patch(patch.shown(whole), why) from error
        if said and options.validation == "Strict":
            raise status_errors.invalid_patch(patch.shown(whole), f"strict decoding error: {', '.join(said)}")
        new.setdefault("metadata", {})
        change.set_type_and_namespace(new, target, name=target.name)
        self._check_uid(new, old, target)
        self._check_guard(new, old, target)
        more = change.dedup_owner_refs(new["metadata"])
        change.restore_managed_fields(new, entries)
        return new, (*(said if options.validation == "Warn" else ()), *more)

    def _unfit(self, new: Any, resource: Resource) -> str:
        """Say why what comes of a patch is not an object of its kind, or ""."""
        if not isinstance(new, dict):
            return not_a_map(new)
        if resource.is_builtin:
            why = change.wrong_type_reason(new, resource, self._server.scheme)
        elif not new.get("kind"):
            why = f"Object 'Kind' is missing in '{orjson.dumps(new).decode()}'"
        else:
            self._check_head(new, resource)
            why = ""
        return why or _metadata_fault(new, resource)

    def _check_head(self, new: Object, resource: Resource) -> None:
        for field, wanted in (("apiVersion", resource.api_version), ("kind", resource.kind)):
            if new.get(field) != wanted:
                fault = FieldFault(field, new.get(field), f"must be {wanted}")
                kind = str(new.get("kind"))
                group = str(new.get("apiVersion") or "").rpartition("/")[0]
                raise status_errors.invalid(kind, name_of(new), (fault,), group=group)

    async def _apply(self, request: HttpRequest, target: Target, options: WriteOptions) -> HttpResponse:
        """Make true what somebody says about an object, which may have to be made for it."""
        said, warnings = await self._aside(request, target, partial(self._applies.read, request, target, options))
        with attach_warnings(warnings):
            code, stored = await self._make_true(said, target, options, size=len(request.body))
        return HttpResponse(code=code, body=self._shown(request, target, stored), warnings=warnings)

    async def _make_true(
        self, said: AppliedConfig, target: Target, options: WriteOptions, *, size: int
    ) -> tuple[int, Stored]:
        for left in reversed(range(MAX_TRIES)):
            try:
                if self._server.store.get(target.key) is None and not target.subresource:
                    return 201, await self._born_by(said, target, options, size=size)
                edit = partial(self._applied, said, target)
                return 200, await self.change(target, edit, options=options, size=size)
            except status_errors.StatusError as error:
                # It came or went in between: what is said holds for either.
                came = error.status.reason == "AlreadyExists"
                if not left or not came:
                    raise
        raise AssertionError("unreachable: the last try returns or raises")

    async def _born_by(self, said: AppliedConfig, target: Target, options: WriteOptions, *, size: int) -> Stored:
        def made() -> Object:
            obj = self._applies.newborn(said, target)
            change.set_type_and_namespace(obj, target, name=target.name)
            self._admission.clean(target.resource, obj)
            return obj

        obj = await self._aside(size, target, made)
        self._check_namespace(target, target.name)
        return await self._create(obj, target, options=options, author=None, size=size)

    def _applied(self, said: AppliedConfig, target: Target, old: Object) -> Object:
        new = self._applies.onto(old, said, target)
        self._check_uid(new, old, target)
        new, entries = change.split_managed_fields(new)
        change.set_type_and_namespace(new, target, name=target.name)
        self._admission.clean(target.resource, new)
        self._check_guard(new, old, target)
        change.restore_managed_fields(new, entries)
        return new

    def _check_end(self, new: Object, old: Object, target: Target) -> None:
        """Refuse an update that says of itself when the object ends: only a deletion says that."""
        for field in ("deletionTimestamp", "deletionGracePeriodSeconds"):
            said = new["metadata"].get(field)
            if said is not None and said != old["metadata"].get(field):
                fault = FieldFault(f"metadata.{field}", said, "field is immutable")
                raise status_errors.invalid(
                    target.resource.kind, target.name, (fault, fault), group=target.resource.group
                )

    def _check_uid(self, new: Object, old: Object, target: Target) -> None:
        uid = new["metadata"].get("uid")
        if uid != old["metadata"].get("uid"):
            fault = FieldFault("metadata.uid", uid, "field is immutable")
            # Kubernetes checks it twice, and says so.
            raise status_errors.invalid(target.resource.kind, target.name, (fault, fault), group=target.resource.group)

    async def change(
        self,
        target: Target,
        edit: Edit,
        *,
        options: WriteOptions,
        author: Author | None = None,
        size: int = 0,
    ) -> Stored:
        """Edit the object that is there and store what becomes of it; again if another write came between.

        Without an author, whose the parts are is as the edit says. `size` is that of the request.
        """
        for left in reversed(range(MAX_TRIES)):
            stored = self.find(target)
            work = partial(self._changed, stored, target, edit, options=options, author=author)
            new = await self._aside(max(size, len(stored.value)), target, work)
            if new is None:
                return stored
            if options.dry_run:
                value = change.write(new, stored.revision)
                return Stored(key=stored.key, value=value, revision=0, created=stored.created)
            try:
                return await self._store(new, stored)
            except Conflict as error:
                if not left:
                    raise status_errors.object_modified(target.resource, target.name) from error
            except NotFound as error:
                raise status_errors.not_found(target.resource, target.name) from error
        raise AssertionError("unreachable: the last try returns or raises")

    def _changed(
        self, stored: Stored, target: Target, edit: Edit, *, options: WriteOptions, author: Author | None
    ) -> Object | None:
        """Return what an edit makes of an object, checked and complete; None where nothing changes."""
        old = change.read(in_version(target.resource, stored.value))
        said = edit(old)
        new, entries = change.split_managed_fields(change.prepare_for_update(old, said, target))
        if target.subresource in {"", "finalize"}:
            target.resource.default(new)
            self._admission.check(target.resource, new, old, dry_run=options.dry_run)
        else:
            if (target.resource.group, target.resource.kind) in _COMPLETED:
                target.resource.default(new)
            self._admission.check_status(target.resource, new)
        change.restore_managed_fields(new, entries)
        if author is not None:
            self._tracking.track_update(old, new, author, target=target, sent=said)
        if change.is_same(old, new):
            return None
        change.check_size(new)
        return new

    def find(self, target: Target) -> Stored:
        """Give the object that a target names, or refuse."""
        stored = self._server.store.get(target.key)
        if stored is None:
            raise status_errors.not_found(target.resource, target.name)
        return stored

    def _shown(self, request: HttpRequest, target: Target, stored: Stored) -> bytes:
        return render_object(request, target.resource, stored, clock=self._server.clock)

    async def _store(self, new: Object, stored: Stored) -> Stored:
        render = partial(change.write, new)
        if is_deleting(new) and _is_released(new):
            return await self._server.store.delete(stored.key, render, expected=stored.revision)
        return await self._server.store.replace(stored.key, render, expected=stored.revision, urgent=is_deleting(new))

    def _check_guard(self, new: Object, old: Object, target: Target) -> None:
        said, there = new["metadata"], old["metadata"]
        self._check_end(new, old, target)
        revision = said.get("resourceVersion")
        # Nothing, and 0, ask for whatever is there.
        if revision and revision not in {"0", there["resourceVersion"]}:
            raise status_errors.object_modified(target.resource, target.name)
        uid = said.get("uid")
        if uid and uid != there["uid"]:
            why = f"Precondition failed: UID in precondition: {uid}, UID in object meta: {there['uid']}"
            start = f"StorageError: invalid object, Code: 4, Key: {_registry_key(target)}, ResourceVersion: 0"
            why = f"{start}, AdditionalErrorMsg: {why}"
            raise status_errors.conflict(target.resource.plural, target.name, why, group=target.resource.group)

    def _check_namespace(self, target: Target, name: str) -> None:
        """Refuse to put something into a namespace that is not there or on its way out."""
        if not target.namespace:
            return
        namespaces = self._server.scheme.find("", "v1", "namespaces")
        if namespaces is None:
            return
        stored = self._server.store.get(key_for(namespaces, "", target.namespace))
        if stored is None:
            raise status_errors.not_found(namespaces, target.namespace)
        if b'"deletionTimestamp"' in stored.value and is_deleting(change.read(stored.value)):
            why = f"unable to create new content in namespace {target.namespace} because it is being terminated"
            cause = {
                "reason": "NamespaceTerminating",
                "message": f"namespace {target.namespace} is being terminated",
                "field": "metadata.namespace",
            }
            raise status_errors.forbidden(target.resource, name, why, causes=(cause,))


def _is_released(obj: Object) -> bool:
    """Tell whether nothing holds a deleted object back any more."""
    metadata = obj["metadata"]
    held = metadata.get("finalizers") or metadata.get("deletionGracePeriodSeconds")
    kept = obj.get("kind") == "Namespace" and (obj.get("spec") or {}).get("finalizers")
    return not held and not kept


def _cannot(resource: Resource) -> str:
    return f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'


def _metadata_fault(obj: Object, resource: Resource) -> str:
    """Say what is wrong with metadata that is no object, or ""."""
    metadata = obj.get("metadata")
    if isinstance(metadata, dict) and not resource.is_builtin:
        try:
            read_struct(change.split_managed_fields(obj)[0]["metadata"], _META)
        except BadRequest as error:
            return str(error)
    if metadata is None or isinstance(metadata, dict):
        return ""
    where = f"struct field {resource.kind}.metadata" if resource.is_builtin else "value"
    return f"json: cannot unmarshal {go_name(metadata)} into Go {where} of type v1.ObjectMeta"


def _registry_key(target: Target) -> str:
    """Name the key under which Kubernetes keeps an object."""
    resource = target.resource
    place = (
        _PLACES.get(resource.plural, resource.plural) if resource.is_builtin else f"{resource.group}/{resource.plural}"
    )
    return "/".join(part for part in ("/registry", place, target.namespace, target.name) if part)
