"""TLS as an access asks for it."""

import ssl
from tempfile import NamedTemporaryFile

from paceline.client.rest_config import Access
from paceline.errors import HostError


def tls_context(access: Access) -> ssl.SSLContext | None:
    """Make the context for connections to a server; None when it speaks plain HTTP."""
    if access.server.startswith("http://"):
        return None
    try:
        context = ssl.create_default_context(cadata=access.ca.decode() or None)
    except (ssl.SSLError, UnicodeDecodeError) as error:
        raise HostError(f"the kubeconfig's certificate authority is not PEM: {error}") from error
    if access.is_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.client_certificate:
        _identify(context, access)
    return context


def _identify(context: ssl.SSLContext, access: Access) -> None:
    # OpenSSL reads a certificate and its key from a file only; this one is ours alone, and short-lived.
    with NamedTemporaryFile(prefix="paceline-") as file:
        file.write(access.client_certificate + b"\n" + access.client_key)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except ssl.SSLError as error:
            message = f"the kubeconfig's client certificate and key do not fit each other: {error}"
            raise HostError(message) from error
