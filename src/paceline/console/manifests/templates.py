"""Templates of applications and schemas of kinds, for forms.

`GET /api/templates`, `POST /api/templates/NAME/render`, `GET /api/schemas/KIND`.
"""

from functools import cache
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from paceline.apimachinery.builtin.registry import builtin_components, builtin_resources
from paceline.apimachinery.field_errors import FieldFault, Problem, nearest
from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.schema import reachable
from paceline.client.interface import Collection
from paceline.console.people import person_of
from paceline.console.responses import json_response, read_json
from paceline.errors import BadRequest, Fault, Invalid, NotFound
from paceline.kinds import registry
from paceline.kinds.apps.expand import expand_app, job_manifest
from paceline.kinds.apps.templates.registry import TEMPLATES, find, rows_of
from paceline.kinds.apps.templates.types import Rendered, Template
from paceline.kinds.apps.training_app import KIND, PLURAL
from paceline.kinds.kind_types import OWN_API_VERSION, OWN_GROUP, SERVICE_API_VERSION, VERSION
from paceline.kinds.schema import spec_schema
from paceline.presentation.apps.app_change import app_change, changed_app_values
from paceline.presentation.apps.app_summary import status_of
from paceline.presentation.apps.changed_values import Differences
from paceline.presentation.consequences import consequences_of_change

APPS = Collection(group=OWN_GROUP, version=VERSION, plural=PLURAL)
# Kinds of Kubernetes itself that have a form.
_BUILTIN = frozenset({"PersistentVolumeClaim"})


async def _templates(_request: Request) -> Response:
    return json_response({"templates": [_described(template) for template in TEMPLATES]})


def _described(template: Template) -> Object:
    """Return a template with the schema of its values, and a row for each of them."""
    return {
        "name": template.name,
        "version": template.version,
        "description": template.description,
        "readme": template.readme,
        "defaults": template.defaults(),
        "schema": spec_schema(template.values),
        "values": [{"path": path, "default": default, "help": text} for path, default, text in rows_of(template)],
    }


async def _render(request: Request) -> Response:
    """Return what values would create, and how they differ from those of the application that exists."""
    template = _template(request.path_params["name"])
    body = await read_json(request)
    name, namespace, values = body.get("name") or "", body.get("namespace") or "default", body.get("values") or {}
    if not isinstance(name, str) or not isinstance(namespace, str) or not isinstance(values, dict):
        raise BadRequest("name and namespace must be strings, and values an object")
    app = {
        "apiVersion": OWN_API_VERSION,
        "kind": KIND.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {"name": template.name, "version": template.version}, "values": values},
    }
    return json_response(rendered(app, await _current(request, namespace, name)))


def rendered(app: Object, current: Object | None, record: Object | None = None) -> Object:
    """Return the objects of an application's next revision and what it changes; or its faults.

    The record's spec is that of the current revision, if there is one.
    """
    revision = status_of(current).revision + 1 if current else 1
    result: Object = {"app": app, "revision": revision, "isNew": current is None, "objects": [], "faults": []}
    if faults := faults_of(app):
        result["faults"] = [_fault(fault) for fault in faults]
        return result | ({"changes": _listed(changed_app_values(current, app))} if current else {})
    result["objects"] = list(_objects(app, expand_app(app, revision), revision))
    if current is not None:
        change = app_change(current, app, record)
        result["changes"], result["jobChanges"] = _listed(change.values), _listed(change.job)
        result["consequences"] = [consequence.to_wire() for consequence in consequences_of_change(change)]
    return result


def _listed(differences: Differences) -> list[Object]:
    return [{"path": path, "old": old, "new": new} for path, (old, new) in differences.items()]


def faults_of(app: Object) -> tuple[Fault, ...]:
    """Return the faults of an application, also if its template does not exist."""
    try:
        return registry.app_faults(app)
    except Invalid as error:
        return error.faults


def _fault(fault: Fault) -> Object:
    reason = fault.problem if isinstance(fault, FieldFault) else Problem.INVALID
    return {"path": fault.path, "reason": reason.value, "message": fault.hint}


def _objects(app: Object, parts: Rendered, revision: int) -> list[Object]:
    namespace = app["metadata"]["namespace"]
    claims = [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }
        for name, spec in parts.claims.items()
    ]
    boards = [
        {
            "apiVersion": SERVICE_API_VERSION,
            "kind": "TensorBoard",
            "metadata": {"name": name, "namespace": namespace},
            "spec": spec,
        }
        for name, spec in parts.boards.items()
    ]
    return [*claims, job_manifest(app, parts, revision=revision), *boards]


def _template(name: str) -> Template:
    try:
        return find(name)
    except Invalid as error:
        raise NotFound(str(error)) from error


async def _current(request: Request, namespace: str, name: str) -> Object | None:
    if not name:
        return None
    try:
        app = await person_of(request).client.get(APPS, namespace, name)
    except NotFound:
        return None
    return app if name_of(app) == name else None


async def _schema(request: Request) -> Response:
    kind = request.path_params["kind"]
    schemas = _schemas()
    if kind not in schemas:
        near = nearest(kind, schemas)
        raise NotFound(f"no kind {kind!r} has a form{f'; did you mean {near}?' if near else ''}")
    return json_response(schema_of(kind))


@cache
def _schemas() -> dict[str, Any]:
    ours = {resource.kind: resource for resource in registry.resources()}
    builtin = {resource.kind: resource for resource in builtin_resources() if resource.kind in _BUILTIN}
    return {**ours, **builtin}


@cache
def schema_of(kind: str) -> Object:
    """Return the OpenAPI schema of a kind, and all components that it refers to."""
    resource = _schemas()[kind]
    components = reachable(resource.schema, builtin_components())
    return {"kind": kind, "apiVersion": resource.api_version, "schema": resource.schema, "components": components}


ROUTES: tuple[BaseRoute, ...] = (
    Route("/api/templates", _templates),
    Route("/api/templates/{name}/render", _render, methods=["POST"]),
    Route("/api/schemas/{kind}", _schema),
)
