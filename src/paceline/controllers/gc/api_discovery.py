"""Which kinds a cluster serves, as it says itself."""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from paceline.apimachinery.meta import Object
from paceline.client.interface import Cluster, Collection
from paceline.errors import HostError, NotFound


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
