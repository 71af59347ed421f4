"""OpenAPI v3, one document per group and version: enough for kubectl to create, apply, explain and diff."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import orjson

from paceline.apimachinery.meta import Object
from paceline.apimachinery.schema import META, REF, reachable
from paceline.apimachinery.scheme import Resource, Scheme
from paceline.apiserver.crd.registry import LiveKinds
from paceline.apiserver.encoding.openapi_v2 import PROTOBUF, as_json, as_protobuf
from paceline.apiserver.http_types import PLAIN, HttpRequest, HttpResponse, object_response
from paceline.apiserver.status_errors import page_not_found

_JSON = "application/json"
_PATCHES = ("application/apply-patch+yaml", "application/json-patch+json", "application/merge-patch+json")
_SWAGGER = "application/com.github.proto-openapi.spec.v2"
_STRATEGIC = "application/strategic-merge-patch+json"
_LIST_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"
_SCALE = "io.k8s.api.autoscaling.v1.Scale"

_CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_API_VERSION = {
    "description": "APIVersion defines the versioned schema of this representation of an object. Servers should "
    "convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: "
    f"{_CONVENTIONS}#resources",
    "type": "string",
}
_KIND = {
    "description": "Kind is a string value representing the REST resource this object represents. Servers may infer "
    "this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: "
    f"{_CONVENTIONS}#types-kinds",
    "type": "string",
}
_METADATA = {
    "description": f"Standard object's metadata. More info: {_CONVENTIONS}#metadata",
    "allOf": [{"$ref": REF + META}],
}
_OWN: Mapping[str, Any] = {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": _METADATA}
_SCALE_SCHEMAS: Mapping[str, Any] = {
    _SCALE: {
        "type": "object",
        "properties": {
            **_OWN,
            "spec": {"type": "object", "properties": {"replicas": {"type": "integer", "format": "int32"}}},
            "status": {
                "type": "object",
                "required": ["replicas"],
                "properties": {"replicas": {"type": "integer", "format": "int32"}, "selector": {"type": "string"}},
            },
        },
        "x-kubernetes-group-version-kind": [{"group": "autoscaling", "kind": "Scale", "version": "v1"}],
    }
}


class OpenApi:
    """The documents about what is served, each made when it is first asked for."""

    def __init__(self, kinds: LiveKinds) -> None:
        self._kinds = kinds
        # By path below /openapi/v3, with the kinds it is about; as many as there are groups and versions.
        self._made: dict[str, tuple[tuple[Resource, ...], bytes]] = {}
        # The last document of version 2: of which scheme, and whether in protobuf.
        self._older: tuple[Scheme, bool, bytes] | None = None

    def answer(self, request: HttpRequest) -> HttpResponse:
        """Answer a path below /openapi."""
        if request.parts == ("openapi", "v2"):
            return self._version_two(request)
        if request.parts[:2] != ("openapi", "v3"):
            raise page_not_found()
        below, paths = "/".join(request.parts[2:]), self._paths()
        if not below:
            self._made = {path: made for path, made in self._made.items() if path in paths}
            urls = {path: {"serverRelativeURL": self._url(path, about)} for path, about in paths.items()}
            # As Kubernetes does, though it is JSON.
            return HttpResponse(body=object_response({"paths": urls}).body, content_type=PLAIN)
        if below not in paths:
            return HttpResponse(code=404, body=b"", content_type="")
        return HttpResponse(body=self._document(below, paths[below]))

    def _version_two(self, request: HttpRequest) -> HttpResponse:
        """Answer in the old form: kubectl asks for it when the new one does not know a kind, a List for example."""
        is_protobuf = _SWAGGER in request.headers.get("accept", "")
        scheme = self._kinds.scheme
        if self._older is None or self._older[:2] != (scheme, is_protobuf):
            schemas = {**scheme.components, **{each.schema_name: _marked(each) for each in scheme.resources}}
            self._older = (scheme, is_protobuf, as_protobuf(schemas) if is_protobuf else as_json(schemas))
        return HttpResponse(body=self._older[2], content_type=PROTOBUF if is_protobuf else _JSON)

    def _paths(self) -> dict[str, tuple[Resource, ...]]:
        found: dict[str, tuple[Resource, ...]] = {}
        for each in self._kinds.scheme.resources:
            path = _path(each.group, each.version)
            found[path] = (*found.get(path, ()), each)
        return found

    def _url(self, path: str, about: tuple[Resource, ...]) -> str:
        # The hash lets clients keep the document until it changes.
        return f"/openapi/v3/{path}?hash={sha256(self._document(path, about)).hexdigest().upper()}"

    def _document(self, path: str, about: tuple[Resource, ...]) -> bytes:
        known = self._made.get(path)
        if known is None or known[0] != about:
            self._made[path] = known = (about, orjson.dumps(self._describe(about)))
        return known[1]

    def _written(self, resource: Resource) -> Mapping[str, Any] | None:
        """Give the schema that a kind's definition spells out; None for a kind that has no definition."""
        definition = None if resource.is_builtin else self._kinds.definition_of(resource)
        for version in definition["spec"]["versions"] if definition else ():
            if version["name"] == resource.version and "schema" in version:
                schema: Mapping[str, Any] = version["schema"]["openAPIV3Schema"]
                return schema
        return None

    def _describe(self, about: tuple[Resource, ...]) -> Object:
        own = {each.schema_name: _marked(each, self._written(each)) for each in about}
        lists = {f"{each.schema_name}List": _list_schema(each) for each in about}
        wanted = {"allOf": [*own.values(), *lists.values()]}
        needed = reachable(wanted, self._kinds.scheme.components)
        scales = _SCALE_SCHEMAS if any(each.scale for each in about) else {}
        paths: Object = {}
        for resource in about:
            paths |= _paths_of(resource)
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "v1"},
            "paths": paths,
            "components": {"schemas": {**needed, **own, **lists, **scales}},
        }


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _marked(resource: Resource, written: Mapping[str, Any] | None = None) -> Object:
    """Give a kind's schema, as it is written or as it is known here, with what makes it a whole object of that kind."""
    is_known = written is None or resource.is_structural
    schema = dict(resource.schema if is_known else written or {})
    if resource.is_structural or not is_known:
        schema = _published(schema)
    if "properties" in schema or resource.is_structural:
        own = {} if resource.is_builtin else _OWN
        schema["properties"] = {**schema.get("properties", {}), **own}
    schema["x-kubernetes-group-version-kind"] = [_gvk(resource)]
    return schema


def _published(schema: Mapping[str, Any]) -> Object:
    """Say what a structural schema says only by its extensions, for clients that do not know them."""
    said = dict(schema)
    if said.get("x-kubernetes-int-or-string") and "anyOf" not in said:
        said["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if "properties" in said:
        said["properties"] = {name: _published(each) for name, each in said["properties"].items()}
    for part in ("items", "additionalProperties"):
        if isinstance(said.get(part), Mapping):
            said[part] = _published(said[part])
    if said.get("x-kubernetes-embedded-resource"):
        said["properties"] = {**said.get("properties", {}), **_OWN}
        said["required"] = [*(each for each in said.get("required", ()) if each not in _OWN), "kind", "apiVersion"]
    return said


def _list_schema(resource: Resource) -> Object:
    items = {"type": "array", "items": {"$ref": REF + resource.schema_name}}
    items["description"] = f"List of {resource.plural}. More info: {_CONVENTIONS}"
    metadata = {
        "description": f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds",
        "allOf": [{"$ref": REF + _LIST_META}],
    }
    schema: Object = {
        "description": f"{resource.list_name} is a list of {resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {"apiVersion": _API_VERSION, "items": items, "kind": _KIND, "metadata": metadata},
        "x-kubernetes-group-version-kind": [{**_gvk(resource), "kind": resource.list_name}],
    }
    if resource.selectable:
        schema["x-kubernetes-selectable-fields"] = [{"fieldPath": path} for path in resource.selectable]
    return schema


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
    if resource.scale:
        paths[f"{one}/scale"] = {**_changing(resource, answers=_SCALE), "parameters": named}
    if resource.namespaced:
        paths[f"/{_path(resource.group, resource.version)}/{resource.plural}"] = {"get": _operation(resource, "list")}
    return paths


def _changing(resource: Resource, *, answers: str = "") -> Object:
    patches = (*_PATCHES, _STRATEGIC) if resource.is_builtin else _PATCHES
    return {
        "get": _operation(resource, "get", answers=answers),
        "put": _operation(resource, "put", body=(_JSON,), answers=answers),
        "patch": _operation(resource, "patch", body=patches, answers=answers),
    }


def _operation(resource: Resource, action: str, *, body: tuple[str, ...] = (), answers: str = "") -> Object:
    """Describe one verb; kubectl looks for dryRun and fieldValidation on patch to learn what it may ask for."""
    many = "List" if action in {"list", "deletecollection"} else ""
    schema = {"$ref": REF + (answers or resource.schema_name + many)}
    operation: Object = {
        "operationId": f"{action}{resource.kind}",
        "responses": {"200": {"description": "OK", "content": {_JSON: {"schema": schema}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(resource),
    }
    if body:
        given: dict[str, Any] = {"type": "object"} if action == "patch" else schema
        operation["requestBody"] = {"required": True, "content": {sort: {"schema": given} for sort in body}}
        names = ("dryRun", "fieldManager", "fieldValidation", "pretty", *(("force",) if action == "patch" else ()))
        operation["parameters"] = [_parameter(name, "query") for name in names]
    return operation


def _parameter(name: str, place: str) -> Object:
    return {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}}
