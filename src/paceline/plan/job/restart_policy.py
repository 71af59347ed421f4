"""Which replicas are restarted, which are lost, and how long to back off."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from paceline.model.gang import Gang, ReplicaId, RestartPolicy, RestartScope, Rule
from paceline.model.job_status import JobStatus
from paceline.model.replica_record import ReplicaPhase
from paceline.plan.job.attempts import ReplicaAttempt, begin_all, with_attempts
from paceline.plan.job.diagnosis import is_killed_again, memory_advice, memory_limit

# SIGINT, SIGKILL, SIGUSR1 (the program asks for a restart) and SIGTERM: T9k's list.
RESTARTABLE = frozenset({130, 137, 138, 143})
BACKOFF, MAX_BACKOFF = timedelta(seconds=1), timedelta(minutes=5)
FAR = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartVerdict:
    """What follows from the ended attempts: those to restart, and the replicas that are lost or done."""

    again: tuple[ReplicaAttempt, ...] = ()
    lost: frozenset[ReplicaId] = frozenset()
    done: frozenset[ReplicaId] = frozenset()
    # The failed attempts, the earliest first: it is often the cause of the others.
    failed: tuple[ReplicaAttempt, ...] = ()


def evaluate(gang: Gang, status: JobStatus, replicas: tuple[ReplicaAttempt, ...]) -> RestartVerdict:
    """Judge every ended attempt by the restart policy of its replica and by the remaining restarts."""
    failed = failed_first(replicas)
    over = [*failed, *(replica for replica in replicas if replica.phase is ReplicaPhase.SUCCEEDED)]
    again = _again(gang, status, over)
    final = frozenset(replica.place for replica in over) - {replica.place for replica in again}
    lost = final & {replica.place for replica in failed}
    # A restart of the whole gang includes all failed replicas, so none is lost.
    return RestartVerdict(
        again=again,
        lost=frozenset() if restarts_whole_gang(gang, again) else lost,
        done=final - lost,
        failed=failed,
    )


def met_rule(rules: tuple[Rule, ...], places: frozenset[ReplicaId]) -> Rule | None:
    """Return the first rule all of whose replicas are among `places`, or None."""
    return next((rule for rule in rules if places.issuperset(rule)), None)


def is_unreachable(rules: tuple[Rule, ...], lost: frozenset[ReplicaId]) -> bool:
    """Return whether every rule needs a replica that is lost."""
    return all(not lost.isdisjoint(rule) for rule in rules)


def restarts_whole_gang(gang: Gang, again: tuple[ReplicaAttempt, ...]) -> bool:
    """Return whether all members restart, not only those that ended.

    Elastic members restart alone, but their rendezvous is at the leader: if it is lost, all restart. An observer takes
    no part in the rendezvous.
    """
    if gang.scope is RestartScope.GANG:
        return any(not gang.watches(replica.place) for replica in again)
    return gang.is_elastic and any(replica.place == gang.leader for replica in again)


def why_lost(gang: Gang, status: JobStatus, replica: ReplicaAttempt) -> str:
    """Return why a failed replica is not restarted."""
    if not _wants_restart(replica):
        return f"restartPolicy is {replica.restart}"
    return memory_advice(gang, status, replica) or _all_used(status)


def _all_used(status: JobStatus) -> str:
    return f"all restarts are used ({status.backoff_count} of the job)"


def failed_first(replicas: tuple[ReplicaAttempt, ...]) -> tuple[ReplicaAttempt, ...]:
    """Return the failed attempts in the order in which they failed, as far as known."""
    return tuple(sorted((replica for replica in replicas if replica.has_failed), key=_order))


def restarted(status: JobStatus, gang: Gang, again: tuple[ReplicaAttempt, ...], now: datetime) -> JobStatus:
    """Return the status with the restarts counted, the next attempts begun and the back-off set."""
    limits = {replica.place: memory_limit(gang, replica) for replica in again}
    status = _counted(status, limits)
    if restarts_whole_gang(gang, again):
        status = begin_all(status, gang)
    else:
        status = with_attempts(status, {replica.place: replica.attempt + 1 for replica in again})
    return status.but(start_after=now + backoff_after(status.backoff_count))


def why_no_restart(gang: Gang, status: JobStatus) -> str:
    """Return why a stalled job is not restarted, by the leader's policy; empty if it is."""
    policy = gang.member(gang.leader).restart
    if policy is RestartPolicy.NEVER:
        return f"restartPolicy is {policy}"
    return "" if _Budget(gang, status).take(gang.leader.role) else _all_used(status)


def restart_all(status: JobStatus, gang: Gang, now: datetime) -> JobStatus:
    """Return the status with one restart of all members, counted for the leader, and the back-off set."""
    status = begin_all(_counted(status, {gang.leader: None}), gang)
    return status.but(start_after=now + backoff_after(status.backoff_count))


def _counted(status: JobStatus, limits: Mapping[ReplicaId, str | None]) -> JobStatus:
    """Count one restart of each replica, and record the limit with which it was OOM-killed, unless that is None."""
    records = {record.place: record for record in status.replicas}
    for place, limit in limits.items():
        record = records[place]
        oom_limit = record.oom_limit if limit is None else limit
        records[place] = replace(record, restarts=record.restarts + 1, oom_limit=oom_limit)
    return status.but(replicas=tuple(records.values()))


def backoff_after(count: int) -> timedelta:
    """Return the back-off before the restart with this number: it doubles every time, up to a maximum."""
    doublings = min(count - 1, 20)
    return min(BACKOFF * (1 << doublings), MAX_BACKOFF)


def backoff_until(status: JobStatus, now: datetime) -> datetime | None:
    """Return when the back-off ends, or None if there is none.

    The back-off never exceeds its full length from now, even if the clock was set back.
    """
    if status.start_after is None or now >= status.start_after:
        return None
    return min(status.start_after, now + backoff_after(max(status.backoff_count, 1)))


def _again(gang: Gang, status: JobStatus, over: list[ReplicaAttempt]) -> tuple[ReplicaAttempt, ...]:
    """Return the attempts to restart: in Gang scope the failure that restarts all, else failed observers."""
    if gang.scope is RestartScope.REPLICA:
        return tuple(_single_again(gang, status, over))
    peers = [replica for replica in over if not gang.watches(replica.place)]
    observers = [replica for replica in over if gang.watches(replica.place)]
    return tuple(_gang_again(gang, status, peers)) or tuple(_single_again(gang, status, observers))


def _gang_again(gang: Gang, status: JobStatus, over: list[ReplicaAttempt]) -> Iterator[ReplicaAttempt]:
    """Yield the failed attempt that restarts the gang, if policy and limits allow it.

    The first failure decides, since later ones may be its consequences; failures that the job tolerates are skipped.
    Always means OnFailure here: a member that succeeds early is no reason to discard the work of the others.
    """
    lost: set[ReplicaId] = set()
    for replica in over:
        if not replica.has_failed or _is_decided(gang, frozenset(lost)):
            return
        if _is_worth(gang, status, replica) and _Budget(gang, status).take(replica.place.role):
            yield replica
            return
        lost.add(replica.place)


def _is_decided(gang: Gang, lost: frozenset[ReplicaId]) -> bool:
    return met_rule(gang.failure, lost) is not None or is_unreachable(gang.success, lost)


def _single_again(gang: Gang, status: JobStatus, over: list[ReplicaAttempt]) -> Iterator[ReplicaAttempt]:
    budget = _Budget(gang, status)
    # Elastic members fail soon after their leader and because of it: that counts as one restart.
    leaders = [replica for replica in over if gang.is_elastic and replica.place == gang.leader]
    for replica in leaders:
        if _is_worth(gang, status, replica) and budget.take(replica.place.role):
            yield replica
            return
    for replica in over:
        if _is_worth(gang, status, replica) and budget.take(replica.place.role):
            yield replica


def _is_worth(gang: Gang, status: JobStatus, replica: ReplicaAttempt) -> bool:
    """Return whether the policy wants a restart and it may help: a second OOM kill with the same limit will recur."""
    return _wants_restart(replica) and not is_killed_again(gang, status, replica)


def _wants_restart(replica: ReplicaAttempt) -> bool:
    policy = replica.restart
    if policy is RestartPolicy.ALWAYS or not replica.has_failed:
        return policy is RestartPolicy.ALWAYS
    if policy is RestartPolicy.EXIT_CODE:
        # Without an exit code no program failed: the pod was evicted or deleted, or its node is gone.
        return not replica.exit_code or replica.exit_code in RESTARTABLE
    return policy is RestartPolicy.ON_FAILURE


class _Budget:
    """The remaining restarts, of the job and per role."""

    def __init__(self, gang: Gang, status: JobStatus) -> None:
        self._gang = gang
        self._count = status.backoff_count
        self._roles = status.role_restarts

    def take(self, role: str) -> bool:
        """Take one restart for a role; return False if none remains."""
        used, limit = self._roles.get(role, 0), self._gang.role_limits.get(role)
        if limit is not None and used >= limit:
            return False
        if self._gang.backoff_limit is not None and self._count >= self._gang.backoff_limit:
            return False
        self._count, self._roles[role] = self._count + 1, used + 1
        return True


def _order(replica: ReplicaAttempt) -> tuple[datetime, bool]:
    """Order failures by time; of two in the same second, a killed process comes first."""
    ends = [container.finished_at for container in replica.containers if container.finished_at is not None]
    return min(ends, default=FAR), bool(replica.exit_code) and replica.exit_code not in RESTARTABLE
