"""The controller of TensorBoards and Notebooks: one pod each, while somebody may want to look into it."""

import asyncio
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from paceline.apimachinery.meta import (
    Key,
    Object,
    annotations_of,
    controller_of,
    is_deleting,
    key_of,
    labels_of,
    name_of,
    namespace_of,
    owned_by,
    uid_of,
)
from paceline.apimachinery.pods import is_ready
from paceline.apimachinery.timestamps import from_wire
from paceline.apimachinery.untrusted import untrusted
from paceline.client.event_recorder import Recorder
from paceline.client.informer import Handler, Informer, running
from paceline.client.interface import PODS, SECRETS, SERVICES, SLICES, Change, Cluster, Collection, Select
from paceline.client.workqueue import WorkQueue, run
from paceline.controllers.job.snapshot import why_of
from paceline.controllers.refusals import Refusals
from paceline.effects import Clock, Random
from paceline.errors import AlreadyExists, BadRequest, Conflict, Forbidden, Invalid, NotFound
from paceline.kinds import registry
from paceline.kinds.kind_types import VERSION, ServiceKind
from paceline.model import reasons, well_known_labels
from paceline.model.gang import PodTools
from paceline.model.interactive import InteractiveWorkload, ServiceStatus, service_name
from paceline.plan.interactive.decide import ServicePlan, ServicePod, ServiceSeen, Use, decide, hindered, refused
from paceline.plan.interactive.manifests import (
    DIGEST,
    HIGH,
    address_of,
    confined_pod,
    door_manifest,
    pod_manifest,
    token_manifest,
    type_of,
)
from paceline.plan.job.snapshot import PodPhase

# (plural, namespace, name) of a TensorBoard or Notebook.
ServiceKey = tuple[str, str, str]

# In the message of a pod that Pod Security does not admit.
POD_SECURITY = "violates PodSecurity"
WORKERS = 2
KINDS = {kind.plural: kind for kind in registry.SERVICES}
COMPONENTS = ",".join(kind.kind.lower() for kind in registry.SERVICES)


class Visits(Protocol):
    """Counts the requests that are passed on to services."""

    def used(self, namespace: str, service: str) -> datetime | None:
        """Return the time of the last request; now while one is open."""
        ...

    def opened(self, namespace: str, service: str) -> datetime | None:
        """Return when a page was last opened."""
        ...

    def listen(self, hear: Callable[[str, str], None]) -> None:
        """Call a function on requests; frequent ones are merged."""
        ...


def collection_of(kind: ServiceKind) -> Collection:
    """Return the collection of an interactive kind."""
    return Collection(group=kind.group, version=VERSION, plural=kind.plural)


@dataclass(slots=True, kw_only=True)
class InteractiveController:
    """Reconciles TensorBoards and Notebooks with their pods, Services and EndpointSlices."""

    cluster: Cluster
    clock: Clock
    chance: Random
    recorder: Recorder
    # Only this namespace; all of them when it is empty.
    namespace: str = ""
    # Returns a new random token.
    token: Callable[[], str]
    # None where requests are not counted: then only workloads that report it are idle.
    visits: Visits | None = None
    # The address of node ports; empty for the address of the pod's node.
    node_address: str = ""
    # Whether the API server serves T9k's URL paths.
    serves_pages: bool = True
    # The image of our own containers.
    tools: PodTools = field(default_factory=PodTools)
    queue: WorkQueue[ServiceKey] = field(init=False)
    _plurals: dict[tuple[str, str], str] = field(init=False)
    _workloads: dict[str, Informer] = field(init=False)
    _pods: Informer = field(init=False)
    _services: Informer = field(init=False)
    # A workload is reachable only once its slice has the address of the pod.
    _slices: Informer = field(init=False)
    # Why the cluster rejected the pod, Service or Secret of a workload.
    _refusals: Refusals[ServiceKey] = field(init=False, default_factory=Refusals)
    # Workloads whose token was made for a pod that is not there yet, so that it is not made with every retry.
    _tokens: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        self.queue = WorkQueue(self.chance, name="interactive")
        self._plurals = {(f"{kind.group}/{VERSION}", kind.kind): kind.plural for kind in KINDS.values()}
        self._workloads = {
            kind.plural: Informer(
                self.cluster,
                collection_of(kind),
                select=Select(namespace=self.namespace),
                chance=self.chance,
                on_change=self._changed(kind.plural),
            )
            for kind in KINDS.values()
        }
        ours = Select(namespace=self.namespace, labels=f"{well_known_labels.COMPONENT} in ({COMPONENTS})")
        self._pods, self._services = (
            Informer(self.cluster, where, select=ours, chance=self.chance, on_change=self._owned_changed)
            for where in (PODS, SERVICES)
        )
        self._slices = Informer(self.cluster, SLICES, select=ours, chance=self.chance, on_change=self._slice_changed)
        if self.visits is not None:
            self.visits.listen(self._visited)

    async def run(self, synced: asyncio.Event) -> None:
        """Work until cancelled; `synced` is set once every cache has been filled."""
        async with running(*self._workloads.values(), self._pods, self._services, self._slices, synced=synced):
            await run(self.queue, self.reconcile, workers=WORKERS)

    async def reconcile(self, key: ServiceKey) -> None:
        """Look at one, decide, carry out, and say when to look again."""
        plural, namespace, name = key
        service = self._workloads[plural].cache.get((namespace, name))
        if service is None or is_deleting(service):
            self._refusals.forget(key)
            return
        try:
            view = self._look(service)
        except Invalid as error:
            await self._refuse(service, str(error))
            return
        except BadRequest as error:
            await self._say_unreadable(service, error)
            return
        plan = self._decide(key, view)
        try:
            await self._carry_out(service, view, plan)
        except (Forbidden, Invalid) as error:
            # A quota, perhaps: what is too much now need not be so for ever.
            await self._hinder(key, service, str(error), view=view)
            return
        except NotFound:
            # It went while the plan was made, and what was made for it goes too.
            return
        except BadRequest as error:
            await self._say_unreadable(service, error)
            return
        if plan.makes_anything and self._refusals.of(key, view.generation) is not None:
            # What was rejected before is there now: the next status says so.
            self._refusals.forget(key)
            self.queue.add(key)
        if plan.wake_at is not None:
            pause = (plan.wake_at - self.clock.now()).total_seconds()
            self.queue.add_after(key, max(pause, 0.0))

    def _decide(self, key: ServiceKey, view: ServiceSeen) -> ServicePlan:
        """Return the plan; while something is rejected, its status says so, and creation is tried again rarely."""
        now = self.clock.now()
        plan = decide(view, now)
        refusal = self._refusals.of(key, view.generation)
        if refusal is None or not plan.makes_anything:
            return plan
        return hindered(view, plan, refusal.message, now=now, until=refusal.until)

    async def _hinder(self, key: ServiceKey, service: Object, message: str, *, view: ServiceSeen) -> None:
        """Remember what the cluster rejected, and record it if it is new; the next status shows it."""
        is_new = self._refusals.add(key, message, generation=view.generation, now=self.clock.now())
        if is_new:
            await self.recorder.record(service, reasons.REFUSED, message=message, is_warning=True)
        self.queue.add(key)

    async def _say_unreadable(self, service: Object, error: BadRequest) -> None:
        """Record an event about a malformed field, which its author must correct; what runs goes on."""
        await self.recorder.record(service, reasons.UNREADABLE, message=str(error), is_warning=True)

    def _look(self, service: Object) -> ServiceSeen:
        # Not among what may be misread: a spec without faults can be expanded, or the kind is broken.
        return self._around(service, registry.expand_service(service, self.tools))

    @untrusted
    def _around(self, service: Object, window: InteractiveWorkload) -> ServiceSeen:
        """Read what others wrote on a service and on what is its own; BadRequest when nobody can."""
        doors = [door for door in self._services.owned(uid_of(service)) if name_of(door) == window.service]
        reached = {
            uid
            for door in doors
            for endpoint_slice in self._slices.owned(uid_of(door))
            for uid in ready_pod_uids(endpoint_slice)
        }
        pods = self._pods.owned(uid_of(service))
        return ServiceSeen(
            window=window,
            status=ServiceStatus.from_wire(service.get("status") or {}),
            pods=tuple(pod_seen(pod, reached) for pod in pods),
            has_door=bool(doors),
            door_type=type_of(doors[0]) if doors else window.service_type,
            address=address_of(doors[0], self._node(doors[0], pods)) if doors else "",
            generation=int(service["metadata"].get("generation", 1)),
            use=self._use(service, window),
            asked_by=annotations_of(service).get(well_known_labels.ASKED_BY, ""),
            serves_pages=self.serves_pages,
        )

    def _node(self, door: Object, pods: Iterable[Object]) -> str:
        """Return the address of a node that a high port is asked at; who waits for a balancer is not sent to a node."""
        if self.node_address or type_of(door) != HIGH:
            return self.node_address
        return next((str(ip) for pod in pods if (ip := (pod.get("status") or {}).get("hostIP"))), "")

    def _use(self, service: Object, window: InteractiveWorkload) -> Use:
        opened_at = _moment(annotations_of(service).get(well_known_labels.OPENED_AT, ""))
        if self.visits is None:
            return Use(used=opened_at, opened=opened_at)
        moments = [self.visits.opened(window.namespace, window.service), opened_at]
        return Use(
            is_counted=True,
            used=self.visits.used(window.namespace, window.service),
            opened=max((moment for moment in moments if moment is not None), default=None),
        )

    async def _carry_out(self, service: Object, view: ServiceSeen, plan: ServicePlan) -> None:
        """Write, unmake, make, tell; every step is safe to repeat."""
        written = await self._write(service, plan.status)
        for pod in plan.delete:
            await self._unmake(service, pod)
        owner = owned_by(written)
        if plan.makes_door:
            self._services.observe(await self._make(SERVICES, door_manifest(view.window, owner=owner), written))
        if plan.changes_door:
            await self._change_door(view.window)
        if plan.makes_pod:
            await self._make_token(view.window, written)
            self._pods.observe(await self._make_pod(view.window, written))
            self._tokens.discard(uid_of(service))
        for event in plan.events:
            await self.recorder.record(written, event.reason, message=event.message, is_warning=event.is_warning)

    async def _write(self, service: Object, status: ServiceStatus) -> Object:
        wire = status.to_wire()
        if wire == service.get("status"):
            return service
        where = self._where(service)
        written = await self.cluster.replace(where, {**service, "status": wire}, subresource="status")
        self._workloads[where.plural].observe(written)
        return written

    async def _unmake(self, service: Object, pod: ServicePod) -> None:
        try:
            await self.cluster.delete(PODS, (namespace_of(service), pod.name), {"preconditions": {"uid": pod.uid}})
        except (NotFound, Conflict):
            # The one that was meant is gone.
            return

    async def _make(self, where: Collection, manifest: Object, service: Object) -> Object:
        try:
            return await self.cluster.create(where, manifest)
        except AlreadyExists:
            current = await self.cluster.get(where, *key_of(manifest))
            owner = controller_of(current)
            if owner is None or owner["uid"] != uid_of(service) or is_deleting(current):
                subject = f"{manifest['kind'].lower()} {name_of(manifest)}"
                raise Conflict(f"{subject} is there and belongs to somebody else, or is going") from None
            return current

    async def _make_pod(self, window: InteractiveWorkload, service: Object) -> Object:
        """Create the pod; a confined one if the namespace admits no other."""
        pod = pod_manifest(window, owner=owned_by(service), is_proxied=not self.serves_pages)
        try:
            return await self._make(PODS, pod, service)
        except Forbidden as error:
            if not window.is_confinable or POD_SECURITY not in str(error):
                raise
        # The unprivileged user may be unable to read private files of a claim, so this is only the second choice.
        return await self._make(PODS, confined_pod(pod), service)

    async def _change_door(self, window: InteractiveWorkload) -> None:
        """Have the service reached from elsewhere; what it has for its old type, the cluster takes back."""
        change = {"spec": {"type": window.service_type}}
        self._services.observe(await self.cluster.patch(SERVICES, (window.namespace, window.service), change))

    async def _make_token(self, window: InteractiveWorkload, service: Object) -> None:
        """Make the token once; it is never read here, so that nobody need let this controller read secrets."""
        if not window.has_token or uid_of(service) in self._tokens:
            return
        with suppress(AlreadyExists):
            await self.cluster.create(SECRETS, token_manifest(window, self.token(), owner=owned_by(service)))
        self._tokens.add(uid_of(service))

    async def _refuse(self, service: Object, message: str) -> None:
        """Write into the status why the object is invalid; its author must change it."""
        status = ServiceStatus.from_wire(service.get("status") or {})
        generation = int(service["metadata"].get("generation", 1))
        new_status = refused(status, message, self.clock.now()).but(observed_generation=generation)
        if new_status != status:
            written = await self._write(service, new_status)
            await self.recorder.record(written, reasons.INVALID, message=message, is_warning=True)

    def _where(self, service: Object) -> Collection:
        return collection_of(KINDS[self._plurals[str(service["apiVersion"]), str(service["kind"])]])

    def _changed(self, plural: str) -> Handler:
        def changed(_change: Change, old: Object | None, new: Object | None) -> None:
            if new is None and old is not None:
                self._tokens.discard(uid_of(old))
            self.queue.add((plural, *key_of(new or old or {})))

        return changed

    def _owned_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        obj = new or old or {}
        owner = controller_of(obj) or {}
        plural = self._plurals.get((str(owner.get("apiVersion")), str(owner.get("kind"))))
        if plural is not None:
            self.queue.add((plural, namespace_of(obj), str(owner["name"])))

    def _slice_changed(self, _change: Change, old: Object | None, new: Object | None) -> None:
        endpoint_slice = new or old or {}
        labels = labels_of(endpoint_slice)
        plural = next(
            (kind.plural for kind in KINDS.values() if kind.kind == labels.get(well_known_labels.OWNER_KIND)), None
        )
        if plural is not None:
            self.queue.add((plural, namespace_of(endpoint_slice), labels.get(well_known_labels.OWNER_NAME, "")))

    def _visited(self, namespace: str, service: str) -> None:
        key: Key
        for plural, informer in self._workloads.items():
            key = (namespace, service.removeprefix(service_name(plural, "")))
            if key in informer.cache and service_name(plural, key[1]) == service:
                self.queue.add((plural, *key))


def ready_pod_uids(endpoint_slice: Object) -> Iterator[str]:
    """Yield the uids of the pods that a service leads to."""
    for endpoint in endpoint_slice.get("endpoints") or ():
        if (endpoint.get("conditions") or {}).get("ready"):
            yield str((endpoint.get("targetRef") or {}).get("uid"))


def pod_seen(pod: Object, reached: Container[str]) -> ServicePod:
    """Read one pod of a service; it is ready once it says so and people can reach it."""
    status = pod.get("status") or {}
    reason, message = why_of(status)
    return ServicePod(
        name=name_of(pod),
        uid=uid_of(pod),
        phase=PodPhase(status.get("phase") or PodPhase.PENDING),
        is_ready=is_ready(pod) and uid_of(pod) in reached,
        is_deleting=is_deleting(pod),
        digest=annotations_of(pod).get(DIGEST, ""),
        reason=reason,
        message=message,
    )


def _moment(text: str) -> datetime | None:
    """Read a moment that somebody wrote; None when it is none."""
    try:
        moment = from_wire(text)
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None
