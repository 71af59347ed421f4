"""OpenAPI v3, one document per group and version: what kubectl needs to create, apply, explain and diff."""

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
_TYPE_AND_METADATA: Mapping[str, Any] = {"apiVersion": _API_VERSION, "kind": _KIND, "metadata": _METADATA}
_SCALE_SCHEMAS: Mapping[str, Any] = {
    _SCALE: {
        "type": "object",
        "properties": {
            **_TYPE_AND_METADATA,
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
    def __init__(self, kinds: LiveKinds) -> None:
        self._kinds = kinds
        # By path below /openapi/v3, with the resources of the document.
        self._documents: dict[str, tuple[tuple[Resource, ...], bytes]] = {}
        # The last v2 document: its scheme, and whether it is protobuf.
        self._v2_document: tuple[Scheme, bool, bytes] | None = None

    def respond(self, request: HttpRequest) -> HttpResponse:
        if request.parts == ("openapi", "v2"):
            return self._v2_response(request)
        if request.parts[:2] != ("openapi", "v3"):
            raise page_not_found()
        below, paths = "/".join(request.parts[2:]), self._paths()
        if not below:
            self._documents = {path: document for path, document in self._documents.items() if path in paths}
            urls = {path: {"serverRelativeURL": self._url(path, resources)} for path, resources in paths.items()}
            # Kubernetes' content type, although it is JSON.
            return HttpResponse(body=object_response({"paths": urls}).body, content_type=PLAIN)
        if below not in paths:
            return HttpResponse(code=404, body=b"", content_type="")
        return HttpResponse(body=self._document(below, paths[below]))

    def _v2_response(self, request: HttpRequest) -> HttpResponse:
        is_protobuf = _SWAGGER in request.headers.get("accept", "")
        scheme = self._kinds.scheme
        if self._v2_document is None or self._v2_document[:2] != (scheme, is_protobuf):
            schemas = {
                **scheme.components,
                **{resource.schema_name: _complete(resource) for resource in scheme.resources},
            }
            self._v2_document = (scheme, is_protobuf, as_protobuf(schemas) if is_protobuf else as_json(schemas))
        return HttpResponse(body=self._v2_document[2], content_type=PROTOBUF if is_protobuf else _JSON)

    def _paths(self) -> dict[str, tuple[Resource, ...]]:
        paths: dict[str, tuple[Resource, ...]] = {}
        for resource in self._kinds.scheme.resources:
            path = _path(resource.group, resource.version)
            paths[path] = (*paths.get(path, ()), resource)
        return paths

    def _url(self, path: str, resources: tuple[Resource, ...]) -> str:
        # Clients cache the document by this hash.
        return f"/openapi/v3/{path}?hash={sha256(self._document(path, resources)).hexdigest().upper()}"

    def _document(self, path: str, resources: tuple[Resource, ...]) -> bytes:
        cached = self._documents.get(path)
        if cached is None or cached[0] != resources:
            self._documents[path] = cached = (resources, orjson.dumps(self._describe(resources)))
        return cached[1]

    def _definition_schema(self, resource: Resource) -> Mapping[str, Any] | None:
        """Return the schema in the definition of a resource; None for built-in kinds."""
        definition = None if resource.is_builtin else self._kinds.definition_of(resource)
        for version in definition["spec"]["versions"] if definition else ():
            if version["name"] == resource.version and "schema" in version:
                schema: Mapping[str, Any] = version["schema"]["openAPIV3Schema"]
                return schema
        return None

    def _describe(self, resources: tuple[Resource, ...]) -> Object:
        schemas = {kind.schema_name: _complete(kind, self._definition_schema(kind)) for kind in resources}
        lists = {f"{resource.schema_name}List": _list_schema(resource) for resource in resources}
        roots = {"allOf": [*schemas.values(), *lists.values()]}
        needed = reachable(roots, self._kinds.scheme.components)
        scales = _SCALE_SCHEMAS if any(resource.scale for resource in resources) else {}
        paths: Object = {}
        for resource in resources:
            paths |= _paths_of(resource)
        return {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes", "version": "v1"},
            "paths": paths,
            "components": {"schemas": {**needed, **schemas, **lists, **scales}},
        }


def _path(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def _complete(resource: Resource, written: Mapping[str, Any] | None = None) -> Object:
    """Return the schema of a resource with apiVersion, kind, metadata and the GVK extension."""
    is_known = written is None or resource.is_structural
    schema = dict(resource.schema if is_known else written or {})
    if resource.is_structural or not is_known:
        schema = _published(schema)
    if "properties" in schema or resource.is_structural:
        head = {} if resource.is_builtin else _TYPE_AND_METADATA
        schema["properties"] = {**schema.get("properties", {}), **head}
    schema["x-kubernetes-group-version-kind"] = [_gvk(resource)]
    return schema


def _published(schema: Mapping[str, Any]) -> Object:
    """Express the extensions of a structural schema in plain OpenAPI, for other clients."""
    published = dict(schema)
    if published.get("x-kubernetes-int-or-string") and "anyOf" not in published:
        published["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if "properties" in published:
        published["properties"] = {name: _published(inner) for name, inner in published["properties"].items()}
    for part in ("items", "additionalProperties"):
        if isinstance(published.get(part), Mapping):
            published[part] = _published(published[part])
    if published.get("x-kubernetes-embedded-resource"):
        published["properties"] = {**published.get("properties", {}), **_TYPE_AND_METADATA}
        required = (name for name in published.get("required", ()) if name not in _TYPE_AND_METADATA)
        published["required"] = [*required, "kind", "apiVersion"]
    return published


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
        paths[f"{one}/scale"] = {**_changing(resource, result=_SCALE), "parameters": named}
    if resource.namespaced:
        paths[f"/{_path(resource.group, resource.version)}/{resource.plural}"] = {"get": _operation(resource, "list")}
    return paths


def _changing(resource: Resource, *, result: str = "") -> Object:
    patches = (*_PATCHES, _STRATEGIC) if resource.is_builtin else _PATCHES
    return {
        "get": _operation(resource, "get", result=result),
        "put": _operation(resource, "put", body=(_JSON,), result=result),
        "patch": _operation(resource, "patch", body=patches, result=result),
    }


def _operation(resource: Resource, action: str, *, body: tuple[str, ...] = (), result: str = "") -> Object:
    """Describe one verb; kubectl checks dryRun and fieldValidation of patch for support."""
    many = "List" if action in {"list", "deletecollection"} else ""
    schema = {"$ref": REF + (result or resource.schema_name + many)}
    operation: Object = {
        "operationId": f"{action}{resource.kind}",
        "responses": {"200": {"description": "OK", "content": {_JSON: {"schema": schema}}}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(resource),
    }
    if body:
        body_schema: dict[str, Any] = {"type": "object"} if action == "patch" else schema
        operation["requestBody"] = {"required": True, "content": {sort: {"schema": body_schema} for sort in body}}
        names = ("dryRun", "fieldManager", "fieldValidation", "pretty", *(("force",) if action == "patch" else ()))
        operation["parameters"] = [_parameter(name, "query") for name in names]
    return operation


def _parameter(name: str, place: str) -> Object:
    return {"name": name, "in": place, "required": place == "path", "schema": {"type": "string"}}
