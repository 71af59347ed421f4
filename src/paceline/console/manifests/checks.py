"""`POST /api/check`: what is wrong with a manifest, and where; with the templates, examples and schemas of forms."""

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from paceline.apimachinery.meta import name_of
from paceline.apimachinery.name_validation import label_problem
from paceline.client.interface import CLAIMS, Select
from paceline.console.manifests import app_changes, examples, templates
from paceline.console.manifests.manifest_checks import check
from paceline.console.manifests.object_checks import Claims
from paceline.console.people import Person, person_of
from paceline.console.responses import json_response, read_json
from paceline.errors import BadRequest, Forbidden, NotFound, ServiceUnavailable


async def _check(request: Request) -> Response:
    body = await read_json(request)
    text, namespace = body.get("text"), body.get("namespace") or ""
    if not isinstance(text, str) or not isinstance(namespace, str):
        raise BadRequest('the body must be {"text": "…", "namespace": "…"}')
    claims = await _claims(person_of(request), namespace) if "claim" in text.lower() or "pvc" in text else {}
    # Checking a text of a megabyte takes longer than others should wait.
    result = await run_in_threadpool(check, text, namespace=namespace, claims=claims)
    return json_response(result.as_json())


async def _claims(person: Person, namespace: str) -> Claims:
    """Return the claims of a namespace; nothing is known about them if the person may not list them."""
    if not namespace or label_problem(namespace):
        return {}
    try:
        page = await person.client.list(CLAIMS, Select(namespace=namespace))
    except (Forbidden, NotFound, ServiceUnavailable):
        return {}
    return {namespace: frozenset(name_of(claim) for claim in page.items)}


ROUTES: tuple[BaseRoute, ...] = (
    Route("/api/check", _check, methods=["POST"]),
    *examples.ROUTES,
    *templates.ROUTES,
    *app_changes.ROUTES,
)
