"""The node agent: follow this machine's pods, and move each on by one plan at a time."""

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
from paceline.node.devices import Devices
from paceline.node.host_info import CannotStart, Folders, Host
from paceline.node.images import (
    NOT_PULLED,
    NOT_RENEWED,
    EnvironmentProvider,
    Images,
    Row,
    StaticEnvironments,
    backed_off,
)
from paceline.node.lifecycle.decide import MOMENT, decide
from paceline.node.lifecycle.events import Story, part_of, pulled, stories
from paceline.node.lifecycle.eviction import Evictions, without_grace
from paceline.node.lifecycle.killer import ContainerKiller, Hooks
from paceline.node.lifecycle.starter import Starter
from paceline.node.lifecycle.state_files import look, read_started, tries_of, write_ended, write_hooked
from paceline.node.lifecycle.termination import held_tries
from paceline.node.lifecycle.view import Plan, Problem, Seen, Try, post_start_done
from paceline.node.logs.archive import LogArchive, RetentionPolicy
from paceline.node.logs.garbage_collection import LogGC
from paceline.node.network.network import SHARED_NETWORK, Networks, PodNetwork
from paceline.node.network.pod_hosts import Hosts
from paceline.node.probes.prober import Prober, RunInside
from paceline.node.probes.workers import Checks
from paceline.node.registration import Registration
from paceline.node.runtime.env import CONFIG_ERROR
from paceline.node.runtime.exec_types import Run
from paceline.node.volumes.reclaim import VolumeReclaimer
from paceline.node.volumes.references import Sources, TokenCache
from paceline.node.volumes.refresh import VolumeRefresher
from paceline.node.volumes.volumes import Mounts

log = logging.getLogger(__name__)

WORKERS = 8
# How many events are on their way at a time.
EVENTS_AT_ONCE = 2
# A pass starts containers and looks again; more rounds than a pod has stages mean a bug.
MAX_ROUNDS = 100
# What keeps a container from starting is looked at again after half the time it has lasted, within these bounds.
SOONEST_SECONDS, LATEST_SECONDS = 1.0, 60.0
# A uid is part of a path.
_UID = re.compile(r"[0-9A-Za-z-]{1,64}")


@dataclass(slots=True, kw_only=True)
class Agent:
    """Everything the agent is made of. Nothing that matters lives only in it: it may be killed at any moment."""

    cluster: Cluster
    world: Effects
    blocking: Executor
    recorder: Recorder
    host: Host
    folders: Folders
    images: tuple[Row, ...]
    find_sandbox: Callable[[], str | None]
    environments: EnvironmentProvider = field(default_factory=StaticEnvironments)
    # How much is kept of pods that are gone.
    keeping: RetentionPolicy = field(default_factory=RetentionPolicy)
    # Runs commands in containers; without it, probes and hooks that want one fail and say so.
    command: Run | None = None
    # How pods are connected, and who makes their networks where each has its own.
    network: PodNetwork = SHARED_NETWORK
    networks: Networks | None = None
    # Who mounts for pods what has to be mounted, if anybody may.
    mounts: Mounts | None = None
    queue: WorkQueue[str] = field(init=False)
    hosts: Hosts = field(init=False)
    pods: Informer = field(init=False)
    _claims: Informer = field(init=False)
    _volumes: Informer = field(init=False)
    _reclaim: VolumeReclaimer = field(init=False)
    _starter: Starter = field(init=False)
    _devices: Devices = field(init=False)
    _evictions: Evictions = field(init=False)
    _clearing: LogGC = field(init=False)
    _checks: Checks = field(init=False)
    _hooks: Hooks = field(init=False)
    _leaving: ContainerKiller = field(init=False)
    _group: asyncio.TaskGroup = field(init=False)
    # Where the pods bound to this machine are found, by uid.
    _keys: dict[str, Key] = field(init=False, default_factory=dict)
    # Since when something keeps a pod's containers from starting.
    _blocked: dict[str, datetime] = field(init=False, default_factory=dict)
    _followed: set[ProcessHandle] = field(init=False, default_factory=set)
    # Whose first hook this process has begun.
    _greeted: set[ProcessHandle] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        """Set up the caches; nothing runs before `run`."""
        chance = self.world.chance
        self.queue = WorkQueue(chance)
        self.hosts = Hosts(files=self.world.files, folders=self.folders, network=self.network)
        # All pods, bound or not: peers must be known by name before the first of them starts.
        self.pods = Informer(self.cluster, PODS, chance=chance, on_change=self._pod_changed)
        self._claims = Informer(self.cluster, CLAIMS, chance=chance, on_change=self._claim_changed)
        self._volumes = Informer(self.cluster, VOLUMES, chance=chance, on_change=self._volume_changed)
        self._reclaim = self._make_reclaim()
        self._evictions = Evictions(
            files=self.world.files,
            folders=self.folders,
            host=self.host,
            blocking=self.blocking,
            pods=self.pods.cache,
            on_change=self.queue.add,
        )
        self._devices = Devices(files=self.world.files, folders=self.folders, supplies=self.host.supplies)
        history = LogArchive(world=self.world, folders=self.folders, policy=self.keeping)
        self._clearing = LogGC(
            archive=history,
            blocking=self.blocking,
            recorder=self.recorder,
            host=self.host,
            pods=self.pods.cache,
        )
        self._starter = self._make_starter(history)
        self.environments.listen(self._environment_changed)
        asking = Prober(inside=RunInside(starter=self._starter, command=self.command) if self.command else None)
        self._hooks = Hooks(asking=asking, recorder=self.recorder, address=self.hosts.address)
        self._leaving = ContainerKiller(
            world=self.world,
            folders=self.folders,
            recorder=self.recorder,
            hooks=self._hooks,
            on_change=self.queue.add,
        )
        self._checks = Checks(
            asking=asking,
            clock=self.world.clock,
            recorder=self.recorder,
            address=self.hosts.address,
            on_change=self.queue.add,
        )

    def _make_reclaim(self) -> VolumeReclaimer:
        return VolumeReclaimer(
            cluster=self.cluster,
            files=self.world.files,
            blocking=self.blocking,
            chance=self.world.chance,
            volumes=self._volumes.cache,
            recorder=self.recorder,
            root=self.folders.claims,
        )

    def _make_starter(self, history: LogArchive) -> Starter:
        return Starter(
            cluster=self.cluster,
            world=self.world,
            host=self.host,
            folders=self.folders,
            hosts=self.hosts,
            history=history,
            images=Images(rows=self.images, environments=self.environments, host=self.host, files=self.world.files),
            claims=self._claims.cache,
            volumes=self._volumes.cache,
            find_sandbox=self.find_sandbox,
            devices=self._devices,
            tokens=TokenCache(cluster=self.cluster, clock=self.world.clock),
            networks=self.networks,
            mounts=self.mounts,
        )

    async def run(self, ready: asyncio.Event) -> None:
        """Work until cancelled; `ready` is set once the node is registered and all pods are known."""
        self.world.files.make_folder(self.folders.pods)
        self.hosts.load()
        self._devices.load()
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
            await registration.arrive()
            # Also pods that are gone from the cluster: what they left is taken over, reported or cleared away.
            for uid in self._left_behind():
                self.queue.add(uid)
            group.create_task(registration.keep())
            group.create_task(self._reclaim.run())
            group.create_task(self._clearing.run())
            group.create_task(self._evictions.run())
            group.create_task(VolumeRefresher(starter=self._starter, pods=self.pods.cache).run())
            ready.set()
            try:
                await run(self.queue, self.reconcile, workers=WORKERS)
            finally:
                self._leaving.close()

    @property
    def starter(self) -> Starter:
        """What starts this agent's containers, and knows what each of them is made from."""
        return self._starter

    def _left_behind(self) -> frozenset[str]:
        """Name every pod that this machine has something of."""
        made = [each.pod_uids() for each in (self.networks, self.mounts) if each is not None]
        return frozenset(self.world.files.names(self.folders.pods)).union(*made)

    async def reconcile(self, uid: str) -> None:
        """Look at one pod's folders, decide, carry out, report, and say when to look again."""
        pod = self._pod(uid)
        try:
            if pod is None:
                await self._clear(uid)
            else:
                await self._move_on(uid, pod)
        except OSError as error:
            raise ServiceUnavailable(f"the node agent's folder {self.folders.root}: {error}") from error

    async def _move_on(self, uid: str, pod: Object) -> None:
        problems: dict[str, Problem] = {}
        why = self._evictions.why(uid)
        pod = without_grace(pod) if why else pod
        for _ in range(MAX_ROUNDS):
            seen = look(self.world, self.folders, pod, address=self.hosts.address(pod), problems=problems)
            seen = self._leaving.recalled(replace(seen, evicted=why))
            health = self._checks.health(pod, seen.tries)
            seen = replace(seen, health=health, tries=self._checks.with_post_start(uid, seen.tries))
            seen = replace(seen, host_address=self.network.host_address)
            plan = decide(seen, self.world.clock.now())
            if not plan.record and not plan.start:
                break
            for name, ended in plan.record:
                write_ended(self.world.files, self._folder(seen, name), ended)
            problems |= await self._start(pod, plan)
        has_asked = self._leaving.carry_out(self._group, seen, plan)
        self._follow(uid, seen.tries)
        if has_asked:
            # Others may have to be asked too, and by the next look most have ended: there is one thing less to report.
            self.queue.add(uid)
            return
        self._checks.keep(self._group, pod, seen.tries)
        self._run_post_start(seen)
        if self._has_ended(seen, plan):
            await self._disconnect(uid)
        await self._report(pod, plan)
        self._look_again(uid, plan, is_blocked=bool(problems))
        if plan.remove:
            await self._remove(pod)
        elif is_terminal(seen.pod) and self._has_ended(seen, plan):
            await self.blocking.run(functools.partial(self._clearing.archive.remove_volumes, uid))

    async def _start(self, pod: Object, plan: Plan) -> dict[str, Problem]:
        """Start what is to be started; give what kept the rest from it."""
        if not plan.start:
            return {}
        specs = {str(each["name"]): each for each in containers_of(pod)}
        problems = {}
        prepared = await self._prepare(pod)
        if isinstance(prepared, Problem):
            return {start.container: prepared for start in plan.start}
        for start in plan.start:
            try:
                note = await self._starter.start(pod, specs[start.container], start.restarts, prepared)
            except CannotStart as error:
                problems[start.container] = await self._problem(pod, specs[start.container], error)
                continue
            folder = self.folders.attempt(uid_of(pod), start.container, start.restarts)
            if read_started(self.world.files, folder) is None:
                raise ServiceUnavailable(
                    f"the shim of container {start.container!r} ended before it began; see {folder}"
                )
            if note:
                part = part_of(pod, start.container)
                await self.recorder.record(pod, NOT_RENEWED, message=note, part=part, is_warning=True)
        return problems

    async def _prepare(self, pod: Object) -> Sources | Problem:
        """Make what all containers of a pod need; give what they are made from, or what keeps them from starting."""
        try:
            return await self._starter.prepare(pod)
        except CannotStart as error:
            for said in error.told:
                await self.recorder.record(pod, error.reason, message=said, is_warning=True)
            return Problem(reason=error.reason, message=str(error), is_of_pod=True)

    async def _problem(self, pod: Object, container: Object, error: CannotStart) -> Problem:
        now = self.world.clock.now()
        lasted = (now - self._blocked.get(uid_of(pod), now)).total_seconds()
        if error.reason == NOT_PULLED and lasted >= SOONEST_SECONDS:
            error = backed_off(container, error)
        if error.reason == CONFIG_ERROR:
            # What is wrong is not the image, which is there.
            story = pulled(str(container.get("image") or ""), self._starter.images.environment_of(container).name)
            part = part_of(pod, str(container["name"]))
            await self.recorder.record(pod, story.reason, message=story.message, part=part)
        return Problem(reason=error.reason, message=str(error))

    def _run_post_start(self, seen: Seen) -> None:
        """Run the first hook of each container that has not been through it, also when another agent began it."""
        uid, held = uid_of(seen.pod), held_tries(seen)
        for container in containers_of(seen.pod):
            name = str(container["name"])
            each = held.get(name)
            who = each.started.identity if each and each.started else None
            if each is None or who is None or who in self._greeted or post_start_done(seen, name):
                continue
            if not self._checks.is_unhealthy((uid, name, each.restarts)):
                self._greeted.add(who)
                self._beside(self._after_start(seen, container, each.restarts))

    async def _after_start(self, seen: Seen, container: Object, restarts: int) -> None:
        name, uid = str(container["name"]), uid_of(seen.pod)
        if await self._hooks.after_start(seen.pod, container, still=lambda: self._is_wanted(uid)):
            write_hooked(self.world.files, self._folder(seen, name))
            self._checks.welcome((uid, name, restarts))
        else:
            self._checks.mark_unhealthy((uid, name, restarts))

    def _is_wanted(self, uid: str) -> bool:
        """Tell whether a pod is there and not about to go."""
        pod = self._pod(uid)
        return pod is not None and not is_deleting(pod)

    def _follow(self, uid: str, tries: Mapping[str, Try]) -> None:
        """Have the pod looked at again when one of its shims ends."""
        for each in tries.values():
            who = each.started.identity if each.started else None
            if each.is_held and who is None:
                self.queue.add_after(uid, MOMENT.total_seconds())
            elif each.is_held and who is not None and who not in self._followed:
                self._followed.add(who)
                self._beside(self._await_end(uid, who))

    async def _await_end(self, uid: str, who: ProcessHandle) -> None:
        try:
            await self.world.processes.ended(who)
        finally:
            self._followed.discard(who)
            self._leaving.forget(who)
            self._greeted.discard(who)
        self.queue.add(uid)

    async def _report(self, pod: Object, plan: Plan) -> None:
        """Write the status if it says anything new, then tell of it; Conflict means that the pod is looked at again."""
        old = pod.get("status") or {}
        if plan.status is None or all(old.get(name) == value for name, value in plan.status.items()):
            return
        patch = {"metadata": {"resourceVersion": revision_of(pod)}, "status": plan.status}
        try:
            written = await self.cluster.patch(PODS, key_of(pod), patch, subresource="status")
        except NotFound:
            return  # The pod went meanwhile; the watch will say so.
        self.pods.observe(written)
        if told := stories(old, plan.status):
            # Beside the work: events are for people, and the next step need not wait for them.
            self._beside(self._tell(written, told))

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Begin something beside the work; an agent that is ending begins nothing any more."""
        try:
            self._group.create_task(work)
        except RuntimeError:
            # Python 3.11 would complain of a coroutine that nobody waits for.
            work.close()
            raise

    async def _tell(self, pod: Object, told: tuple[Story, ...]) -> None:
        for story in told:
            said = {"message": story.message, "part": story.part}
            await self.recorder.record(pod, story.reason, is_warning=story.is_warning, **said)

    def _look_again(self, uid: str, plan: Plan, *, is_blocked: bool) -> None:
        now = self.world.clock.now()
        if plan.wake_at is not None:
            self.queue.add_after(uid, max((plan.wake_at - now).total_seconds(), 0.0))
        if not is_blocked:
            self._blocked.pop(uid, None)
            return
        lasted = (now - self._blocked.setdefault(uid, now)).total_seconds()
        self.queue.add_after(uid, min(max(lasted / 2, SOONEST_SECONDS), LATEST_SECONDS))

    async def _remove(self, pod: Object) -> None:
        """Let a pod's object go, now that nothing of it runs."""
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid_of(pod)}}
        try:
            await self.cluster.delete(PODS, key_of(pod), options)
        except (NotFound, Conflict):
            return  # Gone, or another pod has the name by now.

    async def _clear(self, uid: str) -> None:
        """End what is left of a pod that is gone, then keep its logs and remove the rest."""
        names = self.world.files.names(self.folders.containers(uid))
        held = {name: each for name, each in tries_of(self.world, self.folders, uid, names).items() if each.is_held}
        for each in held.values():
            self._leaving.send(each, signal.SIGQUIT)
        self._follow(uid, held)
        if not held:
            await self._disconnect(uid)
        if held or not self.world.files.exists(self.folders.pod(uid)):
            return
        # Elsewhere: what a pod left in its scratch folders may take long to remove.
        if await self.blocking.run(functools.partial(self._clearing.archive.archive_or_remove, uid)):
            self._clearing.hint()

    async def _disconnect(self, uid: str) -> None:
        """Take away the network, the devices and the mounts of a pod in which nothing runs any more."""
        self._devices.release(uid)
        if self.mounts is not None:
            await self.mounts.unmount(uid)
        if self.networks is not None:
            await self.networks.remove(uid)

    def _has_ended(self, seen: Seen, plan: Plan) -> bool:
        """Tell whether nothing of a pod runs or will run again."""
        status = plan.status or seen.pod.get("status") or {}
        is_over = plan.remove or status.get("phase") in TERMINAL_PHASES
        return is_over and not any(each.is_held for each in seen.tries.values())

    def _pod(self, uid: str) -> Object | None:
        key = self._keys.get(uid)
        pod = self.pods.cache.get(key) if key else None
        return pod if pod is not None and uid_of(pod) == uid else None

    def _folder(self, seen: Seen, name: str) -> Path:
        return self.folders.attempt(uid_of(seen.pod), name, seen.tries[name].restarts)

    def _pod_changed(self, change: Change, old: Object | None, new: Object | None) -> None:
        pod = new or old or {}
        uid = uid_of(pod)
        if change is Change.ADDED:
            self.hosts.add(pod)
        elif change is Change.DELETED:
            self.hosts.remove(pod)
            self._keys.pop(uid, None)
            self._blocked.pop(uid, None)
            self._checks.forget(uid)
            self._evictions.forget(uid)
        # Soon and once for many: pods that run already have their hosts file mounted.
        asyncio.get_running_loop().call_soon(self.hosts.try_flush)
        if pod["spec"].get("nodeName") == self.host.name and _UID.fullmatch(uid):
            if new is not None:
                self._keys[uid] = key_of(pod)
            # One that has to go is asked at once: its grace is running.
            self.queue.add(uid, is_urgent=new is not None and is_deleting(new) and not is_deleting(old or {}))

    def _volume_changed(self, change: Change, old: Object | None, new: Object | None) -> None:
        self._claim_changed(change, old, new)
        if new is not None:
            self._reclaim.enqueue(new)

    def _environment_changed(self) -> None:
        """Look at pods that wait as if they had just begun to: what they wait for is another thing now."""
        for uid in self._blocked:
            self._blocked[uid] = self.world.clock.now()
            self.queue.add(uid)

    def _claim_changed(self, _change: Change, _old: Object | None, _new: Object | None) -> None:
        for uid in self._blocked:
            self.queue.add(uid)
