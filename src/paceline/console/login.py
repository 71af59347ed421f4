"""Login and logout: one-time codes for holders of the kubeconfig, tokens for everyone else."""

from hashlib import sha256
from ssl import PEM_cert_to_DER_cert

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from paceline.console.auth import host_of
from paceline.console.config import ConsoleConfig
from paceline.console.responses import json_response, read_json
from paceline.console.runtime import runtime_of
from paceline.console.token_login import bearer_of, login_of
from paceline.errors import BadRequest, Forbidden, Unauthorized


async def create_code(request: Request) -> Response:
    """Return a one-time code for the owner of a bearer token."""
    runtime = runtime_of(request)
    token = bearer_of(request)
    if not token:
        raise Unauthorized("a bearer token is required, such as the one in the kubeconfig")
    return json_response({"code": runtime.codes.create(await login_of(runtime.config, token))})


async def login_options(request: Request) -> Response:
    """Return how to log in, and at which cluster: people see this before they enter a token."""
    config = runtime_of(request).config
    return json_response(
        {
            "codes": config.has_own_credential,
            "cluster": config.cluster_name,
            "server": config.access.server,
            "fingerprint": fingerprint_of(config),
        }
    )


def fingerprint_of(config: ConsoleConfig) -> str:
    """Return the SHA-256 fingerprint of the cluster's certificate authority, as `openssl x509` prints it."""
    try:
        certificate = PEM_cert_to_DER_cert(config.access.ca.decode())
    except ValueError:
        return ""
    return sha256(certificate).digest().hex(":").upper()


async def log_in(request: Request) -> Response:
    """Begin a session with a code or a token."""
    runtime, body = runtime_of(request), await read_json(request)
    code, token = body.get("code"), body.get("token")
    if isinstance(code, str) and code:
        login = runtime.codes.redeem(code)
    elif isinstance(token, str) and token.strip():
        login = await login_of(runtime.config, token.strip())
    else:
        raise BadRequest("the body must contain a `code` or a `token`")
    session = runtime.sessions.begin(login)
    response = json_response({"name": login.name, "expires": session.expires})
    host = host_of(request.scope)
    set_cookies = {cookie.partition("=")[0]: cookie for cookie in runtime.sessions.expired_cookies(host)}
    set_cookies |= {cookie.partition("=")[0]: cookie for cookie in runtime.sessions.cookies(session, host)}
    for cookie in set_cookies.values():
        response.headers.append("set-cookie", cookie)
    return response


async def log_out(request: Request) -> Response:
    """End the session of this browser, or all sessions of all people."""
    runtime, host = runtime_of(request), host_of(request.scope)
    body = await read_json(request) if await request.body() else {}
    if body.get("everywhere"):
        if runtime.sessions.read(request.cookies, host).login.token:
            raise Forbidden("only the person whose kubeconfig the console uses can end the sessions of everybody")
        runtime.config.seal.renew()
    response = json_response({})
    for cookie in runtime.sessions.expired_cookies(host):
        response.headers.append("set-cookie", cookie)
    return response


PROGRAM_ROUTES = (Route("/api/codes", create_code, methods=["POST"]),)
LOGIN_ROUTES = (
    Route("/api/login", login_options, methods=["GET"]),
    Route("/api/login", log_in, methods=["POST"]),
    Route("/api/logout", log_out, methods=["POST"]),
)
