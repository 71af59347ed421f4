"""Members that left when their job shrank: what they wrote is kept like that of those who stayed."""

from collections.abc import Iterator
from dataclasses import replace

from paceline.model.gang import FLUSH, ReplicaId
from paceline.model.job_status import ReplicaPhase
from paceline.plan.job.attempts import attempt_of
from paceline.plan.job.view import JobView, PodPhase, PodSeen

# Phases of a first try that has written nothing.
UNBEGUN = (ReplicaPhase.CREATING.value, ReplicaPhase.PENDING.value)


def record_scaled_down(view: JobView) -> JobView:
    """Write down who left and may have output that nobody has copied; whoever is back looks after it again."""
    sidecars = {member.keeping.container for member in view.gang.members if member.keeping is not None}
    if not view.gang.is_elastic or not sidecars or view.status.phase.is_final:
        return view
    members = {member.place for member in view.gang.members}
    wrote = {*view.status.left, *_wrote(view)} - members
    scaled_down = tuple(sorted(place for place in wrote if not _is_safe(view, place, sidecars)))
    return replace(view, status=view.status.but(left=scaled_down))


def _wrote(view: JobView) -> Iterator[ReplicaId]:
    """Yield the places at which something may have been written, as status and pods tell."""
    for task in view.status.tasks:
        for index, row in enumerate(task.get("replicas") or ()):
            place = ReplicaId(str(task["type"]), index)
            has_begun = row.get("phase") not in UNBEGUN or attempt_of(view.status, place) > 0
            if row.get("uid") and has_begun:
                yield place
    yield from (pod.place for pod in view.pods if pod.attempt or pod.phase is not PodPhase.PENDING)


def _is_safe(view: JobView, place: ReplicaId, sidecars: set[str]) -> bool:
    """Return whether everything was copied that was written at a place: by its last pod, or by one that came after."""
    done = (auxiliary.phase is PodPhase.SUCCEEDED for auxiliary in view.errands if auxiliary.name == f"{FLUSH}{place}")
    if any(done):
        return True
    pods = sorted((pod for pod in view.pods if pod.place == place), key=lambda pod: pod.attempt)
    return bool(pods) and _is_copied(pods[-1], sidecars)


def _is_copied(pod: PodSeen, sidecars: set[str]) -> bool:
    return any(stage.name in sidecars and stage.exit_code == 0 for stage in pod.stages)
