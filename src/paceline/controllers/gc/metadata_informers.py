"""Follow the metadata of every kind that a cluster serves, as kinds come and go."""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from paceline.apimachinery.meta import Object, name_of
from paceline.client.informer import Handler, Informer
from paceline.client.interface import CRDS, Change, Cluster, Collection, Select
from paceline.client.workqueue import RETRY
from paceline.effects import Random
from paceline.errors import HostError, NotFound, PacelineError


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoveredKinds:
    """The kinds of a cluster, in every version that is served."""

    # (apiVersion, kind) → where such objects lie.
    by_kind: Mapping[tuple[str, str], Collection]
    # What each kind is called in the version to read it in, and what can be done with it there.
    names: Mapping[Collection, str]
    verbs: Mapping[Collection, frozenset[str]]

    def able(self, *verbs: str) -> Iterator[Collection]:
        """Return the kinds with which all of this can be done, each in one version."""
        return (where for where, offered in self.verbs.items() if offered.issuperset(verbs))


async def ask_kinds(cluster: Cluster) -> DiscoveredKinds:
    """Ask a cluster for all its kinds, those that people have defined too."""
    paths = ["/api/v1"]
    for group in (await _ask(cluster, "/apis"))["groups"]:
        versions = (group["preferredVersion"], *group["versions"])
        paths += dict.fromkeys(f"/apis/{version['groupVersion']}" for version in versions)
    parts = []
    for path in paths:
        try:
            parts.append(await _ask(cluster, path))
        except NotFound:
            # The version itself has gone meanwhile.
            continue
    return read_kinds(parts)


def read_kinds(parts: Iterable[Object]) -> DiscoveredKinds:
    """Read lists of kinds, the version that is preferred before others of its group."""
    by_kind: dict[tuple[str, str], Collection] = {}
    preferred: dict[tuple[str, str], tuple[Collection, Object]] = {}
    for part in parts:
        api_version = str(part["groupVersion"])
        group, _, version = api_version.rpartition("/")
        for entry in part["resources"]:
            plural = str(entry["name"])
            if "/" not in plural:
                namespaced = bool(entry["namespaced"])
                where = Collection(group=group, version=version, plural=plural, namespaced=namespaced)
                by_kind[api_version, str(entry["kind"])] = where
                preferred.setdefault((group, plural), (where, entry))
    return DiscoveredKinds(
        by_kind=by_kind,
        names={where: str(entry["kind"]) for where, entry in preferred.values()},
        verbs={where: frozenset(entry["verbs"]) for where, entry in preferred.values()},
    )


async def _ask(cluster: Cluster, path: str) -> Object:
    async with aclosing(cluster.stream(path, {})) as parts:
        body = b"".join([part async for part in parts])
    try:
        answer: Object = json.loads(body)
    except ValueError as error:
        raise HostError(f"the server's answer to {path} is not JSON: {error}") from error
    return answer


log = logging.getLogger(__name__)

# Told (where, old, new); `new` is None once an object has gone.
Told = Callable[[Collection, Object | None, Object | None], None]

# What can be listed, watched and deleted, but for events: they come by the thousand and own nothing.
NEEDED = ("delete", "list", "watch")
LEFT_OUT = frozenset({("", "events"), ("events.k8s.io", "events")})
# A definition is stored a moment before its kind is served.

_TIES = Select(only_ties=True)
_DEFINITIONS = (CRDS.group, CRDS.plural)
_NOTHING = DiscoveredKinds(by_kind={}, names={}, verbs={})


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedKind:
    """One kind that is followed."""

    where: Collection
    informer: Informer
    task: asyncio.Task[None]


@dataclass(slots=True, kw_only=True)
class MetadataInformers:
    """Caches of all kinds, without content. Which kinds there are is asked again whenever a definition changes."""

    cluster: Cluster
    chance: Random
    on_change: Told
    # Called with an object that is only out of sight: its kind is not served as before.
    on_lost: Told
    # Called after other kinds have been found.
    on_kinds: Callable[[], None]
    served: DiscoveredKinds = _NOTHING
    _kinds: dict[tuple[str, str], WatchedKind] = field(default_factory=dict)
    _has_news: asyncio.Event = field(default_factory=asyncio.Event)
    # Kinds whose definition has gone, and with it all their objects.
    _undefined: set[tuple[str, str]] = field(default_factory=set)

    async def run(self, synced: asyncio.Event) -> None:
        """Follow until cancelled; `synced` is set once every kind there was at first has been read."""
        async with asyncio.TaskGroup() as group:
            syncing, failures = False, 0
            while True:
                self._has_news.clear()
                has_looked = await self._look(group)
                if has_looked and not syncing:
                    syncing = True
                    group.create_task(self._sync(synced))
                failures = 0 if has_looked and not self._is_behind() else failures + 1
                await self._wait(failures)

    def get(self, where: Collection, key: tuple[str, str]) -> Object | None:
        """Return the metadata of an object as it was last seen."""
        kind = self._kinds.get((where.group, where.plural))
        return kind.informer.cache.get(key) if kind is not None else None

    @property
    def has_seen_all(self) -> bool:
        """Return whether every kind that is followed has been read."""
        return all(kind.informer.has_synced.is_set() for kind in self._kinds.values())

    async def _sync(self, synced: asyncio.Event) -> None:
        for kind in tuple(self._kinds.values()):
            await kind.informer.has_synced.wait()
        synced.set()

    async def _wait(self, failures: int) -> None:
        """Wait for news of definitions, or, if something is amiss, for a while."""
        pause = RETRY.pause(failures, self.chance) if failures else None
        try:
            async with asyncio.timeout(pause):
                await self._has_news.wait()
        except TimeoutError:
            return

    async def _look(self, group: asyncio.TaskGroup) -> bool:
        """Follow what is served now; False when the cluster does not say."""
        try:
            self.served = await ask_kinds(self.cluster)
        except PacelineError as error:
            log.warning("cannot ask which kinds there are", extra={"reason": error.reason, "error": str(error)})
            return False
        collections = {(where.group, where.plural): where for where in self.served.able(*NEEDED)}
        for name in LEFT_OUT:
            collections.pop(name, None)
        versions = set(self.served.by_kind.values())
        for name, kind in tuple(self._kinds.items()):
            # A version that is still served is as good as the one that is preferred by now.
            if name not in collections or kind.where not in versions:
                self._stop(name)
        for name, where in collections.items():
            if name not in self._kinds:
                self._start(where, group)
        self.on_kinds()
        return True

    def _is_behind(self) -> bool:
        """Return whether there is a definition whose kind is not served yet."""
        definitions = self._kinds.get(_DEFINITIONS)
        served = {(where.group, where.plural) for where in self.served.verbs}
        return definitions is not None and any(_defined(name) not in served for _, name in definitions.informer.cache)

    def _start(self, where: Collection, group: asyncio.TaskGroup) -> None:
        informer = Informer(self.cluster, where, select=_TIES, chance=self.chance, on_change=self._teller(where))
        task = group.create_task(informer.run(), name=f"follow {where.plural}")
        self._kinds[where.group, where.plural] = WatchedKind(where=where, informer=informer, task=task)

    def _stop(self, name: tuple[str, str]) -> None:
        kind, is_undefined = self._kinds.pop(name), name in self._undefined
        self._undefined.discard(name)
        kind.task.cancel()
        # Nobody is to wait for what does not come.
        kind.informer.has_synced.set()
        tell = self.on_change if is_undefined else self.on_lost
        for obj in tuple(kind.informer.cache.values()):
            tell(kind.where, obj, None)

    def _teller(self, where: Collection) -> Handler:
        is_definition = (where.group, where.plural) == _DEFINITIONS

        def tell(_change: Change, old: Object | None, new: Object | None) -> None:
            self.on_change(where, old, new)
            if is_definition:
                self._defining(old, new)

        return tell

    def _defining(self, old: Object | None, new: Object | None) -> None:
        name = _defined(name_of(new or old or {}))
        if new is None:
            self._undefined.add(name)
        else:
            self._undefined.discard(name)
        # At the start most definitions are of kinds that are followed already.
        if old is not None or name not in self._kinds:
            self._has_news.set()


def _defined(name: str) -> tuple[str, str]:
    """Return group and plural of the kind that a definition of this name defines."""
    plural, _, group = name.partition(".")
    return group, plural
