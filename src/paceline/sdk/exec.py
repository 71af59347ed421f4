"""Run commands in containers of a job's replicas, or of a pod."""

from dataclasses import dataclass

from paceline.client.http.exec_stream import STDERR, ExecStream, open_line
from paceline.client.interface import PODS
from paceline.errors import NotFound
from paceline.presentation.replica_pods import ReplicaPod, latest, leader_id
from paceline.sdk.client import Session
from paceline.sdk.follow import ReplicaSelector
from paceline.sdk.job import JobRef

__all__ = ["STDERR", "ExecOptions", "ExecStream", "replica_to_exec", "run_in_pod"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecOptions:
    """An exec request: the command and its options."""

    arguments: tuple[str, ...]
    container: str = ""
    has_input: bool = False
    has_terminal: bool = False

    def query(self) -> tuple[tuple[str, str], ...]:
        """Return the query parameters of the exec endpoint."""
        named = (("container", self.container),) if self.container else ()
        flags = {"stdin": self.has_input, "stdout": True, "stderr": not self.has_terminal, "tty": self.has_terminal}
        enabled = tuple((name, "true") for name, is_on in flags.items() if is_on)
        return (*(("command", word) for word in self.arguments), *named, *enabled)


def run_in_pod(session: Session, pod: str, ask: ExecOptions) -> ExecStream:
    """Start a command in a pod and return its stream."""
    return open_line(session.cluster.access, PODS.path(session.namespace, pod, "exec"), ask.query())


def replica_to_exec(job: JobRef, choice: ReplicaSelector) -> ReplicaPod:
    """Return the pod of the chosen replica, or of the leader; NotFound says why there is none."""
    pods = job.pods()
    places = choice.places(pods, leader_id(pods))
    selected = [pod for pod in latest(pods) if pod.place in places]
    running = [pod for pod in selected if pod.phase == "Running"]
    if running:
        return running[0]
    if selected:
        reason = f": {selected[0].reason}" if selected[0].reason else ""
        problem = f"{selected[0].place} of {job} is not running ({selected[0].phase}{reason})"
        raise NotFound(f"{problem}; commands need a running replica")
    members = ", ".join(sorted({str(pod.place) for pod in pods})) or "none"
    raise NotFound(f"{job} has no such replica; it has: {members}")
