"""The lifecycle of CustomResourceDefinitions: accept names, serve, delete the objects before the definition."""

import asyncio
from functools import partial

from paceline.apimachinery.crd import crd
from paceline.apimachinery.crd.status import finish_deletion, status_of
from paceline.apimachinery.fields.managed_fields import UPDATE, Author
from paceline.apimachinery.meta import Object, is_deleting, name_of
from paceline.apimachinery.scheme import Resource
from paceline.apimachinery.timestamps import to_wire
from paceline.apiserver import object_strategy, status_errors
from paceline.apiserver.config import Server
from paceline.apiserver.crd.registry import PREFIX
from paceline.apiserver.handlers.delete import DeleteHandler
from paceline.apiserver.managed_fields import FieldTracker
from paceline.apiserver.paths import Target, prefix_for, split_key
from paceline.errors import Conflict, NotFound

# Objects that are deleted concurrently, in one commit.
TOGETHER = 64
AUTHOR = Author(name="kube-apiserver", api_version="apiextensions.k8s.io/v1", subresource="status", operation=UPDATE)


class CrdReconciler:
    """Reconciles all stored definitions. It has no task of its own."""

    def __init__(self, server: Server, deletes: DeleteHandler) -> None:
        self._server = server
        self._deletes = deletes
        self._tracking = FieldTracker(server)
        self._has_begun = False

    async def finish_earlier(self) -> None:
        """Finish, once, the work of an earlier process."""
        if not self._has_begun:
            self._has_begun = True
            await self.reconcile_all()

    async def after_write(self, resource: Resource) -> None:
        """Reconcile after a write to a definition, or to an object that blocks the deletion of one."""
        if resource.is_builtin:
            if (resource.group, resource.kind) == (crd.GROUP, crd.KIND):
                await self.reconcile_all()
            return
        definition = self._server.kinds.definition_of(resource)
        if definition is not None and is_deleting(definition):
            await self.reconcile_all()

    async def reconcile_all(self) -> None:
        """Reconcile all definitions, and repeat while that frees names for others."""
        while await self._reconcile_once():
            pass

    async def _reconcile_once(self) -> bool:
        crd_resource, changed = self._server.scheme.find(crd.GROUP, "v1", crd.PLURAL), False
        if crd_resource is None:
            return False
        for definition in self._server.kinds.definitions():
            try:
                changed |= await self._reconcile(definition, crd_resource)
            except (Conflict, NotFound):
                # The other writer reconciles it, too.
                continue
        return changed

    async def _reconcile(self, definition: Object, crd_resource: Resource) -> bool:
        if is_deleting(definition):
            return await self._finalize(definition)
        now = to_wire(self._server.clock.now())
        status = status_of(definition, self._server.kinds.definitions(), now)
        if status == definition.get("status"):
            return False
        new = {**definition, "metadata": dict(definition["metadata"]), "status": status}
        target = Target(resource=crd_resource, name=name_of(definition), subresource="status")
        self._tracking.track_update(definition, new, AUTHOR, target=target)
        await self._store(new)
        return True

    async def _finalize(self, definition: Object) -> bool:
        """Delete the objects of a definition, then release the definition."""
        if crd.CLEANUP not in (definition["metadata"].get("finalizers") or ()):
            return False
        resource = self._resource(definition)
        if resource is not None:
            await self._delete_all(resource)
            if self._server.store.list(prefix_for(resource)):
                return False
        new = finish_deletion(definition, to_wire(self._server.clock.now()))
        if new["metadata"].get("finalizers"):
            await self._store(new)
        else:
            key, revision = _key(definition), int(definition["metadata"]["resourceVersion"])
            await self._server.store.delete(key, partial(object_strategy.write, new), expected=revision)
        return True

    def _resource(self, definition: Object) -> Resource | None:
        group, plural = definition["spec"]["group"], definition["spec"]["names"]["plural"]
        served = self._server.scheme.resources
        return next((resource for resource in served if (resource.group, resource.plural) == (group, plural)), None)

    async def _delete_all(self, resource: Resource) -> None:
        stored = self._server.store.list(prefix_for(resource))
        for start in range(0, len(stored), TOGETHER):
            async with asyncio.TaskGroup() as group:
                for item in stored[start : start + TOGETHER]:
                    namespace, name = split_key(item.key)
                    target = Target(resource=resource, namespace=namespace, name=name)
                    group.create_task(self._delete(target))

    async def _delete(self, target: Target) -> None:
        try:
            await self._deletes.remove(target)
        except status_errors.StatusError as error:
            if error.status.code not in {404, 409}:
                raise

    async def _store(self, definition: Object) -> None:
        revision = int(definition["metadata"]["resourceVersion"])
        render = partial(object_strategy.write, definition)
        await self._server.store.replace(_key(definition), render, expected=revision)


def _key(definition: Object) -> str:
    return f"{PREFIX}-/{name_of(definition)}"
