"""The config maps, secrets and tokens a pod reads: which it names, and what they hold."""

import base64
import binascii
import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from paceline.apimachinery.meta import Object, namespace_of
from paceline.apimachinery.pods import containers_of
from paceline.client.interface import CONFIG_MAPS, Cluster, Collection
from paceline.errors import NotFound
from paceline.node.volumes.token_cache import Ask, Tokens

SECRETS = Collection(group="", version="v1", plural="secrets")
COLLECTIONS = {"configmap": CONFIG_MAPS, "secret": SECRETS}

# Kind, which is "configmap" or "secret", and name.
Reference = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """What the config maps and secrets of one pod hold; what is not there is not in it."""

    found: Mapping[Reference, Mapping[str, bytes]] = field(default_factory=dict)
    tokens: Mapping[Ask, str] = field(default_factory=dict)

    # Entries that were written as bytes, which files may hold and variables may not.
    binary: Mapping[Reference, frozenset[str]] = field(default_factory=dict)

    def data(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """Give the entries of one of them; None when it is not there."""
        return self.found.get((kind, name))

    def words(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """Give the entries that can be variables; None when it is not there."""
        found = self.data(kind, name)
        binary = self.binary.get((kind, name), frozenset())
        return None if found is None else {key: value for key, value in found.items() if key not in binary}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Reads what pods name, once each, however many of them name it."""

    cluster: Cluster
    tokens: Tokens
    _known: dict[tuple[str, Reference], Object | None] = field(default_factory=dict)

    async def of(self, pod: Object) -> Sources:
        """Read everything that a pod names."""
        found: dict[Reference, Mapping[str, bytes]] = {}
        binary: dict[Reference, frozenset[str]] = {}
        for reference in dict.fromkeys(references(pod)):
            source = await self._read(namespace_of(pod), reference)
            if source is not None:
                found[reference] = entries(source)
                binary[reference] = frozenset(source.get("binaryData") or ())
        return Sources(found=found, binary=binary, tokens=await self.tokens.of(pod))

    async def _read(self, namespace: str, reference: Reference) -> Object | None:
        kind, name = reference
        if (namespace, reference) not in self._known:
            source = None
            with contextlib.suppress(NotFound):
                source = await self.cluster.get(COLLECTIONS[kind], namespace, name)
            self._known[namespace, reference] = source
        return self._known[namespace, reference]


async def read_sources(cluster: Cluster, pod: Object, tokens: Tokens) -> Sources:
    """Read everything that a pod names, once each."""
    return await Reading(cluster=cluster, tokens=tokens).of(pod)


def references(pod: Object) -> Iterator[Reference]:
    """Name every config map and secret that a pod's containers and volumes read."""
    for container in containers_of(pod):
        yield from _in_container(container)
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if wanted := volume.get("configMap"):
            yield "configmap", str(wanted["name"])
        if wanted := volume.get("secret"):
            yield "secret", str(wanted["secretName"])
        for source in (volume.get("projected") or {}).get("sources") or ():
            for word, kind in (("configMap", "configmap"), ("secret", "secret")):
                if word in source:
                    yield kind, str(source[word].get("name") or "")


def _in_container(container: Object) -> Iterator[Reference]:
    wanted = [*(container.get("envFrom") or ())]
    wanted += [entry["valueFrom"] for entry in container.get("env") or () if entry.get("valueFrom")]
    fields = (
        ("configMapRef", "configmap"),
        ("configMapKeyRef", "configmap"),
        ("secretRef", "secret"),
        ("secretKeyRef", "secret"),
    )
    for block in wanted:
        for word, kind in fields:
            if word in block:
                yield kind, str(block[word]["name"])


def entries(obj: Object) -> dict[str, bytes]:
    """Read what a config map or a secret holds, as bytes."""
    if obj.get("kind") != "Secret":
        plain = {key: str(value).encode() for key, value in (obj.get("data") or {}).items()}
        return plain | _decoded(obj.get("binaryData"))
    return _decoded(obj.get("data"))


def _decoded(data: Mapping[str, str] | None) -> dict[str, bytes]:
    found = {}
    for key, value in (data or {}).items():
        try:
            found[key] = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            continue  # The API server refuses such a value; one that slipped in is as good as absent.
    return found
