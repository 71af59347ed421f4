"""Tokens of service accounts: signed, so that none has to be kept; good for one account, one pod, a while.

They are JSON Web Tokens with the claims that Kubernetes puts there, since clients and people read those.
"""

import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NotBase64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import orjson

from paceline.apimachinery.meta import Object, annotations_of, name_of, namespace_of, uid_of
from paceline.apimachinery.scheme import Scheme
from paceline.apimachinery.timestamps import from_wire
from paceline.apiserver.http_types import Account, Caller
from paceline.apiserver.object_strategy import read
from paceline.apiserver.paths import key_for
from paceline.effects import Clock
from paceline.model import well_known_labels
from paceline.store.store import Store

ISSUER = "https://kubernetes.default.svc"
PRIVATE = "kubernetes.io"
WRITE = "write"
# As Kubernetes has it: what a pod that is being deleted does last, it may still do.
GOING = timedelta(seconds=60)
# As kube-apiserver has it.
LEEWAY = timedelta(seconds=60)
# Nobody's token is longer than the largest names make it.
MAX_CHARS = 4096
_HEAD = urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountTokens:
    """Signs tokens, and tells whose a token is."""

    # A secret of this server alone.
    key: bytes
    store: Store
    scheme: Callable[[], Scheme]
    clock: Clock

    def sign(self, claims: Mapping[str, Any]) -> str:
        """Write a token that says this."""
        said = f"{_HEAD}.{_text(orjson.dumps(claims))}"
        return f"{said}.{_text(self._mark(said))}"

    def caller(self, token: str) -> Caller | None:
        """Tell whose a token is; None when it is not ours, has run out, or what it stands for is gone."""
        said, _, mark = token.rpartition(".")
        if len(token) > MAX_CHARS or not said.startswith(f"{_HEAD}."):
            return None
        if not hmac.compare_digest(_text(self._mark(said)).encode(), mark.encode()):
            return None
        claims = _claims(said)
        now = self.clock.now()
        # A token whose beginning is still to come is good all the same: we sign none ahead of its time, so it says only
        # that our clock was ahead when we did.
        if ISSUER not in claims.get("aud", ()) or now.timestamp() >= claims["exp"] + LEEWAY.total_seconds():
            return None
        return self._caller(claims, now)

    def find(self, plural: str, namespace: str, name: str) -> Object | None:
        """Read an object of Kubernetes' own that is in a namespace."""
        resource = self.scheme().find("", "v1", plural)
        stored = self.store.get(key_for(resource, namespace, name)) if resource else None
        return read(stored.value) if stored else None

    def _caller(self, claims: Mapping[str, Any], now: datetime) -> Caller | None:
        about = claims[PRIVATE]
        account = self._bound("serviceaccounts", about["namespace"], about["serviceaccount"], now)
        if account is None:
            return None
        extra = [("authentication.kubernetes.io/credential-id", f"JTI={claims['jti']}")]
        for word, plural in (("pod", "pods"), ("secret", "secrets")):
            if word not in about:
                continue
            if self._bound(plural, about["namespace"], about[word], now) is None:
                return None
            if word == "pod":
                extra.append(("authentication.kubernetes.io/pod-name", about[word]["name"]))
                extra.append(("authentication.kubernetes.io/pod-uid", about[word]["uid"]))
        return _caller_of(account, tuple(sorted(extra)))

    def _bound(self, plural: str, namespace: str, named: Mapping[str, str], now: datetime) -> Object | None:
        """Find what a token is bound to: the very same object, not another of its name, and not one that is gone."""
        found = self.find(plural, namespace, named["name"])
        if found is None or uid_of(found) != named["uid"]:
            return None
        going = found["metadata"].get("deletionTimestamp")
        return None if going and now > from_wire(going) + GOING else found

    def _mark(self, said: str) -> bytes:
        return hmac.digest(self.key, said.encode(), sha256)


def _caller_of(account: Object, extra: tuple[tuple[str, str], ...]) -> Caller:
    namespace, name = namespace_of(account), name_of(account)
    return Caller(
        name=f"system:serviceaccount:{namespace}:{name}",
        account=Account(
            namespace=namespace,
            name=name,
            uid=uid_of(account),
            may_write=annotations_of(account).get(well_known_labels.RIGHTS) == WRITE,
            extra=extra,
        ),
    )


def _claims(said: str) -> Any:
    """Read what a token of ours says."""
    text = said.partition(".")[2]
    try:
        return orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (NotBase64, ValueError):
        return {}


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
