"""Service account tokens: signed JSON Web Tokens, bound to an account, a pod and a time; none is stored.

They have Kubernetes' claims, because clients and people read these.
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
from paceline.apiserver.object_strategy import lookup
from paceline.effects import Clock
from paceline.model import well_known_labels
from paceline.store.store import Store

ISSUER = "https://kubernetes.default.svc"
PRIVATE = "kubernetes.io"
WRITE = "write"
# Kubernetes' grace period: a pod that is being deleted may still finish its work.
DELETION_GRACE = timedelta(seconds=60)
LEEWAY = timedelta(seconds=60)
# The longest names make tokens this long.
MAX_CHARS = 4096
_HEAD = urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').rstrip(b"=").decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountTokens:
    # The signing key of this server.
    key: bytes
    store: Store
    scheme: Callable[[], Scheme]
    clock: Clock

    def sign(self, claims: Mapping[str, Any]) -> str:
        signed = f"{_HEAD}.{_text(orjson.dumps(claims))}"
        return f"{signed}.{_text(self._signature(signed))}"

    def caller(self, token: str) -> Caller | None:
        """Return the caller of a token; None if it is not ours, has expired, or its object is gone."""
        signed, _, signature = token.rpartition(".")
        if len(token) > MAX_CHARS or not signed.startswith(f"{_HEAD}."):
            return None
        if not hmac.compare_digest(_text(self._signature(signed)).encode(), signature.encode()):
            return None
        claims = _claims(signed)
        now = self.clock.now()
        # Accept tokens that start in the future: we sign none in advance, so our clock was ahead then.
        if ISSUER not in claims.get("aud", ()) or now.timestamp() >= claims["exp"] + LEEWAY.total_seconds():
            return None
        return self._caller(claims, now)

    def find(self, plural: str, namespace: str, name: str) -> Object | None:
        return lookup(self.store, self.scheme().find("", "v1", plural), namespace, name)

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
        """Return the object that a token is bound to; None if it is gone or another one has its name."""
        obj = self.find(plural, namespace, named["name"])
        if obj is None or uid_of(obj) != named["uid"]:
            return None
        deleted_at = obj["metadata"].get("deletionTimestamp")
        return None if deleted_at and now > from_wire(deleted_at) + DELETION_GRACE else obj

    def _signature(self, signed: str) -> bytes:
        return hmac.digest(self.key, signed.encode(), sha256)


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


def _claims(signed: str) -> Any:
    text = signed.partition(".")[2]
    try:
        return orjson.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (NotBase64, ValueError):
        return {}


def _text(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
