"""Delete: immediately, after a grace period, or when the last finalizer is removed."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import orjson

from paceline.apimachinery.crd.status import begin_deletion
from paceline.apimachinery.event_manifest import EventSource, event_manifest
from paceline.apimachinery.field_errors import invalid, unsupported
from paceline.apimachinery.meta import Object, is_deleting, uid_of
from paceline.apimachinery.pods import DEFAULT_GRACE_SECONDS, is_terminal
from paceline.apimachinery.timestamps import to_wire
from paceline.apiserver import object_strategy, status_errors
from paceline.apiserver.admission.asked_by import is_noted, is_person
from paceline.apiserver.config import Server
from paceline.apiserver.encoding.negotiation import list_response, render_object
from paceline.apiserver.encoding.request_body import (
    check_object,
    check_type,
    decode_struct,
    read_document,
    read_object,
    read_options,
)
from paceline.apiserver.handlers.list_options import int_param, selection_of
from paceline.apiserver.http_types import Caller, HttpRequest, HttpResponse, success_response
from paceline.apiserver.paths import Target, prefix_for, split_key
from paceline.apiserver.slicing import count_in_slice, in_slices, offload
from paceline.apiserver.status_errors import StatusError
from paceline.model import reasons
from paceline.store.store import Stored

# The source of events about deletions.
COMPONENT = "paceline-apiserver"
# Objects deleted concurrently.
TOGETHER = 50
# The garbage collector removes these: once all dependents are gone, or are orphaned.
_FINALIZER_OF = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
# Longer ones would exceed the range of dates.
_LONGEST_GRACE = 2**31
_NAMESPACE, _POD = ("", "Namespace"), ("", "Pod")
_POLICY, _EVICTION = "policy/v1", "Eviction"
_STRUCT = "meta.v1.DeleteOptions"
_KEPT_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
# Kinds whose deletion returns the object instead of a Status, as in Kubernetes.
_SHOWN = frozenset(
    {"Namespace", "PersistentVolume", "PersistentVolumeClaim", "Pod", "Service", "ServiceAccount", "StorageClass"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteOptions:
    grace_seconds: int | None = None
    policy: str = ""
    uid: str = ""
    revision: str = ""
    dry_run: bool = False
    is_eviction: bool = False
    # The user of the request; None for deletions of the server itself.
    caller: Caller | None = None


Record = Callable[[Object], Awaitable[None]]


class DeleteHandler:
    """Deletes objects; `record` stores the event about a person's deletion, which leaves no other trace."""

    def __init__(self, server: Server, record: Record) -> None:
        self._server = server
        self._record = record

    async def delete(self, request: HttpRequest, target: Target) -> HttpResponse:
        """Delete one object, or mark it for deletion."""
        stored, gone = await self._delete(target, await self._read_options(request))
        if not gone or (target.resource.kind in _SHOWN and target.resource.is_builtin):
            return HttpResponse(body=render_object(request, target.resource, stored, clock=self._server.clock))
        group = target.resource.group
        details = {"name": target.name, **({"group": group} if group else {}), "kind": target.resource.plural}
        details["uid"] = uid_of(object_strategy.read(stored.value))
        return success_response({"details": details})

    async def _read_options(self, request: HttpRequest) -> DeleteOptions:
        options = await offload(self._server.blocking, len(request.body), partial(_delete_options_of, request))
        return replace(options, caller=request.caller)

    async def evict(self, request: HttpRequest, target: Target) -> HttpResponse:
        """Evict a pod; disruption budgets are not supported."""
        eviction = await offload(self._server.blocking, len(request.body), partial(read_object, request, _EVICTION))
        check_type(eviction, _POLICY, _EVICTION)
        metadata = eviction.get("metadata") or {}
        if not isinstance(metadata, dict) or metadata.get("name") != target.name:
            raise status_errors.bad_request(f"metadata.name must be {target.name}, as in the URL")
        dry_run = read_options(request, "CreateOptions").dry_run
        body = orjson.dumps(eviction.get("deleteOptions") or {})
        options = await self._read_options(replace(request, query={}, body=body))
        options = replace(options, dry_run=options.dry_run or dry_run, is_eviction=True)
        await self._delete(replace(target, subresource=""), options)
        return success_response({"code": 201}, code=201)

    async def remove(self, target: Target) -> None:
        """Delete one object, or mark it for deletion, on behalf of the server."""
        await self._delete(target, DeleteOptions())

    async def delete_all(self, request: HttpRequest, target: Target) -> HttpResponse:
        """Delete all selected objects, in batches; the first error ends it."""
        if target.resource.namespaced and not target.namespace:
            raise status_errors.method_not_allowed()
        options, selection = await self._read_options(request), selection_of(request, target)
        revision = self._server.store.revision
        limit = int_param(request, "limit") or sys.maxsize
        stored = self._server.store.list(selection.prefix(target))
        chosen = [
            item
            async for some in in_slices(stored, lambda item: len(item.value))
            for item in some
            if selection.takes(item.key, item.value)
        ]
        touched: list[Stored] = []
        while chosen and (room := limit - len(touched)) > 0:
            # Concurrently, so that they share a commit.
            count = count_in_slice([len(item.value) for item in chosen[:TOGETHER]], min(room, TOGETHER))
            several, chosen = chosen[:count], chosen[count:]
            outcomes = await asyncio.gather(*(self._delete_one(target, item.key, options) for item in several))
            touched += [item for item in outcomes if isinstance(item, Stored)]
            for refused in outcomes:
                if isinstance(refused, StatusError):
                    raise refused
        values = [item.value for item in touched]
        return list_response(target.resource, values, {"resourceVersion": str(revision)})

    async def _delete_one(self, target: Target, key: str, options: DeleteOptions) -> Stored | StatusError | None:
        namespace, name = split_key(key)
        try:
            return (await self._delete(Target(resource=target.resource, namespace=namespace, name=name), options))[0]
        except StatusError as error:
            return None if error.status.code == 404 else error

    async def _delete(self, target: Target, options: DeleteOptions) -> tuple[Stored, bool]:
        """Return the object to respond with, and whether it is gone."""
        if (target.resource.group, target.resource.kind) == _NAMESPACE and target.name in _KEPT_NAMESPACES:
            raise status_errors.forbidden(target.resource, target.name, "this namespace may not be deleted")
        return await self._server.update(target, partial(self._delete_stored, target, options))

    async def _delete_stored(self, target: Target, options: DeleteOptions, stored: Stored) -> tuple[Stored, bool]:
        store, old = self._server.store, object_strategy.read(stored.value)
        old = _disrupted(old, self._server.clock.now()) if options.is_eviction else old
        self._check(target, old, options)
        new = self._marked(target, old, options)
        render = partial(object_strategy.write, new or _ended(target, old, self._server.clock.now()))
        if new is None and options.dry_run:
            return stored, True
        if new is None:
            deleted = await store.delete(target.key, render, expected=stored.revision)
            await self._note(target, old, options)
            return deleted, True
        if options.dry_run:
            return Stored(key=stored.key, value=orjson.dumps(new), revision=0, created=stored.created), False
        if object_strategy.is_same(old, new):
            return stored, False
        marked = await store.replace(target.key, render, expected=stored.revision, urgent=True)
        await self._note(target, old, options)
        return marked, False

    async def _note(self, target: Target, old: Object, options: DeleteOptions) -> None:
        """Record who has deleted an object of ours."""
        if options.caller is None or is_deleting(old) or not is_noted(target.resource) or not is_person(options.caller):
            return
        source = EventSource(component=COMPONENT, now=self._server.clock.now())
        message = f"deleted by {options.caller.name}"
        await self._record(event_manifest(old, reasons.DELETE_REQUESTED, message, source=source))

    def _check(self, target: Target, old: Object, options: DeleteOptions) -> None:
        kind, metadata = target.resource.kind, old["metadata"]
        for field, expected in (("uid", options.uid), ("resourceVersion", options.revision)):
            actual = metadata[field]
            if expected and expected != actual:
                reason = f"the {field} in the precondition is {expected}, that of the object is {actual}"
                raise status_errors.conflict(kind, target.name, reason, group=target.resource.group)

    def _marked(self, target: Target, old: Object, options: DeleteOptions) -> Object | None:
        """Return the object marked for deletion; None if it can be removed at once."""
        now = self._server.clock.now()
        if (target.resource.group, target.resource.kind) == _NAMESPACE:
            return None if self._is_empty(target.name) else _closing(old, now)
        if target.resource.is_builtin and target.resource.kind == "CustomResourceDefinition":
            return old if is_deleting(old) else begin_deletion(old, to_wire(now))
        grace = _grace_of(target, old, options)
        finalizers = list(old["metadata"].get("finalizers") or ())
        # Without an explicit policy, the finalizers in the object decide.
        if options.policy:
            finalizers = [finalizer for finalizer in finalizers if finalizer not in _FINALIZER_OF.values()]
        if options.policy in _FINALIZER_OF:
            finalizers.append(_FINALIZER_OF[options.policy])
        if not grace and not finalizers:
            return None
        return _waiting(old, finalizers, now=now, grace=grace)

    def _is_empty(self, namespace: str) -> bool:
        kinds = (resource for resource in self._server.scheme.resources if resource.namespaced)
        return not any(self._server.store.list(prefix_for(kind, namespace)) for kind in kinds)


def _grace_of(target: Target, old: Object, options: DeleteOptions) -> int:
    """Return the grace period of a pod; 0 if none of its containers runs."""
    if (target.resource.group, target.resource.kind) != _POD:
        return 0
    spec = old.get("spec") or {}
    if not spec.get("nodeName") or is_terminal(old):
        return 0
    seconds = options.grace_seconds
    if seconds is None:
        seconds = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
    return max(int(seconds), 0)


def _waiting(old: Object, finalizers: list[str], *, now: datetime, grace: int) -> Object:
    metadata = dict(old["metadata"])
    # A second deletion can only shorten it.
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
    """Add the DisruptionTarget condition to a pod."""
    status = old.get("status") or {}
    conditions = [condition for condition in status.get("conditions") or () if condition["type"] != "DisruptionTarget"]
    if is_deleting(old):
        return old
    disruption = {"type": "DisruptionTarget", "status": "True", "lastTransitionTime": to_wire(now)}
    disruption |= {"reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}
    return {**old, "status": {**status, "conditions": [*conditions, disruption]}}


def _ended(target: Target, old: Object, now: datetime) -> Object:
    """Return the last state of an object: a pod has a grace period of 0."""
    if (target.resource.group, target.resource.kind) != _POD:
        return old
    metadata = {"deletionTimestamp": to_wire(now), **old["metadata"], "deletionGracePeriodSeconds": 0}
    if not is_deleting(old) and "generation" in metadata:
        metadata["generation"] += 1
    return {**old, "metadata": metadata}


def _closing(old: Object, now: datetime) -> Object:
    metadata = {"deletionTimestamp": to_wire(now), **old["metadata"]}
    return {**old, "metadata": metadata, "status": {**(old.get("status") or {}), "phase": "Terminating"}}


def _delete_options_of(request: HttpRequest) -> DeleteOptions:
    body = _options_of(request)
    if request.body:
        # Like Kubernetes, ignore the query if there is a body.
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
        # A negative grace period means the shortest one.
        grace_seconds=1 if grace is not None and grace < 0 else grace,
        policy=policy,
        uid=str(conditions.get("uid") or ""),
        revision=str(conditions.get("resourceVersion") or ""),
        dry_run=options.dry_run or bool(dry_run),
    )


def _options_of(request: HttpRequest) -> Object:
    if not request.body.strip():
        return {}
    body, _ = read_document(request, "the body (expected: DeleteOptions)")
    if body is None:
        return {}
    check_object(body, "DeleteOptions")
    if (kind := body.get("kind") or "DeleteOptions") != "DeleteOptions":
        raise status_errors.bad_request(f"the body must be DeleteOptions, not {kind}")
    return decode_struct(body, _STRUCT, "DeleteOptions")


def _check_options(policy: str, orphan: Any, dry_run: list[Any]) -> None:
    faults = []
    if policy and orphan is not None:
        hint = "orphanDependents and deletionPropagation cannot be both set"
        faults.append(invalid("propagationPolicy", policy, hint))
    elif policy not in {"", "Background", *_FINALIZER_OF}:
        faults.append(unsupported("propagationPolicy", policy, ("Foreground", "Background", "Orphan", "nil")))
    if dry_run not in ([], ["All"]):
        faults.append(unsupported("dryRun", dry_run, ("All",)))
    if faults:
        raise status_errors.invalid("DeleteOptions", "", faults, group="meta.k8s.io")
