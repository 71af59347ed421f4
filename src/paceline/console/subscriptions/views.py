"""Views: what pages show, rendered by pure functions from objects that are followed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from paceline.apimachinery.meta import Object, controller_of, uid_of
from paceline.client.interface import CONFIG_MAPS, EVENTS, NODES, PODS, SERVICES, Collection, Select
from paceline.console.subscriptions.feeds import FeedKey, Form
from paceline.console.subscriptions.messages import ViewRequest
from paceline.errors import BadRequest, NotFound
from paceline.kinds.apps.expand import stem_of_app
from paceline.kinds.kind_types import VERSION
from paceline.kinds.registry import KINDS, every_kind
from paceline.model import scheduling_queue, well_known_labels
from paceline.model.scheduling_queue import SchedulingQueue, read_queue
from paceline.presentation.apps.app_page import app_page
from paceline.presentation.apps.app_parts import AppObjects
from paceline.presentation.job_page import job_page
from paceline.presentation.overview_page import overview_page
from paceline.presentation.queue_position import position_fields, position_of

Inputs = Mapping[str, tuple[Object, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewSource:
    """One kind of view: what it is rendered from, by name, and how. Rendering raises NotFound without its object."""

    inputs: Callable[[ViewRequest], Mapping[str, FeedKey]]
    render: Callable[[ViewRequest, Inputs, datetime], Object]
    # Inputs that the cluster need not have, or the person need not see.
    optional: frozenset[str] = frozenset()


def collection_of(kind: str) -> Collection:
    """Return the collection of one of our kinds; raise BadRequest for another one."""
    match = next((candidate for candidate in every_kind() if candidate.kind == kind), None)
    if match is None:
        raise BadRequest(f"kind: {kind!r} is not a kind of Paceline")
    return Collection(group=match.group, version=VERSION, plural=match.plural)


def job_rows_key(namespace: str) -> FeedKey:
    """Return the feed of the rows of all jobs."""
    collections = tuple(Collection(group=kind.group, version=VERSION, plural=kind.plural) for kind in KINDS)
    return FeedKey(collections=collections, select=Select(namespace=namespace), form=Form.ROW)


def one_object(collection: Collection, request: ViewRequest) -> FeedKey:
    """Return the feed of the object that a view is about."""
    if not (request.namespace and request.name):
        raise BadRequest("a view of an object needs kind, namespace and name")
    select = Select(namespace=request.namespace, fields=f"metadata.name={request.name}")
    return FeedKey(collections=(collection,), select=select, form=Form.OBJECT)


def queue_key() -> FeedKey:
    """Return the feed of the scheduling queue, which only the embedded cluster has."""
    select = Select(namespace=scheduling_queue.NAMESPACE, fields=f"metadata.name={scheduling_queue.NAME}")
    return FeedKey(collections=(CONFIG_MAPS,), select=select, form=Form.OBJECT)


def _queue_in(inputs: Inputs) -> SchedulingQueue:
    return read_queue(next(iter(inputs["queue"]), None))


def _render_queue(_request: ViewRequest, inputs: Inputs, _now: datetime) -> Object:
    """Return the places of all jobs that wait for room, for the rows of a list."""
    queue = _queue_in(inputs)
    return {"length": queue.length, "uids": [entry.uid for entry in queue.entries]}


def _job_inputs(request: ViewRequest) -> Mapping[str, FeedKey]:
    owned = Select(namespace=request.namespace, labels=f"{well_known_labels.OWNER_NAME}={request.name}")
    return {
        "job": one_object(collection_of(request.kind), request),
        "pods": FeedKey(collections=(PODS,), select=owned, form=Form.OBJECT, is_input=True),
        "events": FeedKey(
            collections=(EVENTS,), select=Select(namespace=request.namespace), form=Form.EVENT, about=request.name
        ),
        "queue": queue_key(),
    }


def _render_job(request: ViewRequest, inputs: Inputs, now: datetime) -> Object:
    job = next(iter(inputs["job"]), None)
    if job is None:
        raise NotFound(f"{request.kind} {request.namespace}/{request.name} does not exist")
    # Not those of an earlier job of the same name.
    pods = [pod for pod in inputs["pods"] if (controller_of(pod) or {}).get("uid") == uid_of(job)]
    page = job_page(job, pods, inputs["events"], now)
    return page | {"queue": position_fields(position_of(job, _queue_in(inputs)))}


RECORDS, APPS = collection_of("JobRecord"), collection_of("TrainingApp")


def _app_inputs(request: ViewRequest) -> Mapping[str, FeedKey]:
    stem, here = stem_of_app(request.name), Select(namespace=request.namespace)
    labelled = Select(namespace=request.namespace, labels=f"{well_known_labels.APP}={stem}")
    owned = Select(namespace=request.namespace, labels=well_known_labels.OWNER_NAME)
    named = Select(namespace=request.namespace, fields=f"involvedObject.name={request.name}")
    jobs = tuple(Collection(group=kind.group, version=VERSION, plural=kind.plural) for kind in KINDS)
    return {
        "app": one_object(APPS, request),
        "records": FeedKey(collections=(RECORDS,), select=labelled, form=Form.OBJECT),
        "jobs": FeedKey(collections=jobs, select=labelled, form=Form.OBJECT),
        "tensorboards": FeedKey(collections=(collection_of("TensorBoard"),), select=labelled, form=Form.OBJECT),
        "pods": FeedKey(collections=(PODS,), select=owned, form=Form.OWNED, about=stem),
        "services": FeedKey(collections=(SERVICES,), select=owned, form=Form.OWNED, about=stem),
        "events": FeedKey(collections=(EVENTS,), select=here, form=Form.EVENT, about=stem),
        # The names of its objects begin with its name, unless that is long.
        **({} if stem == request.name else {"own": FeedKey(collections=(EVENTS,), select=named, form=Form.OBJECT)}),
    }


def _render_app(request: ViewRequest, inputs: Inputs, now: datetime) -> Object:
    app = next(iter(inputs["app"]), None)
    if app is None:
        raise NotFound(f"application {request.namespace}/{request.name} does not exist")
    parts = {name: inputs[name] for name in ("records", "jobs", "pods", "services", "tensorboards")}
    return app_page(AppObjects(app=app, **parts, events=(*inputs["events"], *inputs.get("own", ()))), now)


NODE_METRICS = Collection(group="metrics.k8s.io", version="v1beta1", plural="nodes", namespaced=False)


def _overview_inputs(_request: ViewRequest) -> Mapping[str, FeedKey]:
    everywhere = Select()
    return {
        "nodes": FeedKey(collections=(NODES,), select=everywhere, form=Form.OBJECT),
        "pods": FeedKey(collections=(PODS,), select=everywhere, form=Form.REQUESTS),
        "usage": FeedKey(collections=(NODE_METRICS,), select=everywhere, form=Form.POLLED),
    }


def _render_overview(_request: ViewRequest, inputs: Inputs, now: datetime) -> Object:
    return overview_page(inputs["nodes"], inputs["pods"], inputs["usage"] or None, now)


VIEWS: Mapping[str, ViewSource] = {
    "app": ViewSource(inputs=_app_inputs, render=_render_app),
    "job": ViewSource(inputs=_job_inputs, render=_render_job, optional=frozenset({"queue"})),
    "overview": ViewSource(inputs=_overview_inputs, render=_render_overview, optional=frozenset({"usage"})),
    "queue": ViewSource(
        inputs=lambda _request: {"queue": queue_key()}, render=_render_queue, optional=frozenset({"queue"})
    ),
}
