"""The application: all routes behind the gate."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Route, Router
from starlette.types import Scope

from paceline.console import actions, embedded_apps, history, live, login, logs, me, reverse_proxy, static, usage
from paceline.console.auth import Audience, Gate
from paceline.console.config import ConsoleConfig
from paceline.console.manifests import checks
from paceline.console.runtime import Runtime
from paceline.console.volumes import curves, files

# Every route, by who may use it.
ROUTES: Mapping[Audience, tuple[BaseRoute, ...]] = {
    Audience.PROGRAM: login.PROGRAM_ROUTES,
    Audience.LOGIN: login.LOGIN_ROUTES,
    Audience.SESSION: (
        *me.ROUTES,
        *reverse_proxy.ROUTES,
        *live.ROUTES,
        *logs.ROUTES,
        *checks.ROUTES,
        *actions.ROUTES,
        *embedded_apps.ROUTES,
        *files.ROUTES,
        *curves.ROUTES,
        *usage.ROUTES,
        *history.ROUTES,
    ),
    Audience.PUBLIC: (*static.ROUTES, *static.PAGE_ROUTES),
}


def build_app(config: ConsoleConfig) -> Gate:
    """Return the console as an ASGI application."""
    routes = [route for routes in ROUTES.values() for route in routes]
    return Gate(Router(routes, redirect_slashes=False), Runtime(config), audience_of)


def audience_of(scope: Scope) -> Audience:
    """Return who may use the route of a request; without a route, only people with a session learn that."""
    for audience, routes in ROUTES.items():
        if audience is Audience.PUBLIC and static.is_back_end(scope["path"]):
            continue
        if any(route.matches(scope)[0] is not Match.NONE for route in routes):
            return audience
    return Audience.SESSION


def probe(_request: Request) -> Response:
    """Answer a liveness probe."""
    return PlainTextResponse("ok")


# For a port of its own, which only the kubelet reaches.
PROBES = Router([Route(path, probe) for path in ("/healthz", "/livez", "/readyz")], redirect_slashes=False)
