"""Delete: at once, after a grace period, or when the last finalizer is gone."""

import asyncio
import sys
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import orjson

from paceline.apimachinery.builtin.go_json import read_struct
from paceline.apimachinery.crd.status import marked
from paceline.apimachinery.field_errors import FieldFault, Problem, invalid
from paceline.apimachinery.meta import Object, is_deleting, uid_of
from paceline.apimachinery.pods import is_terminal
from paceline.apimachinery.timestamps import to_wire
from paceline.apiserver import object_strategy, status_errors
from paceline.apiserver.config import Server
from paceline.apiserver.encoding.negotiation import render_list, render_object
from paceline.apiserver.encoding.request_body import (
    OFFERED,
    content_type,
    not_a_head,
    read_json,
    read_object,
    read_options,
    read_yaml,
)
from paceline.apiserver.handlers.create_update import MAX_TRIES
from paceline.apiserver.handlers.list_options import int_param
from paceline.apiserver.handlers.selection import selection_of
from paceline.apiserver.http_types import JSON, YAML, HttpRequest, HttpResponse, object_response
from paceline.apiserver.paths import Target, prefix_for, split_key
from paceline.apiserver.slicing import count_in_slice, in_slices, offload
from paceline.errors import BadRequest, Conflict, NotFound
from paceline.store.store import Stored

DEFAULT_GRACE_SECONDS = 30
# How many are deleted at a time when all are meant.
TOGETHER = 50
# Whoever cleans up after owners takes these off: the first once all dependents are gone, the second once they are free.
_FINALIZER_OF = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
# Nobody waits for longer, and calendars end.
_LONGEST_GRACE = 2**31
_POLICY, _EVICTION = "policy/v1", "Eviction"
_STRUCT = "meta.v1.DeleteOptions"
_KEPT_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
# Kinds that are answered with the object itself when they are gone at once, as Kubernetes does.
_SHOWN = frozenset(
    {"Namespace", "PersistentVolume", "PersistentVolumeClaim", "Pod", "Service", "ServiceAccount", "StorageClass"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    """How an object is to be deleted."""

    grace_seconds: int | None = None
    policy: str = ""
    uid: str = ""
    revision: str = ""
    dry_run: bool = False
    is_eviction: bool = False


class DeleteHandler:
    """The verbs that remove objects."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def delete(self, request: HttpRequest, target: Target) -> HttpResponse:
        """Remove one object, or begin to."""
        stored, gone = await self._delete(target, await self._wish(request))
        if not gone or (target.resource.kind in _SHOWN and object_strategy.is_builtin(target.resource)):
            return HttpResponse(body=render_object(request, target.resource, stored, clock=self._server.clock))
        group = target.resource.group
        details = {"name": target.name, **({"group": group} if group else {}), "kind": target.resource.plural}
        details["uid"] = uid_of(object_strategy.read(stored.value))
        done = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return object_response(done)

    async def _wish(self, request: HttpRequest) -> DeleteOptions:
        """Read the options of a deletion; a large body where it keeps nobody waiting."""
        return await offload(self._server.blocking, len(request.body), partial(_wish_of, request))

    async def evict(self, request: HttpRequest, target: Target) -> HttpResponse:
        """Remove a pod because somebody wants its node empty; nothing here says how many must stay."""
        eviction = await offload(self._server.blocking, len(request.body), partial(read_object, request, _EVICTION))
        version, kind = eviction.get("apiVersion") or _POLICY, eviction.get("kind") or _EVICTION
        if (version, kind) != (_POLICY, _EVICTION):
            short = str(version).rpartition("/")[2]
            why = f"converting ({short}.{kind}) to (policy.{_EVICTION}): unknown conversion"
            raise status_errors.bad_request(f'{kind} in version "{short}" cannot be handled as a {_EVICTION}: {why}')
        named = eviction.get("metadata") or {}
        if not isinstance(named, dict) or named.get("name") != target.name:
            raise status_errors.bad_request(f"name in URL does not match name in {_EVICTION} object")
        options = read_options(request, "CreateOptions")
        wish = await self._wish(replace(request, query={}, body=orjson.dumps(eviction.get("deleteOptions") or {})))
        wish = replace(wish, dry_run=wish.dry_run or options.dry_run, is_eviction=True)
        await self._delete(replace(target, subresource=""), wish)
        done = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
        return object_response(done, code=201)

    async def remove(self, target: Target) -> None:
        """Remove one object, or begin to, for the server itself."""
        await self._delete(target, DeleteOptions())

    async def delete_all(self, request: HttpRequest, target: Target) -> HttpResponse:
        """Remove all objects that are meant, some at a time; what refuses to go ends it."""
        if target.resource.namespaced and not target.namespace:
            raise status_errors.method_not_allowed()
        wish, selection = await self._wish(request), selection_of(request, target)
        revision = self._server.store.revision
        limit = int_param(request, "limit") or sys.maxsize
        found = self._server.store.list(selection.prefix(target))
        chosen = [
            each
            async for some in in_slices(found, lambda each: len(each.value))
            for each in some
            if selection.takes(each.key, each.value)
        ]
        touched: list[Stored] = []
        while chosen and (room := limit - len(touched)) > 0:
            # Together, so that one write to the disk is enough for many, and what has to go hears of it at once.
            count = count_in_slice([len(each.value) for each in chosen[:TOGETHER]], min(room, TOGETHER))
            several, chosen = chosen[:count], chosen[count:]
            outcomes = await asyncio.gather(*(self._delete_one(target, each.key, wish) for each in several))
            touched += [each for each in outcomes if isinstance(each, Stored)]
            for refused in outcomes:
                if isinstance(refused, status_errors.StatusError):
                    raise refused
        values = (each.value for each in touched)
        return HttpResponse(body=render_list(target.resource, values, {"resourceVersion": str(revision)}))

    async def _delete_one(
        self, target: Target, key: str, wish: DeleteOptions
    ) -> Stored | status_errors.StatusError | None:
        """Remove one of many; None when someone else was faster, which is what was wanted."""
        namespace, name = split_key(key)
        try:
            return (await self._delete(Target(resource=target.resource, namespace=namespace, name=name), wish))[0]
        except status_errors.StatusError as error:
            return None if error.status.code == 404 else error

    async def _delete(self, target: Target, wish: DeleteOptions) -> tuple[Stored, bool]:
        """Give what is left to show, and whether the object is gone."""
        if _is_namespace(target) and target.name in _KEPT_NAMESPACES:
            raise status_errors.forbidden(target.resource, target.name, "this namespace may not be deleted")
        store = self._server.store
        for left in reversed(range(MAX_TRIES)):
            stored = store.get(target.key)
            if stored is None:
                raise status_errors.not_found(target.resource, target.name)
            old = self._read(stored, wish)
            self._check(target, old, wish)
            new = self._marked(target, old, wish)
            render = partial(object_strategy.write, new or _ended(target, old, self._server.clock.now()))
            try:
                if new is None:
                    return (
                        stored if wish.dry_run else await store.delete(target.key, render, expected=stored.revision)
                    ), True
                if wish.dry_run:
                    shown = Stored(key=stored.key, value=orjson.dumps(new), revision=0, created=stored.created)
                    return shown, False
                if object_strategy.is_same(old, new):
                    return stored, False
                return await store.replace(target.key, render, expected=stored.revision, urgent=True), False
            except NotFound as error:
                raise status_errors.not_found(target.resource, target.name) from error
            except Conflict as error:
                if not left:
                    raise status_errors.object_modified(target.resource, target.name) from error
        raise AssertionError("unreachable: the last try returns or raises")

    def _read(self, stored: Stored, wish: DeleteOptions) -> Object:
        """Give the object as it is, and one that is evicted with the reason why it goes."""
        old = object_strategy.read(stored.value)
        return _disrupted(old, self._server.clock.now()) if wish.is_eviction else old

    def _check(self, target: Target, old: Object, wish: DeleteOptions) -> None:
        kind, there = target.resource.kind, old["metadata"]
        for word, wanted, found, why in (
            ("UID", wish.uid, there["uid"], "deleted and then recreated"),
            ("ResourceVersion", wish.revision, there["resourceVersion"], "modified"),
        ):
            if wanted and wanted != found:
                said = f"the {word} in the precondition ({wanted}) does not match the {word} in record ({found})."
                said = f"{said} The object might have been {why}"
                raise status_errors.conflict(kind, target.name, said, group=target.resource.group)

    def _marked(self, target: Target, old: Object, wish: DeleteOptions) -> Object | None:
        """Give the object as it waits for its end, or None when nothing keeps it."""
        now = self._server.clock.now()
        if _is_namespace(target):
            return None if self._is_empty(target.name) else _closing(old, now)
        if _is_definition(target):
            return old if is_deleting(old) else marked(old, to_wire(now))
        grace = _grace_of(target, old, wish)
        finalizers = list(old["metadata"].get("finalizers") or ())
        # A policy that is said decides; one that is not leaves what the object's author has put there.
        if wish.policy:
            finalizers = [each for each in finalizers if each not in _FINALIZER_OF.values()]
        if wish.policy in _FINALIZER_OF:
            finalizers.append(_FINALIZER_OF[wish.policy])
        if not grace and not finalizers:
            return None
        return _waiting(old, finalizers, now=now, grace=grace)

    def _is_empty(self, namespace: str) -> bool:
        kinds = (resource for resource in self._server.scheme.resources if resource.namespaced)
        return not any(self._server.store.list(prefix_for(kind, namespace)) for kind in kinds)


def _grace_of(target: Target, old: Object, wish: DeleteOptions) -> int:
    """Give the seconds a pod has to end: none when nothing of it runs."""
    if (target.resource.group, target.resource.kind) != ("", "Pod"):
        return 0
    spec = old.get("spec") or {}
    if not spec.get("nodeName") or is_terminal(old):
        return 0
    wanted = wish.grace_seconds
    if wanted is None:
        wanted = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
    return max(int(wanted), 0)


def _waiting(old: Object, finalizers: list[str], *, now: datetime, grace: int) -> Object:
    metadata = dict(old["metadata"])
    # A second wish can only make it shorter.
    is_sooner = grace < int(metadata.get("deletionGracePeriodSeconds") or 0)
    if not is_deleting(old) and "generation" in metadata:
        metadata["generation"] += 1
    if not is_deleting(old) or is_sooner:
        metadata["deletionTimestamp"] = to_wire(now + timedelta(seconds=min(grace, _LONGEST_GRACE)))
        metadata["deletionGracePeriodSeconds"] = grace
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    return {**old, "metadata": metadata}


def _disrupted(old: Object, now: datetime) -> Object:
    """Say on a pod that it goes because somebody wants its node empty."""
    status = old.get("status") or {}
    kept = [each for each in status.get("conditions") or () if each["type"] != "DisruptionTarget"]
    if is_deleting(old):
        return old
    why = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": to_wire(now)}
    why |= {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    return {**old, "status": {**status, "conditions": [*kept, why]}}


def _ended(target: Target, old: Object, now: datetime) -> Object:
    """Give an object as it is last seen: a pod says that it had no time left."""
    if (target.resource.group, target.resource.kind) != ("", "Pod"):
        return old
    metadata = {"deletionTimestamp": to_wire(now), **old["metadata"], "deletionGracePeriodSeconds": 0}
    if not is_deleting(old) and "generation" in metadata:
        metadata["generation"] += 1
    return {**old, "metadata": metadata}


def _closing(old: Object, now: datetime) -> Object:
    metadata = {"deletionTimestamp": to_wire(now), **old["metadata"]}
    return {**old, "metadata": metadata, "status": {**(old.get("status") or {}), "phase": "Terminating"}}


def _is_definition(target: Target) -> bool:
    return target.resource.is_builtin and target.resource.kind == "CustomResourceDefinition"


def _is_namespace(target: Target) -> bool:
    return (target.resource.group, target.resource.kind) == ("", "Namespace")


def _wish_of(request: HttpRequest) -> DeleteOptions:
    body = _options_of(request)
    if request.body:
        # Whoever sends options in a body has said all there, as in Kubernetes.
        request = replace(request, query={})
    options = read_options(request, "DeleteOptions")
    conditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds", int_param(request, "gracePeriodSeconds"))
    policy = body.get("propagationPolicy") or request.query.get("propagationPolicy", "")
    orphan = body.get("orphanDependents")
    if orphan is None and "orphanDependents" in request.query:
        orphan = request.flag("orphanDependents")
    dry_run = body.get("dryRun") or []
    _check_options(policy, orphan, dry_run)
    if not policy and orphan is not None:
        policy = "Orphan" if orphan else "Background"
    return DeleteOptions(
        # Less than nothing means the shortest time there is.
        grace_seconds=1 if grace is not None and grace < 0 else grace,
        policy=policy,
        uid=str(conditions.get("uid") or ""),
        revision=str(conditions.get("resourceVersion") or ""),
        dry_run=options.dry_run or bool(dry_run),
    )


def _options_of(request: HttpRequest) -> Object:
    """Read the options that a body holds, if there is one."""
    if not request.body.strip():
        return {}
    sort = content_type(request) or JSON
    if sort not in {JSON, YAML}:
        raise status_errors.unsupported_media_type(OFFERED)
    what = "couldn't get version/kind; json parse error"
    body = read_yaml(request.body, what, twice=[]) if sort == YAML else read_json(request.body, what)
    if body is None:
        return {}
    if not isinstance(body, dict):
        raise status_errors.bad_request(f"{what}: {not_a_head(body)}")
    if (kind := body.get("kind") or "DeleteOptions") != "DeleteOptions":
        version = body.get("apiVersion")
        why = f'no kind "{kind}" is registered for version "{version}" in scheme "{object_strategy.SCHEME}"'
        raise status_errors.bad_request(why)
    try:
        return read_struct(body, _STRUCT)
    except BadRequest as error:
        raise status_errors.bad_request(str(error)) from error


def _check_options(policy: str, orphan: Any, dry_run: list[Any]) -> None:
    faults = []
    if policy and orphan is not None:
        hint = "orphanDependents and deletionPropagation cannot be both set"
        faults.append(invalid("propagationPolicy", policy, hint))
    elif policy not in {"", "Background", *_FINALIZER_OF}:
        hint = 'supported values: "Foreground", "Background", "Orphan", "nil"'
        faults.append(FieldFault("propagationPolicy", policy, hint, Problem.UNSUPPORTED))
    if dry_run not in ([], ["All"]):
        faults.append(FieldFault("dryRun", dry_run, 'supported values: "All"', Problem.UNSUPPORTED))
    if faults:
        raise status_errors.invalid("DeleteOptions", "", faults, group="meta.k8s.io")
