"""Follow one job: its status, pods and selected logs, until it has ended and the last line was read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from paceline.apimachinery.meta import Object, controller_of, key_of, name_of, uid_of
from paceline.client.interface import PODS, Collection, Select
from paceline.model import well_known_labels
from paceline.model.gang import ReplicaId
from paceline.presentation.job_summary import phase_of
from paceline.presentation.replica_pods import ReplicaPod, leader_id, replica_pods
from paceline.sdk.logs.event_mux import EventMux, SourceContext
from paceline.sdk.logs.sources import (
    Changed,
    Listed,
    LogChunk,
    LogOptions,
    LogSource,
    Lost,
    Read,
    apply_change,
    reading,
    watching,
)

# Time limit for each further log line after the job has ended.
LAST_LINES_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSelector:
    """The replicas whose logs are requested; the leader by default."""

    is_all: bool = False
    role: str = ""
    index: int | None = None

    def places(self, pods: Iterable[ReplicaPod], leader: ReplicaId | None) -> frozenset[ReplicaId]:
        """Return the selected replicas that have a pod."""
        existing = frozenset(pod.place for pod in pods)
        if self.is_all:
            return existing
        if leader is None:
            return frozenset()
        if not self.role and self.index is None:
            return existing & {leader}
        role = self.role or leader.role
        return frozenset(p for p in existing if p.role == role and self.index in (None, p.index))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChanged:
    """The job has changed."""

    job: Object


@dataclass(frozen=True, slots=True, kw_only=True)
class PodsChanged:
    """The pods of the job have changed."""

    pods: tuple[ReplicaPod, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """Complete log lines of a replica."""

    place: ReplicaId
    pod: str
    text: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded:
    """The job has ended; None if it was deleted."""

    job: Object | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """No event for a while, so that the display can update its clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOut:
    """Reading the last log lines timed out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastPods:
    """The pods, listed after the job had ended."""

    items: tuple[Object, ...]


Event = JobChanged | PodsChanged | Logged | Lost | Tick | JobEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowOptions:
    """Which events and logs to follow."""

    choice: ReplicaSelector = field(default_factory=ReplicaSelector)
    log: LogOptions | None = field(default_factory=LogOptions)
    # Include attempts that had ended before following began.
    has_earlier_tries: bool = False
    # Seconds without an event after which a Tick is sent; None for never.
    tick: float | None = None


class Follower:
    """Follows one job, identified by its uid. All access to the cluster goes through the feed."""

    def __init__(self, feed: EventMux, where: Collection, job: Object, *, options: FollowOptions) -> None:
        self._feed, self._where, self._options = feed, where, options
        self._namespace, self._name = key_of(job)
        self._uid = uid_of(job)
        self._job = job
        self._pods: dict[str, Object] = {}
        self._members: tuple[ReplicaPod, ...] = ()
        self._leader: ReplicaId | None = None
        self._reads = OpenLogs()
        self._is_gone = self._is_late = self._has_said = False
        self._has_last_pods = options.log is None

    def events(self) -> Iterator[Event]:
        """Yield the events of the job, and `Ended` at the end."""
        mine = Select(namespace=self._namespace, fields=f"metadata.name={self._name}")
        self._feed.start(watching(self._where, mine), f"watch {self._name}")
        self._feed.start(watching(PODS, self._select_pods()), f"watch pods of {self._name}")
        while not self._is_over():
            item = self._feed.take(self._options.tick)
            if item is None:
                yield Tick()
            else:
                yield from self._handle(item)
        yield JobEnded(job=None if self._is_gone else self._job)

    def _is_over(self) -> bool:
        if not self._has_ended():
            return False
        return self._has_last_pods and (self._is_late or not self._reads.open)

    def _has_ended(self) -> bool:
        return self._is_gone or phase_of(self._job).is_final

    def _handle(self, item: object) -> Iterator[Event]:
        match item:
            case Listed() | Changed() if item.where == self._where:
                yield from self._job_news(item)
            case Listed() | Changed():
                self._pods = apply_change(self._pods, item)
                yield from self._pod_news()
            case LastPods():
                self._has_last_pods = True
                self._pods |= {name_of(pod): pod for pod in item.items}
                yield from self._pod_news()
            case LogChunk():
                self._has_said = True
                yield Logged(place=self._reads.place_of(item.read), pod=item.read.pod, text=item.text)
            case Read():
                self._reads.ended(item.read)
                self._read_on()
            case Lost():
                yield item
            case TimedOut() if self._has_said:
                # A long log may take longer; give up only if there is no progress.
                self._has_said = False
                self._feed.after(LAST_LINES_SECONDS, TimedOut())
            case TimedOut():
                self._is_late = self._has_last_pods = True

    def _job_news(self, item: Listed | Changed) -> Iterator[Event]:
        had_ended = self._has_ended() and not isinstance(item, Listed)
        now = apply_change({self._name: self._job}, item).get(self._name)
        if now is None or uid_of(now) != self._uid:
            self._is_gone = True
        else:
            self._job = now
            yield JobChanged(job=now)
        if self._has_ended() and not had_ended:
            self._feed.after(LAST_LINES_SECONDS, TimedOut())
            if not self._has_last_pods:
                # The job's end was decided from its pods, so a list made now shows their final state.
                self._feed.start(self._read_last_pods, "last pods")

    def _pod_news(self) -> Iterator[Event]:
        mine = (pod for pod in self._pods.values() if (controller_of(pod) or {}).get("uid") == self._uid)
        self._members = replica_pods(mine)
        # Keep the leader when its pod is cleaned up: the log of another replica is not what the user asked for.
        if self._leader is None or any(pod.is_leader for pod in self._members):
            self._leader = leader_id(self._members)
        yield PodsChanged(pods=self._members)
        self._read_on()

    def _read_on(self) -> None:
        """Start reading the logs that are available: one at a time per replica, in the order of its attempts."""
        if self._options.log is None:
            return
        places = self._options.choice.places(self._members, self._leader)
        pods = [pod for pod in self._members if pod.place in places]
        for member, read in self._reads.next(pods, self._namespace, has_earlier=self._options.has_earlier_tries):
            self._reads.begin(member.place, read)
            self._feed.start(reading(read, self._options.log), f"log of {read.pod}")

    def _read_last_pods(self, line: SourceContext) -> None:
        page = line.cluster.list(PODS, self._select_pods())
        line.put(LastPods(items=page.items))

    def _select_pods(self) -> Select:
        return Select(namespace=self._namespace, labels=f"{well_known_labels.OWNER_NAME}={self._name}")


class OpenLogs:
    """Tracks which logs were started and which are still being read."""

    def __init__(self) -> None:
        self._begun: dict[LogSource, ReplicaId] = {}
        self.open: dict[ReplicaId, LogSource] = {}

    def begin(self, place: ReplicaId, read: LogSource) -> None:
        """Record that a log is being read."""
        self._begun[read] = place
        self.open[place] = read

    def ended(self, read: LogSource) -> None:
        """Record that a log was read to its end."""
        self.open.pop(self._begun[read], None)

    def place_of(self, read: LogSource) -> ReplicaId:
        """Return the replica that wrote a log."""
        return self._begun[read]

    def next(
        self, pods: Iterable[ReplicaPod], namespace: str, *, has_earlier: bool
    ) -> list[tuple[ReplicaPod, LogSource]]:
        """Return the logs to start now: at most one per replica, and none while another log of the replica is read."""
        selected: dict[ReplicaId, tuple[ReplicaPod, LogSource]] = {}
        for pod in pods:
            read = LogSource(namespace=namespace, pod=pod.name, restarts=pod.restarts)
            if not pod.has_started or read in self._begun or pod.place in self.open:
                continue
            if has_earlier or pod.place in self._begun.values():
                selected.setdefault(pod.place, (pod, read))
            else:
                # The first log of this replica: start with its last attempt.
                selected[pod.place] = (pod, read)
        return list(selected.values())
