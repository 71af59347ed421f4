"""Actions on jobs, applications, TensorBoards and notebooks, done as the person: one object, or many at once."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from paceline.apimachinery.meta import Object, name_of, namespace_of, revision_of, uid_of
from paceline.client.interface import Cluster, Collection, Select
from paceline.console.people import person_of
from paceline.console.responses import json_response, read_json, status_of
from paceline.console.runtime import runtime_of
from paceline.errors import AlreadyExists, BadRequest, Conflict, PacelineError
from paceline.kinds import registry
from paceline.kinds.apps import training_app
from paceline.kinds.kind_types import VERSION
from paceline.presentation.actions import Action, ActionPlan, Choices, Write, actions_of, asked_by, plan_action
from paceline.presentation.consequences import preview

MAX_OBJECTS = 500
# Objects of a bulk action that are changed at the same time.
AT_ONCE = 10
# Number of tries when a controller writes the object at the same time.
MAX_TRIES = 5
COPIES = (Action.RERUN, Action.DEBUG)


class Who(Protocol):
    """The person who acts."""

    @property
    def name(self) -> str: ...
    @property
    def client(self) -> Cluster: ...


class ActionRefused(Conflict):
    """The action is not possible now: the page that offered it is out of date."""

    def __init__(self, plan: ActionPlan, subject: str) -> None:
        refusal = plan.refusal
        super().__init__(f"{subject} {refusal.message if refusal else 'cannot be changed now'}")
        self.refusal = refusal


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionTarget:
    """The object of an action, and the state in which the person saw it."""

    kind: str
    namespace: str
    name: str
    # Preconditions; empty for none.
    uid: str = ""
    resource_version: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def where(self) -> Collection:
        """Return the collection of the object."""
        return collection_of(self.kind)

    def to_wire(self) -> Object:
        """Return the identity of the object as JSON."""
        return {"kind": self.kind, "namespace": self.namespace, "name": self.name, "uid": self.uid}


@cache
def collection_of(kind: str) -> Collection:
    """Return the collection of a kind; raise BadRequest if it has no actions."""
    for entry in (*registry.KINDS, *registry.SERVICES, training_app.KIND):
        if entry.kind == kind:
            return Collection(group=entry.group, version=VERSION, plural=entry.plural)
    raise BadRequest(f"kind {kind!r} has no actions")


def ref_in(body: Object) -> ActionTarget:
    """Return the object that a request names; raise BadRequest if it is incomplete."""
    fields = {name: body.get(name) or "" for name in ("kind", "namespace", "name", "uid", "resourceVersion")}
    for field, value in fields.items():
        if not isinstance(value, str):
            raise BadRequest(f"{field} must be a string")
        if not value and field in ("kind", "namespace", "name"):
            raise BadRequest(f"{field} is missing")
    collection_of(fields["kind"])
    return ActionTarget(resource_version=fields.pop("resourceVersion"), **fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Plans and carries out one action as one person."""

    person: Who
    action: str
    choices: Choices

    async def read(self, ref: ActionTarget) -> Object:
        """Return the object; raise Conflict if it is not the one that the person saw."""
        obj = {**await self.person.client.get(ref.where, ref.namespace, ref.name), "kind": ref.kind}
        if ref.uid and uid_of(obj) != ref.uid:
            raise Conflict(f"{ref} was deleted, and another object has its name; reload the page")
        if ref.resource_version and revision_of(obj) != ref.resource_version:
            raise Conflict(f"{ref} has changed since the page showed it; reload the page")
        return obj

    async def plan(self, ref: ActionTarget, obj: Object) -> ActionPlan:
        """Return the plan of the action; a copy gets a name that is free now."""
        choices = self.choices
        if self.action in COPIES and not choices.name and self.action in actions_of(ref.kind):
            page = await self.person.client.list(ref.where, Select(namespace=ref.namespace, only_ties=True))
            choices = replace(choices, taken=frozenset(map(name_of, page.items)))
        return plan_action(self.action, obj, choices)

    async def preview(self, ref: ActionTarget) -> Object:
        """Return whether the action is possible, and what follows from it."""
        return await self.preview_of(ref, await self.read(ref))

    async def preview_of(self, ref: ActionTarget, obj: Object) -> Object:
        """Return the preview for an object that was read before."""
        plan = await self.plan(ref, obj)
        return {**ref.to_wire(), **preview(plan, obj), "resourceVersion": revision_of(obj)}

    async def act(self, ref: ActionTarget) -> Object:
        """Carry the action out and return the object that it wrote; raise Conflict if it is not possible now."""
        if self.action == Action.SCALE and self.choices.replicas is None:
            raise BadRequest("replicas is missing")
        for remaining in reversed(range(MAX_TRIES)):
            obj = await self.read(ref)
            plan = await self.plan(ref, obj)
            if not plan.is_possible:
                raise ActionRefused(plan, str(ref))
            try:
                written = await self._write(ref, asked_by(plan, self.person.name), obj)
            except (Conflict, AlreadyExists) as error:
                # Without the person's own preconditions, look again: a controller writes the status at any time.
                is_final = isinstance(error, AlreadyExists) and bool(self.choices.name)
                if not remaining or ref.resource_version or is_final:
                    raise
                continue
            return {**ref.to_wire(), "action": self.action, "code": 200, "object": _identity(written or obj)}
        raise AssertionError("unreachable: the last try returns or raises")

    async def _write(self, ref: ActionTarget, plan: ActionPlan, obj: Object) -> Object | None:
        client, key = self.person.client, (ref.namespace, ref.name)
        match plan.write:
            case Write.CREATE:
                return await client.create(ref.where, plan.body)
            case Write.PATCH:
                # The plan holds for this state only: the write fails if the object has changed.
                metadata = {**(plan.body.get("metadata") or {}), "resourceVersion": revision_of(obj)}
                return await client.patch(ref.where, key, {**plan.body, "metadata": metadata})
            case Write.DELETE:
                conditions = dict(plan.body["preconditions"])
                if ref.resource_version:
                    conditions["resourceVersion"] = ref.resource_version
                await client.delete(ref.where, key, {**plan.body, "preconditions": conditions})
                return None


def _identity(obj: Object) -> Object:
    return {
        "namespace": namespace_of(obj),
        "name": name_of(obj),
        "uid": uid_of(obj),
        "resourceVersion": revision_of(obj),
    }


def refusal_of(error: PacelineError) -> Object:
    """Return an error as a Status; its details have the code of the reason why an action is not possible."""
    status = status_of(error)
    if isinstance(error, ActionRefused) and error.refusal is not None:
        cause = {"reason": error.refusal.code.value, "message": error.refusal.message, **error.refusal.parameters}
        status["details"] = {"causes": [cause]}
    return status


Work = Callable[[ActionTarget], Awaitable[Object]]


async def in_bulk(refs: tuple[ActionTarget, ...], work: Work) -> list[Object]:
    """Process objects, a few at a time, and return the results in order; the error of one does not stop the others."""
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(ref: ActionTarget) -> Object:
        async with turn:
            try:
                return await work(ref)
            except PacelineError as error:
                return {**ref.to_wire(), "code": error.code, "error": refusal_of(error)}

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(ref)) for ref in refs]
    return [task.result() for task in tasks]


def _refs_in(body: Object) -> tuple[ActionTarget, ...] | None:
    """Return the objects of a bulk request; None if the request names one object."""
    objects = body.get("objects")
    if objects is None:
        return None
    if not isinstance(objects, list) or not all(isinstance(entry, dict) for entry in objects):
        raise BadRequest("objects must be a list of objects with kind, namespace and name")
    if len(objects) > MAX_OBJECTS:
        raise BadRequest(f"an action may have at most {MAX_OBJECTS} objects, not {len(objects)}")
    return tuple(map(ref_in, objects))


def _actor_of(request: Request, body: Object, action: str) -> Actor:
    replicas, name = body.get("replicas"), body.get("newName") or ""
    if replicas is not None and (not isinstance(replicas, int) or isinstance(replicas, bool) or replicas < 1):
        raise BadRequest("replicas must be a positive number")
    if not isinstance(name, str):
        raise BadRequest("newName must be a string")
    choices = Choices(now=runtime_of(request).config.clock.now(), replicas=replicas, name=name)
    return Actor(person=person_of(request), action=action, choices=choices)


async def preview_actions(request: Request) -> Response:
    """Return what an action would do; without an action, whether each action of the object's kind is possible."""
    body = await read_json(request)
    refs = _refs_in(body)
    if refs is not None:
        actor = _actor_of(request, body, str(body.get("action") or ""))
        return json_response({"results": await in_bulk(refs, actor.preview)})
    ref = ref_in(body)
    if body.get("action"):
        return json_response(await _actor_of(request, body, str(body["action"])).preview(ref))
    actors = [_actor_of(request, body, action) for action in actions_of(ref.kind)]
    obj = await actors[0].read(ref)
    return json_response({**ref.to_wire(), "actions": [await actor.preview_of(ref, obj) for actor in actors]})


async def do_actions(request: Request) -> Response:
    """Carry out an action on one object, or on many with a result for each."""
    body = await read_json(request)
    actor = _actor_of(request, body, str(body.get("action") or ""))
    refs = _refs_in(body)
    if refs is not None:
        return json_response({"results": await in_bulk(refs, actor.act)})
    try:
        return json_response(await actor.act(ref_in(body)))
    except ActionRefused as error:
        return json_response(refusal_of(error), error.code)


ROUTES: tuple[BaseRoute, ...] = (
    Route("/api/actions", do_actions, methods=["POST"]),
    Route("/api/actions/preview", preview_actions, methods=["POST"]),
)
