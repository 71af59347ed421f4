"""The invariants of a simulated cluster, checked with every record on its disk and every program that starts."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from paceline.apimachinery.meta import Object, annotations_of, controller_of, key_of, labels_of, name_of, uid_of
from paceline.apimachinery.timestamps import from_wire
from paceline.kinds import registry
from paceline.model import well_known_labels
from paceline.model.gang import CleanUp, Gang, RestartScope
from paceline.plan.scheduling.preemption import disruption_condition
from paceline.store.backend import Op, Record
from paceline.testing.sim.cluster import SimCluster

FINAL = ("Succeeded", "Failed")
# How long after its time something may still be there, while nothing is broken.
GRACE_SECONDS = 30.0
# How much earlier than its time something may end: by so much a moment is decided before it is on record.
EARLY_SECONDS = 10.0
# Events that may happen to a job once and never again.
ONCE = ("Created", "Succeeded", "Failed")


class InvariantBroken(Exception):
    """An invariant does not hold."""


@dataclass(slots=True, kw_only=True)
class Oracle:
    """Remembers what it has seen, and says at once when something must not be."""

    cluster: SimCluster
    trace: list[str] = field(default_factory=list)
    # The first thing that must not be.
    violation: InvariantBroken | None = None
    # The uids of jobs that are over and go by themselves some time after it.
    expiring: set[str] = field(default_factory=set)
    _revision: int = 0
    # Every object as last recorded, by store key.
    objects: dict[str, Object] = field(default_factory=dict)
    # The jobs and pods among them, which are asked for all the time.
    _jobs: dict[str, Object] = field(default_factory=dict)
    _pods: dict[str, Object] = field(default_factory=dict)
    _final: dict[str, str] = field(default_factory=dict)
    # When something was first on record, by the time that passes and the boot: a job's creation, start and end.
    _moments: dict[tuple[str, str], tuple[float, str]] = field(default_factory=dict)
    _ttls: dict[str, int] = field(default_factory=dict)
    _counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    _executed: int = 0
    _ran: set[Path] = field(default_factory=set)
    # Every pod there ever was, by uid.
    _ever: dict[str, Object] = field(default_factory=dict)
    # The same by the uid of their owner first.
    _mates: dict[str, dict[str, Object]] = field(default_factory=dict)
    # The gangs of jobs as they were last read, by uid, with the generation that was read.
    _gangs: dict[str, tuple[int, Gang]] = field(default_factory=dict)

    def say(self, text: str) -> None:
        """Put a line into the trace, with the virtual time."""
        self.trace.append(f"{self.cluster.sim.clock.monotonic():.3f} {text}")

    def recorded(self, batch: tuple[Record, ...]) -> None:
        """Check what has just become durable; what is wrong with it is kept in `found`.

        Nothing is raised: this is called from the store's own disk, and the store must not be told.
        """
        try:
            self._record(batch)
        except InvariantBroken as error:
            self.violation = self.violation or error

    def _record(self, batch: tuple[Record, ...]) -> None:
        for record in batch:
            obj = orjson.loads(record.value)
            status = obj.get("status") or {}
            self.say(f"{record.revision} {record.op} {record.key} {status.get('phase', '')}")
            if record.revision <= self._revision:
                raise InvariantBroken(f"I2: revision {record.revision} came after {self._revision}")
            self._revision = record.revision
            if record.op is Op.DELETE:
                for index in (self.objects, self._jobs, self._pods):
                    index.pop(record.key, None)
                continue
            self._remember(record.key, obj)
            self._check_final(obj)
            if record.key in self._jobs:
                self._check_job(obj)
            elif record.key.startswith("/core/events/"):
                self._check_event(obj)

    def _remember(self, key: str, obj: Object) -> None:
        self.objects[key] = obj
        if key.startswith("/batch.tensorstack.dev/"):
            self._jobs[key] = obj
        elif key.startswith("/core/pods/"):
            self._pods[key] = self._ever[uid_of(obj)] = obj
            owner = controller_of(obj) or {}
            self._mates.setdefault(str(owner.get("uid")), {})[uid_of(obj)] = obj

    def executed(self) -> None:
        """Check the programs that have been started since the last call."""
        ledger = self.cluster.sim.processes.ledger
        for folder in ledger[self._executed :]:
            self.say(f"execute {folder}")
            if folder in self._ran:
                raise InvariantBroken(f"I4: {folder} was executed twice")
            self._ran.add(folder)
            self._check_gang(folder)
        if len(ledger) > self._executed:
            # Only a start can make two run at once.
            self._check_overlap()
        self._executed = len(ledger)

    def _check_gang(self, folder: Path) -> None:
        """No member starts before all pods of its gang are there."""
        pod = self.pod(folder)
        owner = controller_of(pod) if pod else None
        if pod is None or owner is None:
            return
        attempt = _attempt(pod)
        mates = [mate for mate in self._mates[str(owner["uid"])].values() if _attempt(mate) >= attempt]
        size = int(annotations_of(pod).get(well_known_labels.GANG_SIZE, 1))
        if len({_place(mate) for mate in mates}) < size:
            raise InvariantBroken(f"gang: {name_of(pod)} started before all {size} pods of its gang were there")

    def _check_final(self, obj: Object) -> None:
        """I6: terminal is terminal, with exit codes and times."""
        status = obj.get("status") or {}
        uid = uid_of(obj)
        if uid in self._final and self._final[uid] != _ending(status):
            raise InvariantBroken(f"I6: {obj['kind']} {name_of(obj)} was {self._final[uid]}, is {_ending(status)}")
        if status.get("phase") in FINAL:
            self._final[uid] = _ending(status)

    def _check_job(self, job: Object) -> None:
        """I7: counters only grow, and not beyond their limit; success is somebody's; ports belong to one job."""
        status = job.get("status") or {}
        self._check_own(job, status)
        self._check_time(job, status)
        counts = (int(status.get("backoffCount") or 0), int(status.get("attempt") or 0))
        previous = self._counts.get(uid_of(job), (0, 0))
        if counts < previous:
            raise InvariantBroken(f"I7: the counters of {name_of(job)} fell from {previous} to {counts}")
        self._counts[uid_of(job)] = counts
        gang = self._gang(job)
        if gang.ttl_seconds is not None and status.get("phase") in FINAL:
            self.expiring.add(uid_of(job))
        limit = gang.backoff_limit if gang.backoff_limit is not None else sum(gang.role_limits.values())
        resumes = int(status.get("resumes") or 0)
        tries = max(counts[0], counts[1] - resumes, self._failures(job, status, gang) - resumes)
        if tries > limit:
            raise InvariantBroken(f"I7: {name_of(job)} restarted {tries} times, allowed are {limit}")
        mine = set((status.get("ports") or {}).values())
        for other in self.jobs():
            other_status = other.get("status") or {}
            is_live = other_status.get("phase") not in FINAL and uid_of(other) != uid_of(job)
            if is_live and status.get("phase") not in FINAL and mine & set((other_status.get("ports") or {}).values()):
                raise InvariantBroken(f"ports: {name_of(job)} and {name_of(other)} share {mine}")

    def _failures(self, job: Object, status: dict[str, Any], gang: Gang) -> int:
        """Return how many attempts of one replica failed and were followed by another; the most of any replica.

        Pods that were preempted do not count, and nor do those that end because an elastic job shrinks. A pod that is
        deleted before any status names it is created again in the same attempt, which counts once.
        """
        records = {record["replica"]: record for record in status.get("replicaRecords") or ()}
        if gang.is_elastic:
            return max((int(record.get("restarts") or 0) for record in records.values()), default=0)
        failures: dict[str, set[int]] = {}
        for pod in self._mates.get(uid_of(job), {}).values():
            name = _place(pod)
            has_failed = (pod.get("status") or {}).get("phase") == "Failed" and disruption_condition(pod) is None
            if has_failed and _attempt(pod) < int(records.get(name, {}).get("attempt") or 0):
                failures.setdefault(name, set()).add(_attempt(pod))
        return max(map(len, failures.values()), default=0)

    def _check_time(self, job: Object, status: dict[str, Any]) -> None:
        """R13: no job's time is up before so much time has passed, however the machine's clock was set."""
        uid, gang, started = uid_of(job), self._gang(job), str(status.get("startTime"))
        self._note(uid, "creation")
        self._note(uid, started)
        if gang.ttl_seconds is not None:
            self._ttls[uid] = gang.ttl_seconds
        reasons = {entry.get("reason") for entry in status.get("conditions") or () if entry.get("type") == "Failed"}
        if status.get("phase") in FINAL and (uid, "end") not in self._moments:
            self._note(uid, "end")
            for reason, since, seconds in (
                ("DeadlineExceeded", started, gang.active_deadline_seconds),
                ("StartingDeadlineExceeded", "creation", gang.starting_deadline_seconds),
            ):
                if reason in reasons:
                    self._check_passed(uid, since, seconds or 0, f"{name_of(job)} failed with {reason}")

    def _note(self, uid: str, event: str) -> None:
        now = self.cluster.sim.clock.monotonic(), self.cluster.sim.processes.boot_id()
        self._moments.setdefault((uid, event), now)

    def _check_passed(self, uid: str, since: str, seconds: float, text: str) -> None:
        """Complain of what came too early; the time that a machine was off may be any time."""
        begun, boot = self._moments[uid, since]
        passed = self.cluster.sim.clock.monotonic() - begun
        if passed < seconds - EARLY_SECONDS and boot == self.cluster.sim.processes.boot_id():
            raise InvariantBroken(f"R13: {text} {passed:.1f} seconds after the {since}, allowed are {seconds}")

    def _check_own(self, job: Object, status: dict[str, Any]) -> None:
        """A job tells of its own pods only, and succeeds only if one of them did."""
        pods = self._mates.get(uid_of(job), {})
        for record in (entry for task in status.get("tasks") or () for entry in task.get("replicas") or ()):
            if record.get("uid") and record["uid"] not in pods:
                raise InvariantBroken(
                    f"own: {name_of(job)} tells of pod {record['name']} {record['uid']}, which never was its own"
                )
        has_success = any((pod.get("status") or {}).get("phase") == "Succeeded" for pod in pods.values())
        if status.get("phase") == "Succeeded" and not has_success:
            raise InvariantBroken(f"own: {name_of(job)} has succeeded, and none of its pods has")

    def _check_event(self, event: Object) -> None:
        about, reason = event["involvedObject"], event["reason"]
        if about["kind"].endswith("Job") and reason in ONCE and event.get("count", 1) > 1:
            raise InvariantBroken(f"event {reason} of {about['name']} was told {event['count']} times")
        if reason == "Expired" and (about.get("uid"), "end") in self._moments:
            self._check_passed(about["uid"], "end", self._ttls.get(about["uid"], 0), f"{about['name']} was deleted")

    def _check_overlap(self) -> None:
        """Old and new ranks of a gang never run together, nor two tries of one member."""
        running: dict[str, dict[str, int]] = {}
        for folder in self.cluster.sim.processes.running():
            pod = self.pod(folder)
            owner = controller_of(pod) if pod else None
            if pod is None or owner is None:
                continue
            place = _place(pod)
            places = running.setdefault(str(owner["uid"]), {})
            if place in places:
                raise InvariantBroken(f"two tries of {name_of(pod)} run at once")
            places[place] = _attempt(pod)
        for job in self.jobs():
            tries = running.get(uid_of(job), {})
            if len(set(tries.values())) < 2 or self._gang(job).scope is RestartScope.REPLICA:
                continue
            watchers = self._gang(job).observer_roles
            attempts = {attempt for place, attempt in tries.items() if place.rpartition("-")[0] not in watchers}
            if len(attempts) > 1:
                raise InvariantBroken(f"attempts {sorted(attempts)} of gang {name_of(job)} run at once")

    def _gang(self, job: Object) -> Gang:
        """Give a job without its framework."""
        uid, generation = uid_of(job), int(job["metadata"]["generation"])
        gang = self._gangs.get(uid)
        if gang is None or gang[0] != generation:
            kind, spec = registry.read(job)
            # The usual ports, also of a job with faults that an earlier version has let in.
            gang = self._gangs[uid] = (generation, registry.expand(job, kind.ports(spec))[1])
        return gang[1]

    def jobs(self) -> tuple[Object, ...]:
        """Give all jobs as last recorded."""
        return tuple(self._jobs.values())

    def pods(self) -> tuple[Object, ...]:
        """Give all pods as last recorded."""
        return tuple(self._pods.values())

    def pod(self, folder: Path) -> Object | None:
        """Find the pod a container's folder belongs to."""
        pod = self._ever.get(folder.parts[-4])
        key = f"/core/pods/{'/'.join(key_of(pod))}" if pod else ""
        obj = self.objects.get(key)
        return obj if obj is not None and pod is not None and uid_of(obj) == uid_of(pod) else None

    def at_rest(self) -> None:
        """Check what must hold once nothing happens any more (I5, I8, I13)."""
        running = {uid_of(pod) for pod in self.pods() if (pod.get("status") or {}).get("phase") == "Running"}
        live = {folder.parts[-4] for folder in self.cluster.sim.processes.running()}
        if live != running:
            raise InvariantBroken(f"I5: processes of {sorted(live)}, pods running {sorted(running)}")
        owners = {uid_of(obj) for obj in self.objects.values()}
        for pod in self.pods():
            owner = controller_of(pod)
            if owner is not None and owner["uid"] not in owners:
                raise InvariantBroken(f"I8: pod {name_of(pod)} outlived its {owner['kind']}")
        for job in self.jobs():
            phase = (job.get("status") or {}).get("phase")
            if phase not in (*FINAL, "Paused"):
                raise InvariantBroken(f"I13: job {name_of(job)} is {phase} and nothing moves it on")

    def cleaned_up(self) -> None:
        """Check that nothing of ended jobs is left that should not be."""
        for job in self.jobs():
            if (job.get("status") or {}).get("phase") not in FINAL:
                continue
            stays = self._gang(job).ttl_seconds
            if stays is not None and self._seconds_since_end(job) > stays + GRACE_SECONDS:
                raise InvariantBroken(
                    f"expiry: {name_of(job)} is there although it may stay {stays} seconds after its end"
                )
            policy = self._gang(job).clean_up
            for pod in self.pods():
                is_mine = (controller_of(pod) or {}).get("uid") == uid_of(job)
                is_over = (pod.get("status") or {}).get("phase") in FINAL
                if is_mine and (policy is CleanUp.ALL or (policy is CleanUp.UNFINISHED and not is_over)):
                    raise InvariantBroken(
                        f"clean-up: {name_of(pod)} is there after {name_of(job)}, whose policy is {policy}"
                    )

    def _seconds_since_end(self, job: Object) -> float:
        return (self.cluster.clock.now() - from_wire(job["status"]["completionTime"])).total_seconds()


def _place(pod: Object) -> str:
    """Tell which of its owner's pods this is; a TensorBoard or Notebook has one only."""
    labels = labels_of(pod)
    return f"{labels.get(well_known_labels.REPLICA_TYPE, '')}-{labels.get(well_known_labels.REPLICA_INDEX, '')}"


def _attempt(pod: Object) -> int:
    return int(labels_of(pod).get(well_known_labels.ATTEMPT, 0))


def _ending(status: dict[str, Any]) -> str:
    codes = [
        (container.get("name"), ((container.get("state") or {}).get("terminated") or {}).get("exitCode"))
        for container in status.get("containerStatuses") or ()
    ]
    return f"{status.get('phase')} {status.get('completionTime', '')} {codes}"
