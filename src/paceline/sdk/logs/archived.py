"""Logs of deleted pods, archived by the nodes that ran them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from paceline.apimachinery.meta import Object, name_of
from paceline.client.interface import NODES, PODS
from paceline.client.requests import Request
from paceline.client.responses import read_object
from paceline.client.sync import DirectCluster
from paceline.errors import BadRequest, Forbidden, MethodNotAllowed, NotFound
from paceline.sdk.client import Session
from paceline.sdk.follow import Logged, ReplicaSelector
from paceline.sdk.logs.event_mux import EventMux
from paceline.sdk.logs.merge import within
from paceline.sdk.logs.sources import LogChunk, LogOptions, LogSource, Read, reading, whole_lines
from paceline.sdk.replica_pods import ReplicaPod, latest, leader_id, replica_pod


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedPod:
    """A deleted pod."""

    node: str
    namespace: str
    name: str
    uid: str
    job: str
    # The uid of its job; empty for a pod without a job.
    owner: str
    gone_at: str
    # When its logs were removed; empty if they still exist.
    pruned_at: str
    labels: Mapping[str, str]
    # None if its labels do not name a replica.
    member: ReplicaPod | None


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
            path = f"{_path(name_of(node), self.namespace)}?{query}"
            try:
                answer = read_object(self.cluster.send(Request(method="GET", path=path)))
            except (NotFound, Forbidden, MethodNotAllowed, BadRequest):
                continue  # A kubelet, which keeps nothing.
            pods += [_read(name_of(node), entry) for entry in answer.get("items") or ()]
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
        path = f"{_path(pod.node, pod.namespace)}/{quote(pod.name, safe='')}/log"
        query = {**replace(ask, is_followed=False).query(), "uid": pod.uid}
        yield from within(whole_lines(self.cluster.stream(path, query)), ask)


def _path(node: str, namespace: str) -> str:
    return f"{NODES.path('', node, 'proxy')}/history/{quote(namespace, safe='')}"


def _read(node: str, entry: Mapping[str, Any]) -> DeletedPod:
    owner: Mapping[str, Any] = entry.get("owner") or {}
    labels: Mapping[str, str] = entry.get("labels") or {}
    as_pod: Object = {"metadata": {"name": entry["pod"], "labels": labels}}
    return DeletedPod(
        node=node,
        namespace=str(entry["namespace"]),
        name=str(entry["pod"]),
        uid=str(entry["uid"]),
        job=str(entry.get("job") or ""),
        owner=str(owner.get("uid") or ""),
        gone_at=str(entry["goneAt"]),
        pruned_at=str(entry.get("prunedAt") or ""),
        labels=labels,
        member=replica_pod(as_pod),
    )


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
