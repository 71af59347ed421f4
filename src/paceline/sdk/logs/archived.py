"""Logs of deleted pods, archived by the nodes that ran them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from paceline.apimachinery.meta import Object, name_of
from paceline.client.interface import NODES, PODS
from paceline.client.requests import Request, history_path
from paceline.client.responses import read_object
from paceline.client.sync import DirectCluster
from paceline.errors import BadRequest, Forbidden, MethodNotAllowed, NotFound
from paceline.presentation.deleted_pods import DeletedPod, deleted_pod
from paceline.presentation.log_lines import whole_lines
from paceline.presentation.replica_pods import ReplicaPod, latest, leader_id
from paceline.sdk.client import Session
from paceline.sdk.follow import Logged, ReplicaSelector
from paceline.sdk.logs.event_mux import EventMux
from paceline.sdk.logs.merge import within
from paceline.sdk.logs.sources import LogChunk, LogOptions, LogSource, Read, reading


@dataclass(frozen=True, slots=True, kw_only=True)
class LogArchiveReader:
    """The archived pods of one namespace."""

    cluster: DirectCluster
    namespace: str

    def pods(self, *, job: str = "", pod: str = "") -> tuple[DeletedPod, ...]:
        """Return deleted pods of a job or of a name, the latest first; none if nodes cannot be accessed."""
        query = urlencode({name: value for name, value in (("job", job), ("pod", pod)) if value})
        pods = []
        for node in self._nodes():
            path = f"{history_path(name_of(node), self.namespace)}?{query}"
            try:
                answer = read_object(self.cluster.send(Request(method="GET", path=path)))
            except (NotFound, Forbidden, MethodNotAllowed, BadRequest):
                continue  # A kubelet, which keeps nothing.
            pods += [deleted_pod(name_of(node), entry) for entry in answer.get("items") or ()]
        return tuple(sorted(pods, key=lambda entry: entry.gone_at, reverse=True))

    def _nodes(self) -> tuple[Object, ...]:
        """Return the nodes; none for users whose access is limited to a namespace."""
        try:
            return self.cluster.list(NODES).items
        except Forbidden:
            return ()

    def job_logs(self, pods: Sequence[DeletedPod], choice: ReplicaSelector, ask: LogOptions) -> list[Iterator[Logged]]:
        """Return the log of each replica of the latest job of that name; raise NotFound if there is none."""
        # The latest pod comes first: an earlier job may have had the same name.
        mine = [entry for entry in pods if entry.owner == pods[0].owner]
        by_name = {entry.name: entry for entry in reversed(mine)}
        members = [entry.member for entry in by_name.values() if entry.member is not None]
        places = choice.places(members, leader_id(members))
        selected = [entry for entry in members if entry.place in places]
        if ask.is_previous:
            last = {entry.place: entry for entry in latest(selected)}
            selected = [entry for entry in selected if entry.attempt < last[entry.place].attempt]
        if not selected:
            places_with_logs = ", ".join(sorted({str(entry.place) for entry in members}))
            raise NotFound(
                f"there is no archived log of these replicas of {pods[0].job}; there are logs of: {places_with_logs}"
            )
        options = replace(ask, is_previous=False)
        return [self._member_log(member, by_name[member.name], options) for member in latest(selected)]

    def _member_log(self, member: ReplicaPod, pod: DeletedPod, ask: LogOptions) -> Iterator[Logged]:
        for text in self.pod_log(pod, ask):
            yield Logged(place=member.place, pod=member.name, text=text)

    def pod_log(self, pod: DeletedPod, ask: LogOptions) -> Iterator[bytes]:
        """Yield the log of a pod in complete lines; raise NotFound if it was removed."""
        path = history_path(pod.node, pod.namespace, pod.name)
        query = {**replace(ask, is_followed=False).query(), "uid": pod.uid}
        yield from within(whole_lines(self.cluster.stream(path, query)), ask)


def pod_log(session: Session, name: str, ask: LogOptions) -> Iterator[bytes]:
    """Yield a pod's log in complete lines: until its process ends if followed, else the current ones."""
    if not ask.is_followed:
        path = PODS.path(session.namespace, name, "log")
        yield from within(whole_lines(session.cluster.stream(path, ask.query())), ask)
        return
    with EventMux(session.dial) as feed:
        feed.start(reading(LogSource(namespace=session.namespace, pod=name), ask), f"log of {name}")
        while not isinstance(item := feed.take(), Read):
            if isinstance(item, LogChunk):
                yield item.text
