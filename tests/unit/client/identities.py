"""Certificates for tests of TLS."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Identities:
    authority: bytes
    server: bytes
    server_key: bytes
    client: bytes
    client_key: bytes


def make_identities():
    root_key = ec.generate_private_key(ec.SECP256R1())
    root = named("authority")
    signed = certificate(root, root, root_key.public_key())
    authority = signed.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    server, client = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    names = x509.SubjectAlternativeName([x509.DNSName("api.test")])
    of_server = certificate(named("api.test"), root, server.public_key()).add_extension(names, critical=False)
    of_client = certificate(named("ann"), root, client.public_key())
    return Identities(
        pem(authority, root_key), pem(of_server, root_key), secret(server), pem(of_client, root_key), secret(client)
    )


def certificate(subject, issuer, key):
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )


def named(name):
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def pem(builder, key):
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)


def secret(key):
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
