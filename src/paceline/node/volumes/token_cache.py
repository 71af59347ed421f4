"""Tokens for the pods of this machine: asked for before a container starts, and anew long before they run out."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from paceline.apimachinery.meta import Object, name_of, namespace_of, uid_of
from paceline.client.interface import ACCOUNTS, Cluster
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
