"""The scale subresource: desired and actual replicas, at the paths in the definition."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson

from paceline.apimachinery.crd.crd import value_at
from paceline.apimachinery.field_errors import FieldFault
from paceline.apimachinery.json_patch import PatchFailed, apply_operations, merge
from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Column, Resource, ScalePaths
from paceline.apimachinery.table import AGE
from paceline.apiserver import object_strategy, status_errors
from paceline.apiserver.config import Server
from paceline.apiserver.encoding.negotiation import render_object
from paceline.apiserver.encoding.request_body import content_type, read_json, read_object, read_options
from paceline.apiserver.handlers.create_update import WriteHandler
from paceline.apiserver.handlers.patch import JSON_PATCH, MERGE
from paceline.apiserver.http_types import HttpRequest, HttpResponse, WriteOptions
from paceline.apiserver.managed_fields import author_of
from paceline.apiserver.paths import Target
from paceline.apiserver.slicing import offload
from paceline.errors import BadRequest
from paceline.store.store import Stored

API_VERSION, KIND = "autoscaling/v1", "Scale"
# The columns of a scale.
SCALE = Resource(
    group="autoscaling",
    version="v1",
    kind=KIND,
    plural="scales",
    schema_name="",
    schema={},
    columns=(
        Column(name="Desired", path=".spec.replicas", type="integer"),
        Column(name="Available", path=".status.replicas", type="integer"),
        AGE,
    ),
)
_SHOWN = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


class ScaleHandler:
    def __init__(self, server: Server, writes: WriteHandler) -> None:
        self._server = server
        self._writes = writes

    async def serve(self, request: HttpRequest, target: Target) -> HttpResponse:
        match request.method:
            case "GET":
                return self._shown(request, target, self._server.find(target))
            case "PUT":
                options = read_options(request, "UpdateOptions")
                scale = await offload(self._server.blocking, len(request.body), partial(read_object, request, KIND))
                return await self._scaled(request, target, lambda _: scale, options=options)
            case "PATCH":
                options = read_options(request, "PatchOptions")
                patched = await offload(self._server.blocking, len(request.body), partial(_patch_of, request))
                return await self._scaled(request, target, patched, options=options)
            case _:
                raise status_errors.method_not_allowed()

    async def _scaled(
        self, request: HttpRequest, target: Target, edit_scale: Any, *, options: WriteOptions
    ) -> HttpResponse:
        """Set the replicas of an object to those of a scale, which is derived from the current one."""
        main = Target(resource=target.resource, namespace=target.namespace, name=target.name)

        def edit(old: Object) -> Object:
            return _with_scale(old, edit_scale(_scale_of(old, _paths(target))), target)

        stored = await self._writes.change(main, edit, options=options, author=author_of(request, target))
        return self._shown(request, target, stored)

    def _shown(self, request: HttpRequest, target: Target, stored: Stored) -> HttpResponse:
        scale = orjson.dumps(_scale_of(object_strategy.read(stored.value), _paths(target)))
        shown = Stored(key=stored.key, value=scale, revision=stored.revision, created=stored.created)
        return HttpResponse(body=render_object(request, SCALE, shown, clock=self._server.clock))


def _paths(target: Target) -> ScalePaths:
    paths = target.resource.scale
    if paths is None:
        raise status_errors.no_such_path()
    return paths


def _scale_of(obj: Object, paths: ScalePaths) -> Object:
    metadata = {part: obj["metadata"][part] for part in _SHOWN if part in obj["metadata"]}
    desired, actual = value_at(obj, paths.spec), value_at(obj, paths.status)
    status: Object = {"replicas": actual if isinstance(actual, int) else 0}
    selector = value_at(obj, paths.selector) if paths.selector else None
    if isinstance(selector, str) and selector:
        status["selector"] = selector
    spec = {"replicas": desired} if isinstance(desired, int) and desired else {}
    return {"kind": KIND, "apiVersion": API_VERSION, "metadata": metadata, "spec": spec, "status": status}


def _with_scale(old: Object, scale: Object, target: Target) -> Object:
    """Return the object with the replicas of a scale; raise Conflict if the scale is outdated."""
    metadata = scale.get("metadata") or {}
    for field in ("resourceVersion", "uid"):
        if metadata.get(field) and metadata[field] != old["metadata"][field]:
            raise status_errors.object_modified(target.resource, target.name)
    spec = scale.get("spec")
    replicas = spec.get("replicas", 0) if isinstance(spec, Mapping) else 0
    if not isinstance(replicas, int) or isinstance(replicas, bool):
        fault = FieldFault("spec.replicas", replicas, "must be an integer")
        raise status_errors.invalid(target.resource.kind, target.name, (fault,), group=target.resource.group)
    new = object_strategy.read(object_strategy.write(old, int(old["metadata"]["resourceVersion"])))
    holder: Object = new
    *steps, last = _paths(target).spec[1:].split(".")
    for step in steps:
        inner = holder.get(step)
        holder[step] = inner if isinstance(inner, dict) else {}
        holder = holder[step]
    holder[last] = replicas
    return new


def _patch_of(request: HttpRequest) -> Any:
    sort = content_type(request)
    if sort not in {JSON_PATCH, MERGE}:
        raise status_errors.unsupported_media_type(f"{JSON_PATCH}, {MERGE}")
    patch = read_json(request.body, "the patch")

    def patched(scale: Object) -> Any:
        try:
            new = apply_operations(scale, patch) if sort == JSON_PATCH else merge(scale, patch)
        except (PatchFailed, BadRequest) as error:
            raise status_errors.bad_request(str(error)) from error
        if not isinstance(new, dict):
            raise status_errors.bad_request("the result of the patch is not an object")
        return new

    return patched
