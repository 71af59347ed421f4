"""The logs of pods that are gone, as the nodes that ran them have kept them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from paceline.apimachinery.meta import Object, name_of
from paceline.client.interface import NODES
from paceline.client.requests import Request
from paceline.client.responses import read_object
from paceline.client.sync import DirectCluster
from paceline.errors import BadRequest, Forbidden, MethodNotAllowed, NotFound
from paceline.sdk.follow import Logged, ReplicaSelector
from paceline.sdk.logs.lines import whole_lines
from paceline.sdk.logs.merge import within
from paceline.sdk.logs.sources import LogOptions
from paceline.sdk.replica_pods import MemberPod, latest, leader_place, member_pod


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPod:
    """One pod that is gone."""

    node: str
    namespace: str
    name: str
    uid: str
    job: str
    # The uid of the job it belonged to; empty for a pod of its own.
    owner: str
    gone_at: str
    # When its logs were removed; empty while they are kept.
    pruned_at: str
    labels: Mapping[str, str]
    # None when it does not say which member of a job it was.
    member: MemberPod | None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What is kept of one namespace's past."""

    cluster: DirectCluster
    namespace: str

    def pods(self, *, job: str = "", pod: str = "") -> tuple[PastPod, ...]:
        """Find pods that are gone, of one job or of one name, the last one first; none where nodes may not be asked."""
        query = urlencode({name: value for name, value in (("job", job), ("pod", pod)) if value})
        found = []
        for node in self._nodes():
            path = f"{_path(name_of(node), self.namespace)}?{query}"
            try:
                told = read_object(self.cluster.send(Request(method="GET", path=path)))
            except (NotFound, Forbidden, MethodNotAllowed, BadRequest):
                continue  # A kubelet, which keeps nothing.
            found += [_read(name_of(node), each) for each in told.get("items") or ()]
        return tuple(sorted(found, key=lambda each: each.gone_at, reverse=True))

    def _nodes(self) -> tuple[Object, ...]:
        """Read the nodes; whoever may look into one namespace only, as on most clusters of many, sees none."""
        try:
            return self.cluster.list(NODES).items
        except Forbidden:
            return ()

    def job_logs(self, pods: Sequence[PastPod], choice: ReplicaSelector, ask: LogOptions) -> list[Iterator[Logged]]:
        """Give one log per member of a job, of the last job of that name; NotFound says when there is none to give."""
        # The last one gone first: another job may have had the name before.
        mine = [each for each in pods if each.owner == pods[0].owner]
        by_name = {each.name: each for each in reversed(mine)}
        members = [each.member for each in by_name.values() if each.member is not None]
        places = choice.places(members, leader_place(members))
        meant = [each for each in members if each.place in places]
        if ask.is_previous:
            last = {each.place: each for each in latest(meant)}
            meant = [each for each in meant if each.attempt < last[each.place].attempt]
        if not meant:
            known = ", ".join(sorted({str(each.place) for each in members}))
            raise NotFound(f"nothing is kept of such a log of {pods[0].job}; there are logs of: {known}")
        own = replace(ask, is_previous=False)
        return [self._member_log(member, by_name[member.name], own) for member in latest(meant)]

    def _member_log(self, member: MemberPod, pod: PastPod, ask: LogOptions) -> Iterator[Logged]:
        for text in self.pod_log(pod, ask):
            yield Logged(place=member.place, pod=member.name, text=text)

    def pod_log(self, pod: PastPod, ask: LogOptions) -> Iterator[bytes]:
        """Give the log of a pod in whole lines; NotFound says when it was removed."""
        path = f"{_path(pod.node, pod.namespace)}/{quote(pod.name, safe='')}/log"
        query = {**replace(ask, is_followed=False).query(), "uid": pod.uid}
        yield from within(whole_lines(self.cluster.stream(path, query)), ask)


def _path(node: str, namespace: str) -> str:
    return f"{NODES.path('', node, 'proxy')}/history/{quote(namespace, safe='')}"


def _read(node: str, told: Mapping[str, Any]) -> PastPod:
    owner: Mapping[str, Any] = told.get("owner") or {}
    labels: Mapping[str, str] = told.get("labels") or {}
    as_pod: Object = {"metadata": {"name": told["pod"], "labels": labels}}
    return PastPod(
        node=node,
        namespace=str(told["namespace"]),
        name=str(told["pod"]),
        uid=str(told["uid"]),
        job=str(told.get("job") or ""),
        owner=str(owner.get("uid") or ""),
        gone_at=str(told["goneAt"]),
        pruned_at=str(told.get("prunedAt") or ""),
        labels=labels,
        member=member_pod(as_pod),
    )
