"""Subresources of pods: binding and log."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from functools import partial

from paceline.apimachinery.field_errors import FieldFault, forbidden, invalid, required
from paceline.apimachinery.meta import Object, is_deleting
from paceline.apimachinery.name_validation import subdomain_problem
from paceline.apimachinery.pods import containers_of
from paceline.apimachinery.timestamps import moment_from, to_wire
from paceline.apiserver import object_strategy, status_errors
from paceline.apiserver.config import Server
from paceline.apiserver.encoding.request_body import read_object
from paceline.apiserver.handlers.list_options import int_param
from paceline.apiserver.http_types import HttpRequest, HttpResponse, Write, success_response
from paceline.apiserver.paths import Target
from paceline.apiserver.slicing import offload
from paceline.store.store import Stored

# About 2000 years: more would exceed the range of dates.
MOST_SINCE_SECONDS = 60_000_000_000


class PodHandler:
    def __init__(self, server: Server) -> None:
        self._server = server

    async def bind(self, request: HttpRequest, target: Target) -> HttpResponse:
        binding = await offload(self._server.blocking, len(request.body), partial(read_object, request, "Binding"))
        node = _node_of(binding, target)

        async def step(stored: Stored) -> Stored:
            pod = object_strategy.read(stored.value)
            _check_binding(pod, binding, target)
            bound = _bound(pod, node, binding, now=to_wire(self._server.clock.now()))
            render = partial(object_strategy.write, bound)
            return await self._server.store.replace(target.key, render, expected=stored.revision)

        await self._server.update(target, step)
        return success_response({"code": 201}, code=201)

    async def log(self, request: HttpRequest, target: Target) -> "HttpResponse | LogStream":
        query = _log_query(request, target.name)
        pod = self._server.read(target)
        container = container_of(pod, query.get("container", ""), target.name)
        if not pod["spec"].get("nodeName"):
            return HttpResponse(code=204, body=b"", content_type="text/plain")
        query = {**query, "container": container}
        return LogStream(self._server.nodes.logs(target.namespace, pod, query))


class LogStream:
    content_type = "text/plain"

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    async def run(self, write: Write) -> None:
        """Copy the log; nothing is sent before the node has sent something or ended without an error."""
        try:
            async for chunk in self._chunks:
                await write(chunk)
            await write(b"")
        finally:
            # Disconnect from the node at once, not when the garbage is collected.
            if isinstance(self._chunks, AsyncGenerator):
                await self._chunks.aclose()


def _node_of(binding: Object, target: Target) -> str:
    reference = binding.get("target")
    node = reference.get("name") if isinstance(reference, dict) else None
    if not node:
        raise status_errors.invalid("Binding", target.name, (required("target.name"),))
    if problem := subdomain_problem(str(node)):
        raise status_errors.invalid("Binding", target.name, (invalid("target.name", node, problem),))
    annotations = binding.get("metadata", {}).get("annotations") or {}
    if not isinstance(annotations, dict) or not all(isinstance(value, str) for value in annotations.values()):
        fault = invalid("metadata.annotations", annotations, "must be a mapping of strings")
        raise status_errors.invalid("Binding", target.name, (fault,))
    return str(node)


def _check_binding(pod: Object, binding: Object, target: Target) -> None:
    uid = (binding.get("metadata") or {}).get("uid")
    resource, name = "pods/binding", target.name
    if uid and uid != pod["metadata"]["uid"]:
        reason = f"the uid in the binding is {uid}, that of the pod is {pod['metadata']['uid']}"
        raise status_errors.conflict(resource, name, reason)
    if is_deleting(pod):
        raise status_errors.conflict(resource, name, f"pod {name} is being deleted, cannot be assigned to a host")
    if node := pod["spec"].get("nodeName"):
        raise status_errors.conflict(resource, name, f'pod {name} is already assigned to node "{node}"')


def _bound(pod: Object, node: str, binding: Object, *, now: str) -> Object:
    # The nomination ends with the binding.
    status = {name: value for name, value in (pod.get("status") or {}).items() if name != "nominatedNodeName"}
    conditions = [condition for condition in status.get("conditions") or () if condition.get("type") != "PodScheduled"]
    scheduled = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    metadata = dict(pod["metadata"])
    if annotations := (binding.get("metadata") or {}).get("annotations"):
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **annotations}
    return {
        **pod,
        "metadata": metadata,
        "spec": {**pod["spec"], "nodeName": node},
        "status": {**status, "conditions": [*conditions, scheduled]},
    }


def _log_query(request: HttpRequest, name: str) -> Mapping[str, str]:
    """Return the validated log options; they are checked in Kubernetes' order."""
    query, faults = request.query, []
    numbers = {option: int_param(request, option) for option in ("tailLines", "limitBytes", "sinceSeconds")}
    if (numbers["sinceSeconds"] or 0) > MOST_SINCE_SECONDS:
        raise status_errors.bad_request(f"sinceSeconds must be at most {MOST_SINCE_SECONDS}")
    since = query.get("sinceTime", "")
    if since:
        try:
            moment_from(since)
        except ValueError as error:
            raise status_errors.bad_request(f"sinceTime must be like 2030-01-31T12:00:00Z, not {since}") from error
    if (tail := numbers["tailLines"]) is not None and tail < 0:
        faults.append(FieldFault("tailLines", tail, "must be greater than or equal to 0"))
    if (limit := numbers["limitBytes"]) is not None and limit < 1:
        faults.append(FieldFault("limitBytes", limit, "must be greater than 0"))
    if since and numbers["sinceSeconds"] is not None:
        faults.append(forbidden("[]", "at most one of `sinceTime` or `sinceSeconds` may be specified"))
    elif (seconds := numbers["sinceSeconds"]) is not None and seconds < 1:
        faults.append(FieldFault("sinceSeconds", seconds, "must be greater than 0"))
    if "stream" in query:
        # In Kubernetes this is behind a feature gate.
        faults.append(forbidden("stream", "may not be specified"))
    if faults:
        raise status_errors.invalid("PodLogOptions", name, faults)
    return {
        option: query[option]
        for option in ("container", "tailLines", "limitBytes", "sinceSeconds", "sinceTime")
        if query.get(option)
    } | {option: "true" for option in ("follow", "previous", "timestamps") if request.flag(option)}


def container_of(pod: Object, requested: str, name: str) -> str:
    main = [str(container["name"]) for container in pod["spec"].get("containers") or ()]
    names = [str(container["name"]) for container in containers_of(pod)]
    if requested:
        if requested not in names:
            raise status_errors.bad_request(f"container {requested} is not valid for pod {name}")
        return requested
    if len(main) == 1:
        return main[0]
    listed = " ".join(names)
    raise status_errors.bad_request(f"a container name must be specified for pod {name}, choose one of: [{listed}]")
