"""The config maps, secrets and tokens a pod reads: which it names, and what they hold."""

import base64
import binascii
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from paceline.apimachinery.meta import Object, name_of, namespace_of, uid_of
from paceline.apimachinery.pods import containers_of
from paceline.client.interface import ACCOUNTS, CONFIG_MAPS, Cluster, Collection
from paceline.effects import Clock
from paceline.errors import BadRequest, Conflict, Forbidden, NotFound

USUAL_SECONDS = 3600
# As a kubelet: a token is asked for anew when a fifth of its time is left, and after a day at the latest.
FRESH, LONGEST = 0.8, timedelta(hours=24)

# Audience, which is empty for the API server itself, and seconds.
Ask = tuple[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    token: str
    until: datetime


@dataclass(slots=True, kw_only=True)
class Tokens:
    """Keeps the tokens of running pods, in memory only; the files of their volumes have them too."""

    cluster: Cluster
    clock: Clock
    _given: dict[str, dict[Ask, _Given]] = field(init=False, default_factory=dict)

    async def of(self, pod: Object) -> dict[Ask, str]:
        """Give every token that a pod's volumes hold; one that the server refuses is not among them."""
        given: dict[Ask, str] = {}
        for ask in dict.fromkeys(asks_of(pod)):
            held = self._given.get(uid_of(pod), {}).get(ask)
            if held is None or self.clock.now() >= held.until:
                held = await self._request(pod, ask)
            if held is not None:
                given[ask] = held.token
        return given

    def keep(self, uids: Iterable[str]) -> None:
        """Forget the tokens of all other pods."""
        there = set(uids)
        self._given = {uid: given for uid, given in self._given.items() if uid in there}

    async def _request(self, pod: Object, ask: Ask) -> _Given | None:
        audience, seconds = ask
        account = str(pod["spec"].get("serviceAccountName") or "default")
        bound = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": uid_of(pod)}
        spec = {"expirationSeconds": seconds, "boundObjectRef": bound}
        wanted: Object = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": spec | ({"audiences": [audience]} if audience else {}),
        }
        began = self.clock.now()
        try:
            told = await self.cluster.post(ACCOUNTS.path(namespace_of(pod), account, "token"), wanted)
        except (NotFound, Forbidden, BadRequest, Conflict):
            # No such account, or no such pod any more.
            return None
        # By how long it lasts, not by when it ends: that would compare the server's clock with ours.
        lasts = timedelta(seconds=int(told["spec"]["expirationSeconds"])) * FRESH
        held = _Given(token=str(told["status"]["token"]), until=began + min(lasts, LONGEST))
        self._given.setdefault(uid_of(pod), {})[ask] = held
        return held


def asks_of(pod: Object) -> Iterator[Ask]:
    """Name the tokens that a pod's volumes hold."""
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if (wire := source.get("serviceAccountToken")) is not None:
                yield ask_of(wire)


def ask_of(wire: Mapping[str, Any]) -> Ask:
    """Read which token a source asks for."""
    return str(wire.get("audience") or ""), int(wire.get("expirationSeconds") or USUAL_SECONDS)


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
