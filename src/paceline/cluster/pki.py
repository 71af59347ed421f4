"""Certificates, tokens and kubeconfigs of an embedded cluster, created once and stored in its folder."""

import base64
import json
import ssl
import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from paceline.apiserver.auth.authentication import hash_token
from paceline.effects import Effects
from paceline.errors import HostError
from paceline.node.network.network import API_NAMES
from paceline.settings import LOOPBACK, NAMESPACE, Settings

ADMIN = "admin"
CONTROLLER = "system:paceline-controller"
NODE = "system:node"
# Certificates are renewed this long before they expire; copies of the kubeconfig then stop working.
RENEW_BEFORE = timedelta(days=365)


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """The files and secrets with which the server and its clients authenticate each other."""

    authority: Path
    certificate: Path
    key: Path
    # SHA-256 of each token → its user.
    tokens: dict[str, str]
    # The controllers' own token, which is new in every process.
    controller_token: str
    # The key that signs the tokens of service accounts.
    signing: bytes


def prepare_keys(settings: Settings, world: Effects, port: int) -> Keys:
    """Create missing keys and write the kubeconfigs; existing keys stay, so that copies of kubeconfigs keep working."""
    folder = settings.keys
    world.files.make_folder(folder)
    authority, certificate, key = (folder / name for name in ("ca.crt", "server.crt", "server.key"))
    is_made = all(path.exists() for path in (authority, certificate, key))
    if not is_made or not _is_for_pods(certificate) or not _is_lasting(authority, world.clock.now()):
        _make_certificates(folder)
    tokens: dict[str, str] = {}
    server = f"https://{LOOPBACK}:{port}"
    for user, path in ((ADMIN, settings.kubeconfig), (NODE, settings.agent_access)):
        token = _token_in(path) or world.ids.secret()
        tokens[hash_token(token)] = user
        config = _kubeconfig(server, authority.read_bytes(), user=user, token=token)
        world.files.write(path, json.dumps(config, indent=2).encode() + b"\n")
    controller_token = world.ids.secret()
    tokens[hash_token(controller_token)] = CONTROLLER
    return Keys(
        authority=authority,
        certificate=certificate,
        key=key,
        tokens=tokens,
        controller_token=controller_token,
        signing=_signing(folder / "tokens.key", world),
    )


def _is_for_pods(certificate: Path) -> bool:
    """Return whether a certificate is for the name by which pods know the server; the first ones were not."""
    try:
        return API_NAMES[0].encode() in ssl.PEM_cert_to_DER_cert(certificate.read_text())
    except (OSError, ValueError):
        return False


def _is_lasting(authority: Path, now: datetime) -> bool:
    """Return whether an authority is good for a year at least; those of early versions ended after ten years."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        context.load_verify_locations(authority)
        ends = [ssl.cert_time_to_seconds(str(certificate["notAfter"])) for certificate in context.get_ca_certs()]
    except (ssl.SSLError, OSError, ValueError):
        return False
    return bool(ends) and min(ends) >= (now + RENEW_BEFORE).timestamp()


def _signing(path: Path, world: Effects) -> bytes:
    """Return the key that signs tokens, created at the first start: the tokens of pods outlive this process."""
    if not path.exists():
        world.files.write(path, world.ids.secret().encode())
    return path.read_bytes()


def _token_in(path: Path) -> str:
    try:
        return str(json.loads(path.read_text())["users"][0]["user"]["token"])
    except (OSError, ValueError, KeyError, IndexError):
        return ""


def _kubeconfig(server: str, authority: bytes, *, user: str, token: str) -> dict[str, Any]:
    """Return a kubeconfig. It is written as JSON, which is YAML, so that our own CLI need not load a YAML reader."""
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


def _make_certificates(folder: Path) -> None:
    """Create the certificates in another process: the library is large, and needed once in the life of a cluster."""
    command = [sys.executable, "-m", "paceline.cluster.certificates", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    if done.returncode:
        raise HostError(f"no certificates could be made in {folder}: {done.stderr.strip() or done.returncode}")
