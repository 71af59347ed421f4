"""Delete: at once, after a grace period, or when the last finalizer is gone."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import orjson

from paceline.api import change, refusal
from paceline.api.body import read_json, read_options
from paceline.api.exchange import Answer, Request, answer
from paceline.api.paths import Target, names_in, prefix_for
from paceline.api.read import number_of
from paceline.api.render import list_of, one_of
from paceline.api.select import selection_of
from paceline.api.server import Server
from paceline.api.write import MAX_TRIES
from paceline.errors import Conflict, Missing
from paceline.objects.faults import FieldFault, Problem, invalid
from paceline.objects.meta import Object, is_deleting, uid_of
from paceline.objects.times import to_wire
from paceline.store.store import Stored

DEFAULT_GRACE_SECONDS = 30
# Whoever cleans up after owners takes these off: the first once all dependents are gone, the second once they are free.
_FINALIZER_OF = {"Foreground": "foregroundDeletion", "Orphan": "orphan"}
_KEPT_NAMESPACES = frozenset({"default", "kube-system", "kube-public"})
# Kinds that are answered with the object itself when they are gone at once, as Kubernetes does.
_SHOWN = frozenset({"Namespace", "PersistentVolume", "PersistentVolumeClaim", "Pod", "Service", "ServiceAccount"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How an object is to be deleted."""

    grace_seconds: int | None = None
    policy: str = ""
    uid: str = ""
    revision: str = ""
    dry_run: bool = False


class Deletes:
    """The verbs that remove objects."""

    def __init__(self, server: Server) -> None:
        self._server = server

    async def delete(self, request: Request, target: Target) -> Answer:
        """Remove one object, or begin to."""
        stored, gone = await self._delete(target, _wish_of(request))
        if not gone or (target.resource.kind in _SHOWN and change.is_builtin(target.resource)):
            return Answer(body=one_of(request, target.resource, stored, clock=self._server.clock))
        group = target.resource.group
        details = {"name": target.name, **({"group": group} if group else {}), "kind": target.resource.plural}
        details["uid"] = uid_of(change.read(stored.value))
        done = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return answer(done)

    async def delete_all(self, request: Request, target: Target) -> Answer:
        """Remove all objects that are meant, one by one."""
        if target.resource.namespaced and not target.namespace:
            raise refusal.not_offered()
        wish, selection = _wish_of(request), selection_of(request, target)
        revision = self._server.store.revision
        touched: list[Stored] = []
        for each in self._server.store.list(selection.prefix(target)):
            if selection.takes(each.key, each.value):
                namespace, name = names_in(each.key)
                one = Target(resource=target.resource, namespace=namespace, name=name)
                try:
                    stored, _ = await self._delete(one, wish)
                except refusal.Refusal as error:
                    if error.status.code != 404:
                        raise
                    # Someone else was faster, which is what was wanted.
                    continue
                touched.append(stored)
        values = (each.value for each in touched)
        return Answer(body=list_of(target.resource, values, {"resourceVersion": str(revision)}))

    async def _delete(self, target: Target, wish: Wish) -> tuple[Stored, bool]:
        """Give what is left to show, and whether the object is gone."""
        store = self._server.store
        for left in reversed(range(MAX_TRIES)):
            stored = store.get(target.key)
            if stored is None:
                raise refusal.not_found(target.resource, target.name)
            old = change.read(stored.value)
            self._check(target, old, wish)
            new = self._marked(target, old, wish)
            render = partial(change.write, new or old)
            try:
                if new is None:
                    return (
                        stored if wish.dry_run else await store.delete(target.key, render, expected=stored.revision)
                    ), True
                if wish.dry_run:
                    shown = Stored(key=stored.key, value=orjson.dumps(new), revision=0, created=stored.created)
                    return shown, False
                if change.is_same(old, new):
                    return stored, False
                return await store.replace(target.key, render, expected=stored.revision), False
            except Missing as error:
                raise refusal.not_found(target.resource, target.name) from error
            except Conflict as error:
                if not left:
                    raise refusal.modified(target.resource, target.name) from error
        raise AssertionError("unreachable: the last try returns or raises")

    def _check(self, target: Target, old: Object, wish: Wish) -> None:
        kind, there = target.resource.kind, old["metadata"]
        for word, wanted, found, why in (
            ("UID", wish.uid, there["uid"], "deleted and then recreated"),
            ("ResourceVersion", wish.revision, there["resourceVersion"], "modified"),
        ):
            if wanted and wanted != found:
                said = f"the {word} in the precondition ({wanted}) does not match the {word} in record ({found})."
                said = f"{said} The object might have been {why}"
                raise refusal.conflict(kind, target.name, said, group=target.resource.group)
        if _is_namespace(target) and target.name in _KEPT_NAMESPACES:
            raise refusal.forbidden(target.resource, target.name, "this namespace may not be deleted")

    def _marked(self, target: Target, old: Object, wish: Wish) -> Object | None:
        """Give the object as it waits for its end, or None when nothing keeps it."""
        now = self._server.clock.now()
        if _is_namespace(target):
            return None if self._is_empty(target.name) else _closing(old, now)
        grace = _grace_of(target, old, wish)
        finalizers = list(old["metadata"].get("finalizers") or ())
        if not is_deleting(old):
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


def _grace_of(target: Target, old: Object, wish: Wish) -> int:
    """Give the seconds a pod has to end: none when nothing of it runs."""
    if (target.resource.group, target.resource.kind) != ("", "Pod"):
        return 0
    spec, status = old.get("spec") or {}, old.get("status") or {}
    if not spec.get("nodeName") or status.get("phase") in {"Succeeded", "Failed"}:
        return 0
    wanted = wish.grace_seconds
    if wanted is None:
        wanted = spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS)
    return max(int(wanted), 0)


def _waiting(old: Object, finalizers: list[str], *, now: datetime, grace: int) -> Object:
    metadata = dict(old["metadata"])
    if is_deleting(old):
        # A second wish can only make it shorter.
        if grace >= int(metadata.get("deletionGracePeriodSeconds") or 0):
            return old
    elif "generation" in metadata:
        metadata["generation"] += 1
    metadata["deletionTimestamp"] = to_wire(now + timedelta(seconds=grace))
    metadata["deletionGracePeriodSeconds"] = grace
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    return {**old, "metadata": metadata}


def _closing(old: Object, now: datetime) -> Object:
    metadata = {"deletionTimestamp": to_wire(now), **old["metadata"]}
    return {**old, "metadata": metadata, "status": {**(old.get("status") or {}), "phase": "Terminating"}}


def _is_namespace(target: Target) -> bool:
    return (target.resource.group, target.resource.kind) == ("", "Namespace")


def _wish_of(request: Request) -> Wish:
    body = read_json(request.body, "error decoding DeleteOptions") if request.body.strip() else {}
    if not isinstance(body, dict):
        raise refusal.bad_request("error decoding DeleteOptions: a JSON object is wanted")
    options = read_options(request, "DeleteOptions")
    conditions = body.get("preconditions") or {}
    grace = body.get("gracePeriodSeconds", number_of(request, "gracePeriodSeconds"))
    policy = body.get("propagationPolicy") or request.query.get("propagationPolicy", "")
    if not policy and body.get("orphanDependents") is True:
        policy = "Orphan"
    _check_options(grace, policy, conditions)
    dry_run = body.get("dryRun")
    return Wish(
        grace_seconds=grace,
        policy=policy,
        uid=str(conditions.get("uid") or ""),
        revision=str(conditions.get("resourceVersion") or ""),
        dry_run=options.dry_run or dry_run == ["All"],
    )


def _check_options(grace: Any, policy: Any, conditions: Any) -> None:
    faults = []
    if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool) or not 0 <= grace < 2**31):
        faults.append(invalid("gracePeriodSeconds", grace, "must be an integer greater than or equal to 0"))
    if policy not in {"", "Background", *_FINALIZER_OF}:
        hint = 'supported values: "Foreground", "Background", "Orphan", "nil"'
        faults.append(FieldFault("propagationPolicy", policy, hint, Problem.UNSUPPORTED))
    if not isinstance(conditions, dict):
        faults.append(invalid("preconditions", conditions, "must have uid or resourceVersion"))
    if faults:
        raise refusal.invalid("DeleteOptions", "", faults, group="meta.k8s.io")
