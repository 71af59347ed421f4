"""Certificates, tokens and kubeconfigs of an embedded cluster, made once and kept under its folder."""

import base64
import ipaddress
import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from paceline.api.gate import hashed
from paceline.assembly.settings import LOOPBACK, NAMESPACE, Settings
from paceline.world import World

ADMIN = "admin"
CONTROLLER = "system:paceline-controller"
NODE = "system:node"
LIFETIME = timedelta(days=3650)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """What the server needs to be believed and to believe."""

    authority: Path
    certificate: Path
    key: Path
    # SHA-256 of each token → who bears it.
    tokens: dict[str, str]
    # The controllers' own token; it lives as long as the process.
    controller_token: str


def prepare_keys(settings: Settings, world: World, port: int) -> Keys:
    """Make what is missing and write the kubeconfigs; what is there stays, so old kubeconfigs go on working."""
    folder = settings.keys
    world.files.make_folder(folder)
    authority, certificate, key = (folder / name for name in ("ca.crt", "server.crt", "server.key"))
    if not all(path.exists() for path in (authority, certificate, key)):
        _make_certificates(world, folder)
    tokens: dict[str, str] = {}
    server = f"https://{LOOPBACK}:{port}"
    for user, path in ((ADMIN, settings.kubeconfig), (NODE, settings.agent_access)):
        token = _token_in(path) or world.ids.secret()
        tokens[hashed(token)] = user
        config = _kubeconfig(server, authority.read_bytes(), user=user, token=token)
        world.files.write(path, json.dumps(config, indent=2).encode() + b"\n")
    controller_token = world.ids.secret()
    tokens[hashed(controller_token)] = CONTROLLER
    return Keys(
        authority=authority,
        certificate=certificate,
        key=key,
        tokens=tokens,
        controller_token=controller_token,
    )


def last_port(settings: Settings) -> int:
    """Give the port of the last start, or 0: a kubeconfig somebody copied should go on working."""
    try:
        config = json.loads(settings.kubeconfig.read_text())
        return int(config["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    except (OSError, ValueError, KeyError, IndexError):
        return 0


def _token_in(path: Path) -> str:
    try:
        return str(json.loads(path.read_text())["users"][0]["user"]["token"])
    except (OSError, ValueError, KeyError, IndexError):
        return ""


def _kubeconfig(server: str, authority: bytes, *, user: str, token: str) -> dict[str, Any]:
    """Spell a kubeconfig. It is JSON, which is YAML, so that our own CLI need not load a YAML reader."""
    data = base64.b64encode(authority).decode()
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "paceline", "cluster": {"server": server, "certificate-authority-data": data}}],
        "users": [{"name": user, "user": {"token": token}}],
        "contexts": [
            {
                "name": "paceline",
                "context": {"cluster": "paceline", "user": user, "namespace": NAMESPACE},
            }
        ],
        "current-context": "paceline",
    }


def _make_certificates(world: World, folder: Path) -> None:
    now = world.clock.now()
    root_key = ec.generate_private_key(ec.SECP256R1())
    root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "paceline authority")])
    root = (
        _certificate(root_name, root_key.public_key(), issuer=root_name, now=now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(root_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "paceline")])
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(LOOPBACK))]
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    certificate = (
        _certificate(name, key.public_key(), issuer=root_name, now=now)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(usage, critical=False)
        .sign(root_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    world.files.write(folder / "ca.crt", root.public_bytes(pem))
    world.files.write(folder / "server.crt", certificate.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    world.files.write(folder / "server.key", private)


def _certificate(
    name: x509.Name, key: ec.EllipticCurvePublicKey, *, issuer: x509.Name, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # A day back, for machines whose clock was behind when the certificate was made.
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + LIFETIME)
    )
