"""Worlds to decide about, in few words.

A member is written as the phase of its pod: `Running`, `Failed 137`, `Pending Unschedulable`; `` was never made, and
`gone` was seen once and is not there any more.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from paceline.model.gang import Gang, JobNaming, Member, ReplicaId, RestartPolicy, RestartScope
from paceline.model.job_status import JobStatus
from paceline.model.replica_record import ContainerState, ReplicaPhase
from paceline.plan.job.attempts import ReplicaAttempt
from paceline.plan.job.reporting import with_tasks
from paceline.plan.job.snapshot import JobSnapshot, PodPhase, PodSnapshot

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SITE = JobNaming(job="demo", namespace="default", stem="demo-12345", ports={})
GANG, REPLICA = RestartScope.GANG, RestartScope.REPLICA
TEMPLATE = {"spec": {"containers": [{"name": "main", "image": "python"}]}}


def after(seconds):
    return NOW + timedelta(seconds=seconds)


def places(*counts, roles=("worker", "ps")):
    return [ReplicaId(role, i) for role, count in zip(roles, counts, strict=False) for i in range(count)]


def gang(workers=2, *, restart="OnFailure", scope=GANG, **rules):
    """A gang whose first worker decides; in Gang scope any member's failure does, as for PyTorch."""
    crew = places(workers)
    policies = [restart] * workers if isinstance(restart, str) else restart
    deciding = crew if scope is GANG else crew[:1]
    return Gang(
        members=tuple(
            Member(place=place, template=TEMPLATE, restart=RestartPolicy(policy))
            for place, policy in zip(crew, policies, strict=True)
        ),
        leader=crew[0],
        scope=scope,
        **{"success": ((crew[0],),), "failure": tuple((place,) for place in deciding), **rules},
    )


def attempt_of(status, place):
    return next((record.attempt for record in status.replicas if record.place == place), 0)


def pod(place, phase, *, attempt=0, **more):
    phase, _, detail = phase.partition(" ")
    more = {"name": SITE.pod(place, attempt), "uid": f"uid-{place}-{attempt}", **more}
    if phase == "Pending":
        return PodSnapshot(place=place, attempt=attempt, phase=PodPhase.PENDING, reason=detail, **more)
    code = {"Succeeded": 0, "Failed": int(detail or 1)}.get(phase)
    state = "Running" if code is None else "Terminated"
    containers = (ContainerState(name="main", state=state, exit_code=code, started_at=NOW),)
    return PodSnapshot(place=place, attempt=attempt, phase=PodPhase(phase), **{"containers": containers, **more})


# What people want of a job, and what is known of it besides its pods.
ASIDE = ("is_paused", "is_suspended", "created_at", "restart_request", "last_lines", "log_activity")


def seen(*members, of=None, older=(), **status):
    """What a pass sees when each member is at its current attempt and `older` pods are still there.

    `attempts`, `restarts` and `oom_limits` give numbers by the name of a replica; `attempt` is that of all others.
    """
    made = of or gang(len(members) or 2)
    aside = {"created_at": NOW, **{name: status.pop(name) for name in ASIDE if name in status}}
    words = [*members, *[""] * (len(made.members) - len(members))]
    last = status.pop("status", None) or recorded(made, words, **status)
    pods = [
        pod(member.place, word, attempt=attempt_of(last, member.place))
        for member, word in zip(made.members, words, strict=True)
        if word not in ("", "gone")
    ]
    return JobSnapshot(naming=SITE, gang=made, pods=(*older, *pods), status=last, generation=1, **aside)


def recorded(of, words, *, attempts=None, restarts=None, oom_limits=None, **status):
    """The last status remembers only what has gone since: the rest is new to it."""
    first, attempts = status.get("attempt", 0), attempts or {}
    restarts = restarts if isinstance(restarts, dict) else {str(of.leader): restarts or 0}
    tries = tuple(
        ReplicaAttempt(
            place=member.place,
            attempt=attempts.get(str(member.place), first),
            name=SITE.pod(member.place, attempts.get(str(member.place), first)),
            uid=f"uid-{member.place}-{attempts.get(str(member.place), first)}" if word == "gone" else "",
            phase=ReplicaPhase.RUNNING if word == "gone" else ReplicaPhase.CREATING,
        )
        for member, word in zip(of.members, words, strict=True)
    )
    last = with_tasks(JobStatus(**status), tries)
    records = (
        replace(
            record,
            restarts=restarts.get(str(record.place), 0),
            oom_limit=(oom_limits or {}).get(str(record.place), ""),
        )
        for record in last.replicas
    )
    return last.but(replicas=tuple(records))


def numbers(status):
    """The attempt of every recorded replica that is not at its first one."""
    return {str(record.place): record.attempt for record in status.replicas if record.attempt}


def then(world, plan, *members, **changes):
    """The world of the next pass: the plan's status was written, and the members are now as said."""
    told = {"of": world.gang, **{name: getattr(world, name) for name in ASIDE}, **changes}
    return seen(*members, status=plan.status, **told)


def obeyed(world, plan, **changes):
    """The world after a plan was carried out to the letter: deleted pods are gone, new ones are pending."""
    kept = tuple(each for each in world.pods if each.name not in plan.delete)
    made = tuple(pod(new.place, "Pending", attempt=new.attempt) for new in plan.create)
    return replace(world, pods=(*kept, *made), status=plan.status, **changes)
