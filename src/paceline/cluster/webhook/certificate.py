"""The webhook's certificate: self-signed by each process, and told to the API server in the CA bundle.

Several controllers serve the same webhook. Each adds its own certificate to the bundle, so no key is shared or stored.
"""

import base64
import binascii
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from paceline.apimachinery.meta import Object

LIFETIME = timedelta(days=90)
# Clocks of the API server and of this machine may differ.
SKEW = timedelta(hours=1)
# Enough for all controllers of an installation, also while pods are replaced; the oldest certificates go first.
MAX_CERTIFICATES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingCertificate:
    """A certificate with its key, in PEM."""

    certificate: bytes
    key: bytes


def make_certificate(names: Iterable[str], now: datetime) -> ServingCertificate:
    """Return a self-signed certificate for DNS names and addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "paceline webhook")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + LIFETIME)
        .add_extension(x509.SubjectAlternativeName([_general_name(text) for text in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return ServingCertificate(certificate=certificate.public_bytes(pem), key=private)


def with_authority(configuration: Object, certificate: bytes, now: datetime) -> Object | None:
    """Return a webhook configuration that trusts a certificate; None if it does already."""
    webhooks = [_trusting(webhook, certificate, now) for webhook in configuration.get("webhooks") or ()]
    return None if webhooks == configuration.get("webhooks") else {**configuration, "webhooks": webhooks}


def _trusting(webhook: Object, certificate: bytes, now: datetime) -> Object:
    client = webhook.get("clientConfig") or {}
    bundle = _certificates(str(client.get("caBundle") or ""))
    if any(existing.public_bytes(serialization.Encoding.PEM) == certificate for existing in bundle):
        return webhook
    valid = [existing for existing in bundle if existing.not_valid_after_utc > now]
    newest = sorted([*valid, x509.load_pem_x509_certificate(certificate)], key=lambda item: item.not_valid_before_utc)
    pem = b"".join(item.public_bytes(serialization.Encoding.PEM) for item in newest[-MAX_CERTIFICATES:])
    return {**webhook, "clientConfig": {**client, "caBundle": base64.b64encode(pem).decode()}}


def _certificates(bundle: str) -> list[x509.Certificate]:
    """Return the certificates of a bundle; none if the value is not a bundle."""
    try:
        return x509.load_pem_x509_certificates(base64.b64decode(bundle, validate=True)) if bundle else []
    except (ValueError, binascii.Error):
        return []


def _general_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)
