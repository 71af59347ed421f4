"""`python -m paceline.cluster.certificates FOLDER`: create a certificate authority and a server certificate."""

import ipaddress
import sys
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from paceline.effects import Effects
from paceline.host.effects import real_world
from paceline.node.network.network import API_NAMES
from paceline.settings import LOOPBACK

# No client's clock, however wrong, may make it distrust this cluster.
# RFC 5280 uses this end for a certificate without a known one.
BEGIN, END = datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)


def main() -> int:
    """Write ca.crt, server.crt and server.key; print one line when the folder cannot be written."""
    try:
        make_certificates(real_world(), Path(sys.argv[1]))
    except OSError as error:
        sys.stderr.write(f"{error.filename} cannot be written: {error.strerror}\n")
        return 1
    return 0


def make_certificates(world: Effects, folder: Path) -> None:
    """Create an authority and a certificate for this machine; the authority's key is not stored."""
    root_key = ec.generate_private_key(ec.SECP256R1())
    root_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "paceline authority")])
    root = (
        _certificate(root_name, root_key.public_key(), issuer=root_name)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(root_key, hashes.SHA256())
    )
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "paceline")])
    dns = [x509.DNSName(dns_name) for dns_name in ("localhost", *API_NAMES)]
    names = [*dns, x509.IPAddress(ipaddress.ip_address(LOOPBACK))]
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
    certificate = (
        _certificate(name, key.public_key(), issuer=root_name)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(usage, critical=False)
        .sign(root_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    world.files.write(folder / "ca.crt", root.public_bytes(pem))
    world.files.write(folder / "server.crt", certificate.public_bytes(pem))
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    world.files.write(folder / "server.key", private)


def _certificate(name: x509.Name, key: ec.EllipticCurvePublicKey, *, issuer: x509.Name) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGIN)
        .not_valid_after(END)
    )


if __name__ == "__main__":
    sys.exit(main())
