"""TensorBoards and notebooks, each at an origin of its own below the console's host name."""

from contextlib import aclosing, suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from paceline.apimachinery.meta import Object, revision_of
from paceline.client.interface import Change, Select
from paceline.console.app_origins.origin import EmbeddedApp
from paceline.console.app_origins.server import OPEN_PAGE, AppServer
from paceline.console.people import Person, person_of
from paceline.console.responses import json_response, read_json
from paceline.console.runtime import Runtime, runtime_of
from paceline.effects import Clock
from paceline.errors import BadRequest, Expired, NotFound, ServiceUnavailable
from paceline.model.interactive import ServicePhase, ServiceStatus, Trait
from paceline.presentation.actions import asked_by, resume_service

# A request waits this long for an app to become ready; the page then asks again.
WAIT_SECONDS = 20
ACCEPTED = 202


async def embed(request: Request) -> Response:
    """Wake an app if it sleeps, wait until it is ready, and return its URL with a ticket.

    Answer 202 with `ready: false` and a message if it takes longer; `wake: false` waits without waking it.
    """
    runtime, person, body = runtime_of(request), person_of(request), await read_json(request)
    config = runtime.config
    if not config.apps_host:
        raise ServiceUnavailable("this console has no host names for apps; use `paceline tensorboard` or `notebook`")
    app = app_in(body)
    service = await person.client.get(app.collection, app.namespace, app.name)
    if body.get("wake", True):
        service = await wake(person, app, service, config.clock)
    status = await wait_until_ready(person, app, service)
    if status.phase is not ServicePhase.RUNNING:
        return json_response({"ready": False, "phase": status.phase, "message": message_of(status)}, ACCEPTED)
    # Fails here, where the page can say why, if the person may not read it.
    await runtime.notebook_tokens.of(person, app)
    session = request.state.session
    origin = f"{config.scheme}://{app.label}.{config.apps_host}"
    ticket = runtime.tickets.issue(session, app)
    return json_response({"ready": True, "url": f"{origin}{OPEN_PAGE}", "ticket": ticket})


def app_in(body: Object) -> EmbeddedApp:
    """Return the app that a request names."""
    fields = {field: body.get(field) for field in ("kind", "namespace", "name")}
    names = {field: value for field, value in fields.items() if isinstance(value, str) and value}
    if missing := sorted(fields.keys() - names.keys()):
        raise BadRequest(f"{missing[0]} must be a name")
    return EmbeddedApp(**names)


async def wake(person: Person, app: EmbeddedApp, service: Object, clock: Clock) -> Object:
    """Resume an app that is suspended; return it as it is now."""
    plan = resume_service(service, clock.now())
    if not plan.is_possible:
        plan.require(f"{app.kind} {app.name}")
        return service
    body = asked_by(plan, person.name).body
    return await person.client.patch(app.collection, (app.namespace, app.name), body)


async def wait_until_ready(person: Person, app: EmbeddedApp, service: Object) -> ServiceStatus:
    """Return the status of an app once it is ready, or after some time."""
    status = status_in(service)
    if status.phase is ServicePhase.RUNNING:
        return status
    select = Select(namespace=app.namespace, fields=f"metadata.name={app.name}")
    events = person.client.watch(app.collection, select, since=revision_of(service), timeout_seconds=WAIT_SECONDS)
    with suppress(Expired):
        async with aclosing(events):
            async for event in events:
                if event.change is Change.DELETED:
                    raise NotFound(f"{app.kind} {app.name} has been deleted")
                if event.change is not Change.BOOKMARK:
                    status = status_in(event.object)
                if status.phase is ServicePhase.RUNNING:
                    break
    return status


def status_in(service: Object) -> ServiceStatus:
    """Return the status of an app."""
    return ServiceStatus.from_wire(service.get("status") or {})


def message_of(status: ServiceStatus) -> str:
    """Return why an app is not ready, in one sentence; empty while it just starts."""
    readiness = status.condition(Trait.READY)
    return status.waiting or (readiness.message if readiness else "")


async def serve_app(runtime: Runtime, label: str, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request or WebSocket to LABEL.APPS_HOST. The gate has checked the Host header and nothing else."""
    await AppServer(runtime, label, scope).answer(receive, send)


ROUTES: tuple[BaseRoute, ...] = (Route("/api/embed", embed, methods=["POST"]),)
