"""Read the ConfigMaps, Secrets and service account tokens that a pod refers to."""

import base64
import binascii
import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from paceline.apimachinery.meta import Object, name_of, namespace_of, uid_of
from paceline.apimachinery.pods import containers_of
from paceline.client.interface import ACCOUNTS, CONFIG_MAPS, SECRETS, Cluster
from paceline.client.workqueue import all_of
from paceline.effects import Clock
from paceline.errors import BadRequest, Conflict, Forbidden, NotFound

DEFAULT_SECONDS = 3600
# As a kubelet: a token is renewed when a fifth of its lifetime is left, and after a day at the latest.
RENEW_AT, LONGEST = 0.8, timedelta(hours=24)
COLLECTIONS = {"configmap": CONFIG_MAPS, "secret": SECRETS}
REFERENCE_FIELDS = (
    ("configMapRef", "configmap"),
    ("configMapKeyRef", "configmap"),
    ("secretRef", "secret"),
    ("secretKeyRef", "secret"),
)

# Audience, which is empty for the API server itself, and lifetime in seconds.
TokenKey = tuple[str, int]
# Kind, which is "configmap" or "secret", and name.
Reference = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Token:
    value: str
    renew_at: datetime


@dataclass(slots=True, kw_only=True)
class TokenCache:
    """Keeps the tokens of running pods in memory; the files of their volumes have them too."""

    cluster: Cluster
    clock: Clock
    _tokens: dict[str, dict[TokenKey, _Token]] = field(init=False, default_factory=dict)

    async def of(self, pod: Object) -> dict[TokenKey, str]:
        """Return the tokens of a pod's volumes, without those that the server refuses."""
        values: dict[TokenKey, str] = {}
        for key in dict.fromkeys(token_keys(pod)):
            token = self._tokens.get(uid_of(pod), {}).get(key)
            if token is None or self.clock.now() >= token.renew_at:
                token = await self._request(pod, key)
            if token is not None:
                values[key] = token.value
        return values

    def retain(self, uids: Iterable[str]) -> None:
        """Drop the tokens of all other pods."""
        retained = set(uids)
        self._tokens = {uid: tokens for uid, tokens in self._tokens.items() if uid in retained}

    async def _request(self, pod: Object, key: TokenKey) -> _Token | None:
        audience, seconds = key
        account = str(pod["spec"].get("serviceAccountName") or "default")
        bound = {"apiVersion": "v1", "kind": "Pod", "name": name_of(pod), "uid": uid_of(pod)}
        spec = {"expirationSeconds": seconds, "boundObjectRef": bound}
        request: Object = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": spec | ({"audiences": [audience]} if audience else {}),
        }
        began = self.clock.now()
        try:
            answer = await self.cluster.post(ACCOUNTS.path(namespace_of(pod), account, "token"), request)
        except (NotFound, Forbidden, BadRequest, Conflict):
            # The account does not exist, or the pod no longer does.
            return None
        # The lifetime, not the expiry: that would compare the server's clock with ours.
        lifetime = timedelta(seconds=int(answer["spec"]["expirationSeconds"])) * RENEW_AT
        token = _Token(value=str(answer["status"]["token"]), renew_at=began + min(lifetime, LONGEST))
        self._tokens.setdefault(uid_of(pod), {})[key] = token
        return token


def token_keys(pod: Object) -> Iterator[TokenKey]:
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if (wire := source.get("serviceAccountToken")) is not None:
                yield token_key(wire)


def token_key(wire: Mapping[str, Any]) -> TokenKey:
    return str(wire.get("audience") or ""), int(wire.get("expirationSeconds") or DEFAULT_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The content of the ConfigMaps, Secrets and tokens that a pod refers to, as far as they exist."""

    entries: Mapping[Reference, Mapping[str, bytes]] = field(default_factory=dict)
    tokens: Mapping[TokenKey, str] = field(default_factory=dict)
    # Keys under `binaryData`, which become files but not environment variables.
    binary: Mapping[Reference, frozenset[str]] = field(default_factory=dict)

    def data(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """Return the entries of an object; None if it does not exist."""
        return self.entries.get((kind, name))

    def text(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        """Return the entries that can be environment variables; None if the object does not exist."""
        data = self.data(kind, name)
        binary = self.binary.get((kind, name), frozenset())
        return None if data is None else {key: value for key, value in data.items() if key not in binary}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReader:
    """Reads what pods refer to, once per object, however many of them refer to it."""

    cluster: Cluster
    tokens: TokenCache
    _cache: dict[tuple[str, Reference], Object | None] = field(default_factory=dict)

    async def of(self, pod: Object) -> Sources:
        # At the same time: nearly every pod has a ConfigMap and a token, and waits for them at its start.
        (data, binary), tokens = await all_of(self._entries(pod), self.tokens.of(pod))
        return Sources(entries=data, binary=binary, tokens=tokens)

    async def _entries(
        self, pod: Object
    ) -> tuple[dict[Reference, Mapping[str, bytes]], dict[Reference, frozenset[str]]]:
        """Return what the objects contain, and which of it is binary."""
        data: dict[Reference, Mapping[str, bytes]] = {}
        binary: dict[Reference, frozenset[str]] = {}
        for reference in dict.fromkeys(references(pod)):
            source = await self._read(namespace_of(pod), reference)
            if source is not None:
                data[reference] = entries(source)
                binary[reference] = frozenset(source.get("binaryData") or ())
        return data, binary

    async def _read(self, namespace: str, reference: Reference) -> Object | None:
        kind, name = reference
        if (namespace, reference) not in self._cache:
            source = None
            with contextlib.suppress(NotFound):
                source = await self.cluster.get(COLLECTIONS[kind], namespace, name)
            self._cache[namespace, reference] = source
        return self._cache[namespace, reference]


async def read_sources(cluster: Cluster, pod: Object, tokens: TokenCache) -> Sources:
    return await SourceReader(cluster=cluster, tokens=tokens).of(pod)


def references(pod: Object) -> Iterator[Reference]:
    """Yield the ConfigMaps and Secrets that a pod's containers and volumes refer to."""
    for container in containers_of(pod):
        yield from _container_references(container)
    for volume in (pod.get("spec") or {}).get("volumes") or ():
        if wire := volume.get("configMap"):
            yield "configmap", str(wire["name"])
        if wire := volume.get("secret"):
            yield "secret", str(wire["secretName"])
        for source in (volume.get("projected") or {}).get("sources") or ():
            for name, kind in (("configMap", "configmap"), ("secret", "secret")):
                if name in source:
                    yield kind, str(source[name].get("name") or "")


def _container_references(container: Object) -> Iterator[Reference]:
    blocks = [*(container.get("envFrom") or ())]
    blocks += [entry["valueFrom"] for entry in container.get("env") or () if entry.get("valueFrom")]
    for block in blocks:
        for name, kind in REFERENCE_FIELDS:
            if name in block:
                yield kind, str(block[name]["name"])


def entries(obj: Object) -> dict[str, bytes]:
    """Return the entries of a ConfigMap or Secret as bytes."""
    if obj.get("kind") != "Secret":
        plain = {key: str(value).encode() for key, value in (obj.get("data") or {}).items()}
        return plain | _decoded(obj.get("binaryData"))
    return _decoded(obj.get("data"))


def _decoded(data: Mapping[str, str] | None) -> dict[str, bytes]:
    decoded = {}
    for key, value in (data or {}).items():
        try:
            decoded[key] = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            continue  # The API server refuses such values; one that is stored anyway counts as missing.
    return decoded
