"""Who is tried again, who is lost, and how long to wait before the next try."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from paceline.model.gang import Gang, ReplicaId, RestartPolicy, RestartScope
from paceline.model.job_status import JobStatus, ReplicaPhase
from paceline.plan.job.attempts import Try, begin_all
from paceline.plan.job.completion_rules import holding, is_hopeless
from paceline.plan.job.report.oom import advice, counted, is_killed_again
from paceline.plan.job.view import JobView

# Ctrl-C, SIGKILL, "please restart me", SIGTERM: T9k's list, to the letter.
RESTARTABLE = frozenset({130, 137, 138, 143})
PAUSE, LONGEST_PAUSE = timedelta(seconds=1), timedelta(minutes=5)
FAR = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartVerdict:
    """What became of the members: tries to be repeated, places that are lost, places that are done."""

    again: tuple[Try, ...] = ()
    lost: frozenset[ReplicaId] = frozenset()
    done: frozenset[ReplicaId] = frozenset()
    # The failed tries, the first of them first: the others often failed because of it.
    failed: tuple[Try, ...] = ()


def evaluate(view: JobView, replicas: tuple[Try, ...]) -> RestartVerdict:
    """Judge every ended try by its member's policy and by the restarts that are left."""
    failed = failed_first(replicas)
    over = [*failed, *(replica for replica in replicas if replica.phase is ReplicaPhase.SUCCEEDED)]
    again = _again(view, over)
    final = frozenset(replica.place for replica in over) - {replica.place for replica in again}
    lost = final & {replica.place for replica in failed}
    # A gang that is tried again loses nobody: whoever failed comes back with the others.
    return RestartVerdict(
        again=again,
        lost=frozenset() if restarts_whole_gang(view.gang, again) else lost,
        done=final - lost,
        failed=failed,
    )


def restarts_whole_gang(gang: Gang, again: tuple[Try, ...]) -> bool:
    """Return whether all members begin anew, not those alone that ended.

    Elastic members come and go alone, but they meet at their leader: when it is lost, so is what they agreed on. Who
    only watches met nobody.
    """
    if gang.scope is RestartScope.GANG:
        return any(not gang.watches(replica.place) for replica in again)
    return gang.is_elastic and any(replica.place == gang.leader for replica in again)


def why_lost(view: JobView, replica: Try) -> str:
    """Return why a failed replica is not restarted."""
    policy = view.gang.member(replica.place).restart
    if not _wants_restart(policy, replica):
        return f"restartPolicy is {policy}"
    if is_killed_again(view.gang, view.status, replica):
        return advice(view.gang, view.status, replica)
    return _all_used(view)


def _all_used(view: JobView) -> str:
    return f"all restarts are used ({view.status.backoff_count} of the job)"


def failed_first(replicas: tuple[Try, ...]) -> tuple[Try, ...]:
    """Return the failed tries in the order in which they failed, as far as that is known."""
    return tuple(sorted((replica for replica in replicas if replica.has_failed), key=_order))


def restarted(status: JobStatus, gang: Gang, again: tuple[Try, ...], now: datetime) -> JobStatus:
    """Count the restarts and name the moment before which nothing is made."""
    count = status.backoff_count + len(again)
    roles, members = dict(status.role_restarts), dict(status.member_attempts)
    is_whole = restarts_whole_gang(gang, again)
    for replica in again:
        roles[replica.place.role] = roles.get(replica.place.role, 0) + 1
        if not is_whole:
            members[str(replica.place)] = members.get(str(replica.place), 0) + 1
    begun = begin_all(status, gang) if is_whole else status
    return begun.but(
        member_attempts=members,
        backoff_count=count,
        role_restarts=roles,
        memory_kills=counted(gang, status, again),
        start_after=now + pause_after(count),
    )


def why_not_again(view: JobView) -> str:
    """Return why a stalled job is not restarted; empty when it is. The leader's policy counts."""
    leader = view.gang.leader
    policy = view.gang.member(leader).restart
    if policy is RestartPolicy.NEVER:
        return f"restartPolicy is {policy}"
    return "" if _Budget(view).take(leader.role) else _all_used(view)


def restart_all(status: JobStatus, gang: Gang, now: datetime) -> JobStatus:
    """Count one restart of all members, in the leader's name, and name the moment before which nothing is made."""
    count, role = status.backoff_count + 1, gang.leader.role
    return begin_all(status, gang).but(
        backoff_count=count,
        role_restarts={**status.role_restarts, role: status.role_restarts.get(role, 0) + 1},
        start_after=now + pause_after(count),
    )


def pause_after(count: int) -> timedelta:
    """Return the wait before the restart of this number: it doubles each time, up to a bound."""
    doublings = min(count - 1, 20)
    return min(PAUSE * (1 << doublings), LONGEST_PAUSE)


def backoff_until(status: JobStatus, now: datetime) -> datetime | None:
    """Return when the back-off ends, or None when there is none.

    A clock that was set back must not make a short pause long: no pause lasts longer than it was meant to.
    """
    if status.start_after is None or now >= status.start_after:
        return None
    return min(status.start_after, now + pause_after(max(status.backoff_count, 1)))


def _again(view: JobView, over: list[Try]) -> tuple[Try, ...]:
    """Return the tries that are repeated: in a gang the one that all are for, or else those of whoever only watches."""
    if view.gang.scope is RestartScope.REPLICA:
        return tuple(_single_again(view, over))
    peers = [replica for replica in over if not view.gang.watches(replica.place)]
    watching = [replica for replica in over if view.gang.watches(replica.place)]
    return tuple(_gang_again(view, peers)) or tuple(_single_again(view, watching))


def _gang_again(view: JobView, over: list[Try]) -> Iterator[Try]:
    """Yield the failed try that restarts the gang, if its policy and the limits let it.

    Only the first failure is judged: a peer that fails because of it must not decide. One that the job can bear says
    nothing of those after it. Always means OnFailure here, since a member that is done early is no reason to throw the
    others' work away.
    """
    lost: set[ReplicaId] = set()
    for replica in over:
        if not replica.has_failed or _is_over_with(view.gang, frozenset(lost)):
            return
        policy = view.gang.member(replica.place).restart
        if _is_worth(view, policy, replica) and _Budget(view).take(replica.place.role):
            yield replica
            return
        lost.add(replica.place)


def _is_over_with(gang: Gang, lost: frozenset[ReplicaId]) -> bool:
    return holding(gang.failure, lost) is not None or is_hopeless(gang.success, lost)


def _single_again(view: JobView, over: list[Try]) -> Iterator[Try]:
    budget = _Budget(view)
    policies = {member.place: member.restart for member in view.gang.members}
    # Who meets at the leader ends soon after it, and because of it: that is one restart, of all.
    led = [replica for replica in over if view.gang.is_elastic and replica.place == view.gang.leader]
    for replica in led:
        if _is_worth(view, policies[replica.place], replica) and budget.take(replica.place.role):
            yield replica
            return
    for replica in over:
        if _is_worth(view, policies[replica.place], replica) and budget.take(replica.place.role):
            yield replica


def _is_worth(view: JobView, policy: RestartPolicy, replica: Try) -> bool:
    """Return whether another try is wanted, and has a chance: what lacks memory twice will lack it again."""
    return _wants_restart(policy, replica) and not is_killed_again(view.gang, view.status, replica)


def _wants_restart(policy: RestartPolicy, replica: Try) -> bool:
    if policy is RestartPolicy.ALWAYS or not replica.has_failed:
        return policy is RestartPolicy.ALWAYS
    if policy is RestartPolicy.EXIT_CODE:
        # Without an exit code no program failed: the pod was evicted, deleted, or its node went away.
        return not replica.exit_code or replica.exit_code in RESTARTABLE
    return policy is RestartPolicy.ON_FAILURE


class _Budget:
    """The restarts that are left, shared by all members and per role."""

    def __init__(self, view: JobView) -> None:
        self._gang = view.gang
        self._count = view.status.backoff_count
        self._roles = dict(view.status.role_restarts)

    def take(self, role: str) -> bool:
        """Take one restart for a role, if there is one left."""
        used, limit = self._roles.get(role, 0), self._gang.role_limits.get(role)
        if limit is not None and used >= limit:
            return False
        if self._gang.backoff_limit is not None and self._count >= self._gang.backoff_limit:
            return False
        self._count, self._roles[role] = self._count + 1, used + 1
        return True


def _order(replica: Try) -> tuple[datetime, bool]:
    """Order failures by when they happened; of two in the same second, a killed one comes before one that gave up."""
    ends = [container.finished_at for container in replica.containers if container.finished_at is not None]
    return min(ends, default=FAR), bool(replica.exit_code) and replica.exit_code not in RESTARTABLE
