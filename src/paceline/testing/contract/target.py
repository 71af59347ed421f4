"""Whom the promises of a cluster are asked of, and what asking them needs."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import dataclass
from typing import Any

import pytest

from paceline.apimachinery.meta import Object, name_of
from paceline.client.interface import CONFIG_MAPS, Change, Cluster, Collection, Select
from paceline.errors import NotFound, PacelineError
from paceline.kinds.kind_types import GROUP, VERSION

JOBS = Collection(group=GROUP, version=VERSION, plural="genericjobs")

# Far beyond anything a healthy server needs; only a broken one gets here.
DEADLINE_SECONDS = 10.0
LAST = "zz-last"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A cluster that serves the job kinds, and an empty namespace in it."""

    cluster: Cluster
    namespace: str

    def note(self, name: str, **fields: Any) -> Object:
        """Spell a config map; `labels`, `finalizers` and `data` go where they belong."""
        data = fields.pop("data", {})
        meta = {"namespace": self.namespace, "name": name, **fields}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data}

    def job(self, name: str, **spec: Any) -> Object:
        """Spell a small GenericJob."""
        return {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": "GenericJob",
            "metadata": {"namespace": self.namespace, "name": name},
            "spec": {
                "successRules": [{"worker": [0]}],
                "failureRules": [{"worker": [0]}],
                "replicaSpecs": [{"type": "worker", "replicas": 1, "template": {"spec": pod_spec()}}],
                **spec,
            },
        }

    def pod(self, name: str) -> Object:
        """Spell a small pod."""
        meta = {"namespace": self.namespace, "name": name}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod_spec()}

    def select(self, *, labels: str = "", fields: str = "") -> Select:
        """Select in the subject's own namespace."""
        return Select(namespace=self.namespace, labels=labels, fields=fields)

    async def make(self, name: str, **fields: Any) -> Object:
        """Store a config map."""
        return await self.cluster.create(CONFIG_MAPS, self.note(name, **fields))

    async def write(self, name: str, text: str, **meta: Any) -> Object:
        """Change a config map by a merge patch."""
        patch = {"metadata": meta, "data": {"text": text}}
        return await self.cluster.patch(CONFIG_MAPS, (self.namespace, name), patch)

    async def now(self) -> str:
        """Tell the revision of this moment."""
        return (await self.cluster.list(CONFIG_MAPS, self.select())).revision

    async def told_since(self, since: str, select: Select) -> list[tuple[str, str]]:
        """Give every change of config maps after a revision, up to one that is made now."""
        labels = dict([select.labels.split("=")]) if select.labels else {}
        await self.make(LAST, labels=labels)
        changes: list[tuple[str, str]] = []
        async with asyncio.timeout(DEADLINE_SECONDS):
            async with aclosing(self.cluster.watch(CONFIG_MAPS, select, since=since)) as events:
                async for event in events:
                    if name_of(event.object) == LAST:
                        break
                    if event.change is not Change.BOOKMARK:
                        changes.append((event.change.value, name_of(event.object)))
        return changes


Promise = Callable[[Subject], Awaitable[None]]
# Opens a cluster for the length of one promise.
OpenSubject = Callable[[], AbstractAsyncContextManager[Subject]]


def pod_spec() -> Object:
    """Spell what a small pod runs."""
    return {"containers": [{"name": "main", "image": "python:3.11", "command": ["python", "-V"]}]}


async def assert_absent(s: Subject, where: Collection, name: str) -> None:
    """Fail if an object is there."""
    with pytest.raises(NotFound):
        await s.cluster.get(where, s.namespace, name)


async def outcome_of(write: Awaitable[Object]) -> str:
    """Give the reason why a write was refused, or `done`."""
    try:
        await write
    except PacelineError as error:
        return error.reason
    return "done"
