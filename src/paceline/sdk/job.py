"""A handle to one job: read it, wait for it, follow its logs, pause, restart and delete it."""

import signal
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace

from paceline.apimachinery.field_errors import nearest
from paceline.apimachinery.meta import Object, controller_of, key_of, uid_of
from paceline.apimachinery.pods import container_statuses_of, grace_seconds_of, is_terminal
from paceline.client.interface import EVENTS, PODS, Select
from paceline.client.sync import DirectCluster
from paceline.errors import Fault, HostError, Invalid, MethodNotAllowed, NotFound
from paceline.model import well_known_labels
from paceline.model.job_status import JobStatus, Phase
from paceline.model.scheduling_queue import QueuePosition
from paceline.presentation.actions import ActionPlan, delete_object, pause_job, restart_job, resume_job, scale_job
from paceline.presentation.events import in_order
from paceline.presentation.explorer import CurveFolder, curve_folders
from paceline.presentation.job_summary import is_rejected, phase_of, status_of
from paceline.presentation.log_lines import stamped_text, whole_lines
from paceline.presentation.queue_position import position_of, waits_for_room
from paceline.presentation.replica_pods import (
    ReplicaPod,
    last_attempts,
    leader_id,
    no_log,
    previous_attempts,
    replica_pods,
)
from paceline.sdk import actions
from paceline.sdk.connection import ClusterConnection
from paceline.sdk.discovery import ResourceKind
from paceline.sdk.files import VolumeFiles
from paceline.sdk.follow import (
    Event,
    Follower,
    FollowOptions,
    JobChanged,
    JobEnded,
    Logged,
    PodsChanged,
    ReplicaSelector,
)
from paceline.sdk.logs.event_mux import EventMux
from paceline.sdk.logs.merge import within
from paceline.sdk.logs.sources import LogOptions
from paceline.sdk.metrics import Metric, TrainingMetrics, event_metrics, log_metrics
from paceline.sdk.reader import scheduling_queue
from paceline.sdk.usage_series import DEFAULT_SECONDS, UsageHistory, usage_history

# The prefix of container ids of our own node agent.
OURS = "paceline://"
# Allowance for the delay of controllers and node agents on a busy machine.
MARGIN_SECONDS = 60.0


def signal_named(word: str) -> str:
    """Return the full name of a signal, such as SIGINT for `int`; raise Invalid if there is none."""
    name = word.upper().removeprefix("SIG")
    names = [member.removeprefix("SIG") for member in signal.Signals.__members__]
    if name not in names:
        near = nearest(name, names)
        hint = f"did you mean {near}?" if near else "such as INT, TERM, USR1 or KILL"
        raise Invalid((Fault("--signal", word, f"there is no such signal; {hint}"),))
    return f"SIG{name}"


def seconds_to_stop(pods: Iterable[Object], margin: float = MARGIN_SECONDS) -> float:
    """Return how long stopping pods may take; servers are stopped after the replicas that use them."""
    graces = [grace_seconds_of(pod) for pod in pods if not is_terminal(pod)]
    return 2 * max(graces, default=0) + margin


def is_ours(pod: Object) -> bool:
    """Return True if our own node agent runs a pod, as far as its containers have started."""
    statuses = container_statuses_of(pod)
    ids = [str(status["containerID"]) for status in statuses if status.get("containerID")]
    return all(container_id.startswith(OURS) for container_id in ids)


# Event reason for a job whose status cannot be read; the controller does not act on it.
UNREADABLE = "Unreadable"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRef:
    """A handle to one job. After the job is deleted, reading raises NotFound."""

    kind: ResourceKind
    namespace: str
    name: str
    uid: str
    cluster: DirectCluster
    dial: ClusterConnection

    def __str__(self) -> str:
        return f"{self.kind.singular}/{self.name}"

    def read(self) -> Object:
        """Return the job; raise NotFound if it was deleted, even if another job has its name."""
        job = self.cluster.get(self.kind.where, self.namespace, self.name)
        if uid_of(job) != self.uid:
            raise NotFound(f"{self} was deleted, and another job has its name")
        return job

    def status(self) -> JobStatus:
        """Return the job's status."""
        return status_of(self.read())

    def queue_position(self) -> QueuePosition | None:
        """Return the job's place in the scheduling queue of the embedded cluster; None if it has none."""
        job = self.read()
        return position_of(job, scheduling_queue(self.cluster)) if waits_for_room(job) else None

    def pods(self) -> tuple[ReplicaPod, ...]:
        """Return the job's pods: every attempt of every replica that still exists."""
        return replica_pods(self.owned_pods())

    def owned_pods(self) -> tuple[Object, ...]:
        """Return the pods of this job, and not those of an earlier job of the same name."""
        return tuple(pod for pod in self._labelled_pods() if (controller_of(pod) or {}).get("uid") == self.uid)

    def _labelled_pods(self) -> tuple[Object, ...]:
        select = Select(namespace=self.namespace, labels=f"{well_known_labels.OWNER_NAME}={self.name}")
        return self.cluster.list(PODS, select).items

    def usage(self, seconds: float = DEFAULT_SECONDS) -> UsageHistory:
        """Return what the job's containers used in the last seconds, deleted ones too."""
        target = {"namespace": self.namespace, "job": self.name}
        return usage_history(self.cluster, target, seconds)

    def events(self) -> tuple[Object, ...]:
        """Return the events of the job and its pods, oldest first."""
        uids = {self.uid, *map(uid_of, self._labelled_pods())}
        recorded = self.cluster.list(EVENTS, Select(namespace=self.namespace)).items
        return in_order(event for event in recorded if (event.get("involvedObject") or {}).get("uid") in uids)

    def follow(self, options: FollowOptions | None = None) -> Generator[Event, None, None]:
        """Return an iterator over the events and log lines of the job until it ends."""
        return self._events(options or FollowOptions())

    def wait(self, timeout: float | None = None) -> JobStatus:
        """Wait until the job ends and return its status; NotFound if it is deleted, TimeoutError after `timeout`."""
        for event in self._events(FollowOptions(log=None), timeout):
            if isinstance(event, JobEnded) and event.job is not None:
                return status_of(event.job)
        raise NotFound(f"{self} was deleted")

    def wait_idle(self, timeout: float | None = None) -> None:
        """Wait until no pod of a paused, refused, ended or deleted job runs; raise TimeoutError after `timeout`."""
        is_paused, pods = False, None
        for event in self._events(FollowOptions(log=None), timeout):
            match event:
                case JobChanged():
                    is_paused = phase_of(event.job) is Phase.PAUSED or is_rejected(event.job)
                case PodsChanged():
                    pods = event.pods
            if is_paused and pods is not None and all(pod.is_final for pod in pods):
                return

    def wait_stopped(self, margin: float = MARGIN_SECONDS) -> None:
        """Wait until a pausing job has stopped, for as long as its grace periods allow; HostError says why it did not.

        If only the upload of results is left, wait until it is complete.
        """
        while True:
            try:
                return self.wait_idle(seconds_to_stop(self.owned_pods(), margin))
            except TimeoutError:
                status = self.status()
                # The job may have ended in the meantime.
                if not status.ending and not status.phase.is_final:
                    reason = self._why_not_stopped()
                    raise HostError(
                        f"{self} did not stop in time{': ' + reason if reason else ''}; remove it and its pods with "
                        f"`paceline delete {self.kind.singular}/{self.name}`"
                    ) from None

    def _why_not_stopped(self) -> str:
        """Return why the controller does not act on the job, if that is known."""
        status = self.status()
        if status.phase is Phase.UNKNOWN and status.waiting:
            return status.waiting
        events = [event for event in self.events() if event.get("reason") == UNREADABLE]
        return str(events[-1].get("message") or "") if events else status.waiting

    def _events(self, options: FollowOptions, timeout: float | None = None) -> Generator[Event, None, None]:
        with EventMux(self.dial) as feed:
            if timeout is not None:
                feed.after(timeout, TimeoutError(f"{self} did not reach the expected state within {timeout:g} s"))
            yield from Follower(feed, self.kind.where, self.read(), options=options).events()

    def logs(
        self, *, follow: bool = False, choice: ReplicaSelector | None = None, tail: int | None = None
    ) -> Iterator[str]:
        """Yield log lines without line breaks; those of the leader unless `choice` selects others."""
        ask = LogOptions(is_followed=follow, tail=tail)
        for logged in self.chunks(choice or ReplicaSelector(), ask):
            yield from logged.text.decode(errors="replace").removesuffix("\n").split("\n")

    def chunks(self, choice: ReplicaSelector, ask: LogOptions) -> Iterator[Logged]:
        """Yield complete log lines: until the job ends if followed, else the current ones."""
        if ask.is_followed:
            with closing(self._followed(choice, ask)) as entries:
                yield from entries
        else:
            for stream in self.streams(choice, ask):
                yield from stream

    def streams(self, choice: ReplicaSelector, ask: LogOptions) -> list[Iterator[Logged]]:
        """Return the current log of each selected replica; NotFound says why there is none."""
        pods = self.pods()
        places = choice.places(pods, leader_id(pods))
        selected = [pod for pod in pods if pod.place in places]
        tries = previous_attempts(selected) if ask.is_previous else last_attempts(selected)
        if not tries:
            raise NotFound(no_log(str(self), pods, selected, is_previous=ask.is_previous))
        return [self.pod_chunks(pod, ask) for pod in tries]

    def pod_chunks(self, pod: ReplicaPod, ask: LogOptions) -> Iterator[Logged]:
        """Yield the current log of one attempt."""
        # On Kubernetes, `previous` refers to restarts inside one pod; our attempts are separate pods.
        options = ask if pod.restarts else replace(ask, is_previous=False)
        path = PODS.path(self.namespace, pod.name, "log")
        for chunk in within(whole_lines(self.cluster.stream(path, options.query())), options):
            yield Logged(place=pod.place, pod=pod.name, text=chunk)

    def metrics(self, *, claim: str = "", folder: str = "", uses_logs: bool = False) -> TrainingMetrics:
        """Return the job's training curves: from event files in a claim, else from its log.

        The claim and folder are those of the job's own TensorBoard, unless named here.
        """
        if claim:
            return TrainingMetrics(
                source="events", metrics=self._event_metrics(CurveFolder(claim=claim, folder=folder))
            )
        curves: tuple[Metric, ...] = ()
        for place in () if uses_logs else curve_folders(self.read()):
            # A folder that nothing was written to yet does not exist.
            with suppress(NotFound):
                curves += self._event_metrics(place)
        if curves:
            return TrainingMetrics(source="events", metrics=curves)
        return TrainingMetrics(source="logs", metrics=log_metrics(self._stamped_lines()))

    def _event_metrics(self, place: CurveFolder) -> tuple[Metric, ...]:
        files = VolumeFiles(cluster=self.cluster, namespace=self.namespace, claim=place.claim)
        return event_metrics(files, place.folder)

    def _stamped_lines(self) -> Iterator[tuple[float, str]]:
        """Yield the lines of the leader's log with their times, in seconds since 1970."""
        for logged in self.chunks(ReplicaSelector(), LogOptions(is_followed=False, has_timestamps=True)):
            yield from map(stamped_text, logged.text.split(b"\n"))

    def _followed(self, choice: ReplicaSelector, ask: LogOptions) -> Generator[Logged, None, None]:
        for event in self.follow(FollowOptions(choice=choice, log=ask)):
            if isinstance(event, Logged):
                yield event

    def pause(self) -> None:
        """Stop the job's processes and keep the job; `resume` starts them again."""
        self._act(pause_job(self.read()))

    def choose_signal(self, word: str) -> None:
        """Set the signal, such as SIGINT, that is sent to the job's processes when they are next stopped.

        Raise MethodNotAllowed on other clusters: their kubelets use only the signal of the image or container.
        """
        pods = [pod for pod in self._labelled_pods() if not is_terminal(pod)]
        if any(not is_ours(pod) for pod in pods):
            raise MethodNotAllowed(
                f"the pods of {self} are run by another kubelet, which only uses the signal of the container; set "
                "lifecycle.stopSignal in the job's template, or omit --signal"
            )
        change = {"metadata": {"annotations": {well_known_labels.STOP_SIGNAL: word}}}
        for pod in pods:
            self.cluster.patch(PODS, key_of(pod), change)

    def resume(self) -> None:
        """Resume a paused job."""
        self._act(resume_job(self.read()))

    def restart(self) -> None:
        """Restart all processes of the job, even if it is paused; raise MethodNotAllowed if it has ended."""
        self._act(restart_job(self.read()))

    def scale(self, replicas: int) -> None:
        """Change the number of replicas of an elastic job; raise MethodNotAllowed if it has ended or is not elastic."""
        self._act(scale_job(self.read(), replicas))

    def _act(self, plan: ActionPlan) -> None:
        actions.patch(self.cluster, self.kind.where, (self.namespace, self.name), plan, subject=str(self))

    def delete(self) -> None:
        """Delete the job and its pods; files on claims are kept."""
        plan = delete_object({"metadata": {"uid": self.uid}})
        actions.delete(self.cluster, self.kind.where, (self.namespace, self.name), plan)
