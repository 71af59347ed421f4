"""OpenAPI v3, one document per group and version: enough for kubectl to create, apply, explain and diff."""

from hashlib import sha256
from typing import Any

import orjson

from paceline.api.change import is_builtin
from paceline.api.exchange import Answer, Request, answer
from paceline.api.refusal import no_such_path
from paceline.api.write import JSON_PATCH, MERGE, STRATEGIC
from paceline.objects.meta import Object
from paceline.objects.schema import META, REF, reachable
from paceline.objects.scheme import Resource, Scheme

_JSON = "application/json"
_PATCHES = (JSON_PATCH, MERGE)


class OpenApi:
    """The documents of one scheme, each made when it is first asked for."""

    def __init__(self, scheme: Scheme) -> None:
        self._scheme = scheme
        # By path below /openapi/v3; as many as there are groups and versions.
        self._paths = {_path(group, version): (group, version) for group, version in scheme.groups()}
        self._made: dict[str, bytes] = {}

    def answer(self, request: Request) -> Answer:
        """Answer a path below /openapi."""
        if request.parts[:2] != ("openapi", "v3"):
            raise no_such_path()
        below = "/".join(request.parts[2:])
        if not below:
            return answer({"paths": {path: {"serverRelativeURL": self._url(path)} for path in self._paths}})
        if below not in self._paths:
            raise no_such_path()
        return Answer(body=self._document(below))

    def _url(self, path: str) -> str:
        # The hash lets clients keep the document until it changes.
        return f"/openapi/v3/{path}?hash={sha256(self._document(path)).hexdigest().upper()}"

    def _document(self, path: str) -> bytes:
        if path not in self._made:
            self._made[path] = orjson.dumps(self._describe(*self._paths[path]))
        return self._made[path]

    def _describe(self, group: str, version: str) -> Object:
        resources = [each for each in self._scheme.resources if (each.group, each.version) == (group, version)]
        own = {each.schema_name: _marked(each) for each in resources}
        lists = {f"{each.schema_name}List": _list_schema(each) for each in resources}
        needed = reachable({"allOf": [*own.values()]}, self._scheme.components)
        paths: Object = {}
        for resource in resources:
            paths |= _paths_of(resource)
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "v1"},
            "paths": paths,
            "components": {"schemas": {**needed, **own, **lists}},
        }


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _marked(resource: Resource) -> Object:
    """Give a kind's schema with what makes it a whole object of that kind."""
    schema = dict(resource.schema)
    if "properties" in schema:
        known = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"$ref": REF + META}}
        schema["properties"] = {**schema["properties"], **known}
    schema["x-kubernetes-group-version-kind"] = [_gvk(resource)]
    return schema


def _list_schema(resource: Resource) -> Object:
    items = {"type": "array", "items": {"$ref": REF + resource.schema_name}}
    text = {"type": "string"}
    properties = {"apiVersion": text, "kind": text, "metadata": {"type": "object"}, "items": items}
    gvk = {**_gvk(resource), "kind": f"{resource.kind}List"}
    return {
        "type": "object",
        "required": ["items"],
        "properties": properties,
        "x-kubernetes-group-version-kind": [gvk],
    }


def _gvk(resource: Resource) -> Object:
    return {"group": resource.group, "kind": resource.kind, "version": resource.version}


def _paths_of(resource: Resource) -> Object:
    middle = "/namespaces/{namespace}" if resource.namespaced else ""
    collection = f"/{_path(resource.group, resource.version)}{middle}/{resource.plural}"
    where = [_parameter("namespace", "path")] if resource.namespaced else []
    one, named = f"{collection}/{{name}}", [*where, _parameter("name", "path")]
    paths: Object = {
        collection: {
            "get": _operation(resource, "list"),
            "post": _operation(resource, "post", body=(_JSON,)),
            "delete": _operation(resource, "deletecollection"),
            "parameters": where,
        },
        one: {**_changing(resource), "delete": _operation(resource, "delete"), "parameters": named},
    }
    if resource.has_status:
        paths[f"{one}/status"] = {**_changing(resource), "parameters": named}
    if resource.namespaced:
        paths[f"/{_path(resource.group, resource.version)}/{resource.plural}"] = {"get": _operation(resource, "list")}
    return paths


def _changing(resource: Resource) -> Object:
    return {
        "get": _operation(resource, "get"),
        "put": _operation(resource, "put", body=(_JSON,)),
        "patch": _operation(resource, "patch", body=(*_PATCHES, STRATEGIC) if is_builtin(resource) else _PATCHES),
    }


def _operation(resource: Resource, action: str, *, body: tuple[str, ...] = ()) -> Object:
    """Describe one verb; kubectl looks for dryRun and fieldValidation on patch to learn what it may ask for."""
    schema = {"$ref": REF + resource.schema_name + ("List" if action in {"list", "deletecollection"} else "")}
    operation: Object = {
        "operationId": f"{action}{resource.kind}",
        "responses": {"200": {"description": "OK", "content": {_JSON: {"schema": schema}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(resource),
    }
    if body:
        given: dict[str, Any] = {"type": "object"} if action == "patch" else schema
        operation["requestBody"] = {"required": True, "content": {sort: {"schema": given} for sort in body}}
        names = ("dryRun", "fieldManager", "fieldValidation", "pretty")
        operation["parameters"] = [_parameter(name, "query") for name in names]
    return operation


def _parameter(name: str, place: str) -> Object:
    return {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}}
