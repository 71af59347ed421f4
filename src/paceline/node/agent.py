"""The node agent: reconciles the pods that are bound to this node, one plan at a time."""

import asyncio
import functools
import logging
import re
import signal
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from paceline.apimachinery.meta import Key, Object, is_deleting, key_of, revision_of, uid_of
from paceline.apimachinery.pods import TERMINAL_PHASES, containers_of, is_terminal
from paceline.client.event_recorder import Recorder
from paceline.client.informer import Informer
from paceline.client.interface import CLAIMS, PODS, VOLUMES, Change, Cluster
from paceline.client.workqueue import WorkQueue, run
from paceline.effects import Effects, Executor, ProcessHandle
from paceline.errors import Conflict, NotFound, ServiceUnavailable
from paceline.model.retention import RetentionPolicy
from paceline.node.devices import Devices
from paceline.node.host_info import CannotStart, Folders, Host
from paceline.node.images import NOT_PULLED, NOT_RENEWED, Images, backed_off
from paceline.node.lifecycle import state_files
from paceline.node.lifecycle.decide import START_RECORD_DELAY, decide
from paceline.node.lifecycle.events import PodEvent, events_of, pulled
from paceline.node.lifecycle.eviction import Evictions, without_grace
from paceline.node.lifecycle.killer import ContainerKiller, Hooks
from paceline.node.lifecycle.starter import Starter
from paceline.node.lifecycle.view import ContainerAttempt, PodPlan, PodView, StartProblem, field_path
from paceline.node.logs.archive import LogArchive
from paceline.node.logs.garbage_collection import LogGC
from paceline.node.network.network import SHARED_NETWORK, Networks, PodNetwork
from paceline.node.network.pod_hosts import Hosts
from paceline.node.probes.prober import ExecProbe, Prober
from paceline.node.probes.workers import ProbeWorkers
from paceline.node.registration import Registration
from paceline.node.runtime.env import CONFIG_ERROR
from paceline.node.runtime.exec_types import RunExec
from paceline.node.volumes.reclaim import VolumeReclaimer
from paceline.node.volumes.references import Sources, TokenCache
from paceline.node.volumes.refresh import VolumeRefresher
from paceline.node.volumes.volumes import Mounts

log = logging.getLogger(__name__)

WORKERS = 8
# How many events are sent at a time.
EVENTS_AT_ONCE = 2
# A pass repeats after it started containers; more rounds than a pod has stages mean a bug.
MAX_ROUNDS = 100
# A blocked container is retried after half the time it has been blocked, within these bounds.
SOONEST_SECONDS, LATEST_SECONDS = 1.0, 60.0
# A uid is part of a path.
_UID = re.compile(r"[0-9A-Za-z-]{1,64}")


@dataclass(slots=True, kw_only=True)
class Agent:
    """The agent and its parts. It may be killed at any moment: no state that matters lives in memory only."""

    cluster: Cluster
    world: Effects
    blocking: Executor
    recorder: Recorder
    host: Host
    folders: Folders
    images: Images
    find_sandbox: Callable[[], str | None]
    # How many logs of deleted pods are kept.
    log_retention: RetentionPolicy = field(default_factory=RetentionPolicy)
    # Runs commands in containers; without it, exec probes and hooks fail.
    command: RunExec | None = None
    # How pods are connected, and what creates their networks where each has its own.
    network: PodNetwork = SHARED_NETWORK
    networks: Networks | None = None
    # None where the agent may not mount.
    mounts: Mounts | None = None
    queue: WorkQueue[str] = field(init=False)
    hosts: Hosts = field(init=False)
    pods: Informer = field(init=False)
    _claims: Informer = field(init=False)
    _volumes: Informer = field(init=False)
    starter: Starter = field(init=False)
    _reclaim: VolumeReclaimer = field(init=False)
    _evictions: Evictions = field(init=False)
    _log_gc: LogGC = field(init=False)
    _probes: ProbeWorkers = field(init=False)
    _killer: ContainerKiller = field(init=False)
    _group: asyncio.TaskGroup = field(init=False)
    # The pods bound to this node, by uid.
    _keys: dict[str, Key] = field(init=False, default_factory=dict)
    # Since when containers of a pod cannot start.
    _blocked: dict[str, datetime] = field(init=False, default_factory=dict)
    _followed: set[ProcessHandle] = field(init=False, default_factory=set)
    # Shims of containers whose postStart hook this process has begun.
    _post_start_begun: set[ProcessHandle] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        """Create the parts; nothing runs before `run`."""
        chance = self.world.chance
        self.queue = WorkQueue(chance)
        self.hosts = Hosts(files=self.world.files, folders=self.folders, network=self.network)
        # All pods, bound or not: peers must resolve by name before the first of them starts.
        self.pods = Informer(self.cluster, PODS, chance=chance, on_change=self._pod_changed)
        self._claims = Informer(self.cluster, CLAIMS, chance=chance, on_change=self._claim_changed)
        self._volumes = Informer(self.cluster, VOLUMES, chance=chance, on_change=self._volume_changed)
        self._reclaim = VolumeReclaimer(
            cluster=self.cluster,
            files=self.world.files,
            blocking=self.blocking,
            chance=chance,
            volumes=self._volumes.cache,
            recorder=self.recorder,
            root=self.folders.claims,
        )
        self._evictions = Evictions(
            files=self.world.files,
            folders=self.folders,
            host=self.host,
            blocking=self.blocking,
            pods=self.pods.cache,
            on_change=self.queue.add,
        )
        self.starter = self._make_starter()
        self._log_gc = LogGC(
            archive=self.starter.archive,
            blocking=self.blocking,
            recorder=self.recorder,
            host=self.host,
            pods=self.pods.cache,
        )
        self.images.environments.listen(self._environment_changed)
        prober = Prober(exec_probe=ExecProbe(starter=self.starter, command=self.command) if self.command else None)
        self._killer = ContainerKiller(
            world=self.world,
            folders=self.folders,
            recorder=self.recorder,
            hooks=Hooks(prober=prober, recorder=self.recorder, address=self.hosts.address),
            on_change=self.queue.add,
        )
        self._probes = ProbeWorkers(
            prober=prober,
            clock=self.world.clock,
            recorder=self.recorder,
            address=self.hosts.address,
            on_change=self.queue.add,
        )

    def _make_starter(self) -> Starter:
        return Starter(
            cluster=self.cluster,
            world=self.world,
            host=self.host,
            folders=self.folders,
            hosts=self.hosts,
            archive=LogArchive(world=self.world, folders=self.folders, policy=self.log_retention),
            images=self.images,
            claims=self._claims.cache,
            volumes=self._volumes.cache,
            find_sandbox=self.find_sandbox,
            devices=Devices(files=self.world.files, folders=self.folders, pools=self.host.device_pools),
            tokens=TokenCache(cluster=self.cluster, clock=self.world.clock),
            networks=self.networks,
            mounts=self.mounts,
        )

    async def run(self, ready: asyncio.Event) -> None:
        """Run until cancelled; `ready` is set once the node is registered and all informers are in sync."""
        self.world.files.make_folder(self.folders.pods)
        self.hosts.load()
        self.starter.devices.load()
        registration = Registration(
            cluster=self.cluster,
            clock=self.world.clock,
            host=self.host,
            find_sandbox=self.find_sandbox,
            network=self.network,
        )
        informers = (self.pods, self._claims, self._volumes)
        async with asyncio.TaskGroup() as group:
            self._group = group
            for informer in informers:
                group.create_task(informer.run())
            for informer in informers:
                await informer.has_synced.wait()
            await registration.register_with_retry()
            # Deleted pods too: their containers are killed and their folders cleared.
            for uid in self._local_pods():
                self.queue.add(uid)
            group.create_task(registration.run())
            group.create_task(self._reclaim.run())
            group.create_task(self._log_gc.run())
            group.create_task(self._evictions.run())
            group.create_task(VolumeRefresher(starter=self.starter, pods=self.pods.cache).run())
            ready.set()
            try:
                await run(self.queue, self.reconcile, workers=WORKERS)
            finally:
                self._killer.close()

    def _local_pods(self) -> frozenset[str]:
        """Return the uid of every pod that has a folder, a network or a mount on this node."""
        others = [resources.pod_uids() for resources in (self.networks, self.mounts) if resources is not None]
        return frozenset(self.world.files.names(self.folders.pods)).union(*others)

    async def reconcile(self, uid: str) -> None:
        """Read one pod's folders, decide, carry the plan out, report the status, and requeue the pod."""
        pod = self._pod(uid)
        try:
            if pod is None:
                await self._clear(uid)
            else:
                await self._sync(uid, pod)
        except OSError as error:
            raise ServiceUnavailable(f"the node agent cannot use its folder {self.folders.root}: {error}") from error

    async def _sync(self, uid: str, pod: Object) -> None:
        problems: dict[str, StartProblem] = {}
        eviction = self._evictions.message(uid)
        pod = without_grace(pod) if eviction else pod
        addresses = {"address": self.hosts.address(pod), "host_address": self.network.host_address}
        for _ in range(MAX_ROUNDS):
            view = self._killer.add_to(state_files.read_view(self.world, self.folders, pod, **addresses))
            health = self._probes.health(pod, view.attempts)
            attempts = self._probes.with_post_start(uid, view.attempts)
            view = replace(view, problems=problems, eviction=eviction, health=health, attempts=attempts)
            plan = decide(view, self.world.clock.now())
            if not plan.record and not plan.start:
                break
            for name, ended in plan.record:
                state_files.write_ended(self.world.files, self._folder(view, name), ended)
            problems |= await self._start(pod, plan)
        has_stopped = self._killer.carry_out(self._group, view, plan)
        self._follow(uid, view.attempts)
        if has_stopped:
            # Other pods may have to stop too, and by the next pass most containers have ended: one report less.
            self.queue.add(uid)
            return
        self._probes.sync(self._group, pod, view.attempts)
        self._run_post_start(view)
        if self._has_ended(view, plan):
            await self._disconnect(uid)
        await self._report(pod, plan)
        self._requeue(uid, plan, is_blocked=bool(problems))
        if plan.remove:
            await self._remove(pod)
        elif is_terminal(pod) and self._has_ended(view, plan):
            await self.blocking.run(functools.partial(self._log_gc.archive.remove_volumes, uid))

    async def _start(self, pod: Object, plan: PodPlan) -> dict[str, StartProblem]:
        """Start the containers of a plan; return why others could not be started."""
        if not plan.start:
            return {}
        specs = {str(container["name"]): container for container in containers_of(pod)}
        problems = {}
        prepared = await self._prepare(pod)
        if isinstance(prepared, StartProblem):
            return {start.container: prepared for start in plan.start}
        for start in plan.start:
            try:
                note = await self.starter.start(pod, specs[start.container], start.restarts, prepared)
            except CannotStart as error:
                problems[start.container] = await self._problem(pod, specs[start.container], error)
                continue
            folder = self.folders.attempt(uid_of(pod), start.container, start.restarts)
            if state_files.read_started(self.world.files, folder) is None:
                raise ServiceUnavailable(
                    f"the shim of container {start.container!r} ended before it started the program; see {folder}"
                )
            if note:
                part = field_path(pod, start.container)
                await self.recorder.record(pod, NOT_RENEWED, message=note, part=part, is_warning=True)
        return problems

    async def _prepare(self, pod: Object) -> Sources | StartProblem:
        """Set up what all containers of a pod share; return its sources, or what keeps them from starting."""
        try:
            return await self.starter.prepare(pod)
        except CannotStart as error:
            for message in error.messages:
                await self.recorder.record(pod, error.reason, message=message, is_warning=True)
            return StartProblem(reason=error.reason, message=str(error), is_of_pod=True)

    async def _problem(self, pod: Object, container: Object, error: CannotStart) -> StartProblem:
        now = self.world.clock.now()
        blocked_seconds = (now - self._blocked.get(uid_of(pod), now)).total_seconds()
        if error.reason == NOT_PULLED and blocked_seconds >= SOONEST_SECONDS:
            error = backed_off(container, error)
        if error.reason == CONFIG_ERROR:
            # A kubelet has pulled the image by then.
            event = pulled(str(container.get("image") or ""), self.starter.images.environment_of(container).name)
            part = field_path(pod, str(container["name"]))
            await self.recorder.record(pod, event.reason, message=event.message, part=part)
        return StartProblem(reason=error.reason, message=str(error))

    def _run_post_start(self, view: PodView) -> None:
        """Run the postStart hooks that have not run yet, also those that another agent began."""
        uid, running = uid_of(view.pod), view.running
        for container in containers_of(view.pod):
            name = str(container["name"])
            attempt = running.get(name)
            if attempt is None or attempt.shim is None or view.is_post_start_done(name):
                continue
            has_failed = self._probes.has_post_start_failed((uid, name, attempt.restarts))
            if attempt.shim not in self._post_start_begun and not has_failed:
                self._post_start_begun.add(attempt.shim)
                self._spawn(self._post_start(view, container, attempt.restarts))

    async def _post_start(self, view: PodView, container: Object, restarts: int) -> None:
        name, uid = str(container["name"]), uid_of(view.pod)
        is_good = await self._killer.hooks.post_start(view.pod, container, is_current=lambda: self._is_current(uid))
        if is_good:
            state_files.write_post_start_done(self.world.files, self._folder(view, name))
        self._probes.set_post_start((uid, name, restarts), is_good=is_good)

    def _is_current(self, uid: str) -> bool:
        """Return whether a pod exists and is not being deleted."""
        pod = self._pod(uid)
        return pod is not None and not is_deleting(pod)

    def _follow(self, uid: str, attempts: Mapping[str, ContainerAttempt]) -> None:
        """Reconcile the pod again when one of its shims ends."""
        for attempt in attempts.values():
            if attempt.has_shim and attempt.shim is None:
                self.queue.add_after(uid, START_RECORD_DELAY.total_seconds())
            elif attempt.has_shim and attempt.shim is not None and attempt.shim not in self._followed:
                self._followed.add(attempt.shim)
                self._spawn(self._await_end(uid, attempt.shim))

    async def _await_end(self, uid: str, shim: ProcessHandle) -> None:
        try:
            await self.world.processes.ended(shim)
        finally:
            self._followed.discard(shim)
            self._killer.forget(shim)
            self._post_start_begun.discard(shim)
        self.queue.add(uid)

    async def _report(self, pod: Object, plan: PodPlan) -> None:
        """Write a changed status, then record its events; after a Conflict the queue tries again."""
        old = pod.get("status") or {}
        if plan.status is None or all(old.get(name) == value for name, value in plan.status.items()):
            return
        patch = {"metadata": {"resourceVersion": revision_of(pod)}, "status": plan.status}
        try:
            written = await self.cluster.patch(PODS, key_of(pod), patch, subresource="status")
        except NotFound:
            return  # The pod is gone; the watch will report it.
        self.pods.observe(written)
        if events := events_of(old, plan.status):
            # In a task of its own: the next step need not wait for events.
            self._spawn(self._record(written, events))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task; an agent that is shutting down starts none."""
        try:
            self._group.create_task(work)
        except RuntimeError:
            # Python 3.11 would warn about a coroutine that was never awaited.
            work.close()
            raise

    async def _record(self, pod: Object, events: tuple[PodEvent, ...]) -> None:
        for event in events:
            details = {"message": event.message, "part": event.part}
            await self.recorder.record(pod, event.reason, is_warning=event.is_warning, **details)

    def _requeue(self, uid: str, plan: PodPlan, *, is_blocked: bool) -> None:
        now = self.world.clock.now()
        if plan.wake_at is not None:
            self.queue.add_after(uid, max((plan.wake_at - now).total_seconds(), 0.0))
        if not is_blocked:
            self._blocked.pop(uid, None)
            return
        blocked_seconds = (now - self._blocked.setdefault(uid, now)).total_seconds()
        self.queue.add_after(uid, min(max(blocked_seconds / 2, SOONEST_SECONDS), LATEST_SECONDS))

    async def _remove(self, pod: Object) -> None:
        """Delete a pod's object, now that nothing of it runs."""
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid_of(pod)}}
        try:
            await self.cluster.delete(PODS, key_of(pod), options)
        except (NotFound, Conflict):
            return  # Deleted, or another pod has the name by now.

    async def _clear(self, uid: str) -> None:
        """Kill the containers of a deleted pod, then archive its logs and remove its folders."""
        names = self.world.files.names(self.folders.containers(uid))
        latest = state_files.latest_attempts(self.world, self.folders, uid, names)
        supervised = {name: attempt for name, attempt in latest.items() if attempt.has_shim}
        for attempt in supervised.values():
            self._killer.send(attempt, signal.SIGQUIT)
        self._follow(uid, supervised)
        if not supervised:
            await self._disconnect(uid)
        if supervised or not self.world.files.exists(self.folders.pod(uid)):
            return
        # In a thread: removing a pod's scratch folders may take long.
        if await self.blocking.run(functools.partial(self._log_gc.archive.archive_or_remove, uid)):
            self._log_gc.hint()

    async def _disconnect(self, uid: str) -> None:
        """Release the devices, mounts and network of a pod in which nothing runs any more."""
        self.starter.devices.release(uid)
        if self.mounts is not None:
            await self.mounts.unmount(uid)
        if self.networks is not None:
            await self.networks.remove(uid)

    def _has_ended(self, view: PodView, plan: PodPlan) -> bool:
        """Return whether nothing of a pod runs or will run again."""
        status = plan.status or view.pod.get("status") or {}
        is_over = plan.remove or status.get("phase") in TERMINAL_PHASES
        return is_over and not any(attempt.has_shim for attempt in view.attempts.values())

    def _pod(self, uid: str) -> Object | None:
        key = self._keys.get(uid)
        pod = self.pods.cache.get(key) if key else None
        return pod if pod is not None and uid_of(pod) == uid else None

    def _folder(self, view: PodView, name: str) -> Path:
        return self.folders.attempt(uid_of(view.pod), name, view.attempts[name].restarts)

    def _pod_changed(self, change: Change, old: Object | None, new: Object | None) -> None:
        pod = new or old or {}
        uid = uid_of(pod)
        if change is Change.ADDED:
            self.hosts.add(pod)
        elif change is Change.DELETED:
            self.hosts.remove(pod)
            self._keys.pop(uid, None)
            self._blocked.pop(uid, None)
            self._probes.forget(uid)
            self._evictions.forget(uid)
        # Once for many changes: running pods have the hosts file mounted already.
        asyncio.get_running_loop().call_soon(self.hosts.try_flush)
        if pod["spec"].get("nodeName") == self.host.name and _UID.fullmatch(uid):
            if new is not None:
                self._keys[uid] = key_of(pod)
            # A deleted pod goes first: its grace period is running.
            self.queue.add(uid, is_urgent=new is not None and is_deleting(new) and not is_deleting(old or {}))

    def _volume_changed(self, change: Change, old: Object | None, new: Object | None) -> None:
        self._claim_changed(change, old, new)
        if new is not None:
            self._reclaim.enqueue(new)

    def _environment_changed(self) -> None:
        """Retry pods that wait for an image, with a new back-off."""
        for uid in self._blocked:
            self._blocked[uid] = self.world.clock.now()
            self.queue.add(uid)

    def _claim_changed(self, _change: Change, _old: Object | None, _new: Object | None) -> None:
        for uid in self._blocked:
            self.queue.add(uid)
