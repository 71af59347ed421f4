"""The certificates of an embedded cluster are believed whatever a client's clock says."""

import socket
import ssl
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from paceline.cluster.certificates import make_certificates
from paceline.cluster.pki import Keys, prepare_keys
from paceline.effects import Effects
from paceline.host.effects import real_world
from paceline.settings import Settings


@pytest.fixture
def world() -> Effects:
    return real_world()


def prepared(folder: Path, world: Effects) -> Keys:
    return prepare_keys(Settings(home=folder), world, 1)


def test_certificates_hold_from_the_first_to_the_last_year_that_clocks_know(tmp_path: Path, world: Effects) -> None:
    make_certificates(world, tmp_path)
    for name in ("ca.crt", "server.crt"):
        made = x509.load_pem_x509_certificate((tmp_path / name).read_bytes())
        assert (made.not_valid_before_utc.year, made.not_valid_after_utc.year) == (1970, 9999)


def test_a_client_trusts_them(tmp_path: Path, world: Effects) -> None:
    keys = prepared(tmp_path, world)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(keys.certificate, keys.key)
    client = ssl.create_default_context(cafile=str(keys.authority))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        script = "import socket, ssl, sys; made = ssl.create_default_context(cafile=sys.argv[1])\n"
        script += "made.wrap_socket(socket.socket(fileno=int(sys.argv[2])), server_hostname='localhost').close()"
        words = [sys.executable, "-c", script, str(keys.authority), str(theirs.fileno())]
        with subprocess.Popen(words, pass_fds=[theirs.fileno()]) as process:
            server.wrap_socket(ours, server_side=True).close()
            assert process.wait(30) == 0
    assert client.get_ca_certs()[0]["notAfter"] == "Dec 31 23:59:59 9999 GMT"


def test_certificates_are_kept_so_that_copies_of_the_kubeconfig_go_on_working(tmp_path: Path, world: Effects) -> None:
    first = prepared(tmp_path, world).authority.read_bytes()

    assert prepared(tmp_path, world).authority.read_bytes() == first


@pytest.mark.parametrize("days", [300, 3650])
def test_certificates_that_end_within_a_year_are_made_anew(tmp_path: Path, world: Effects, days: int) -> None:
    """Early versions made some that end."""
    keys = prepared(tmp_path, world)
    key = ec.generate_private_key(ec.SECP256R1())
    old = x509.load_pem_x509_certificate(keys.authority.read_bytes())
    now = world.clock.now()
    builder = x509.CertificateBuilder(extensions=list(old.extensions)).subject_name(old.subject).issuer_name(old.issuer)
    builder = builder.public_key(key.public_key()).serial_number(1)
    ending = builder.not_valid_before(now).not_valid_after(now + timedelta(days=days)).sign(key, hashes.SHA256())
    before = ending.public_bytes(serialization.Encoding.PEM)
    keys.authority.write_bytes(before)

    assert (prepared(tmp_path, world).authority.read_bytes() != before) is (days < 365)


def test_an_authority_that_cannot_be_read_is_made_anew(tmp_path: Path, world: Effects) -> None:
    keys = prepared(tmp_path, world)
    keys.authority.write_text("nonsense")

    assert "BEGIN CERTIFICATE" in prepared(tmp_path, world).authority.read_text()
