"""What must never happen, whatever pods do and wherever the controller stops."""

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from paceline.model.gang import CleanUp, ReplicaId
from paceline.model.job_status import JobStatus
from paceline.model.replica_record import ContainerState
from paceline.plan.job.decide import decide
from paceline.plan.job.plan import LogRef
from paceline.plan.job.snapshot import JobSnapshot, LogActivity, PodPhase, PodSnapshot
from tests.unit.plan.worlds import GANG, NOW, REPLICA, SITE, gang, pod, seen

# What a pod may do next. A deleting pod may end any way it likes, or just go.
NEXT = {
    PodPhase.PENDING: (PodPhase.PENDING, PodPhase.RUNNING, PodPhase.FAILED),
    PodPhase.RUNNING: (PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED, PodPhase.UNKNOWN),
    PodPhase.UNKNOWN: (PodPhase.UNKNOWN, PodPhase.RUNNING, PodPhase.FAILED),
    PodPhase.SUCCEEDED: (PodPhase.SUCCEEDED,),
    PodPhase.FAILED: (PodPhase.FAILED,),
}
CODES = (1, 137, 143)


@dataclass
class World:
    """A cluster that obeys slowly and wrongly, and a controller that may stop after any step."""

    seen: JobSnapshot
    now: object = NOW
    starts: Counter = field(default_factory=Counter)
    uids: int = 0
    # How often a replica was removed, or its pod was deleted before anything ran: no restart is counted for these.
    excused: Counter = field(default_factory=Counter)

    def step(self, *, write=True, deaths=99, births=99):
        """Decide once; the status lands first, or not at all, and then some of the rest."""
        before = self.seen
        plan = decide(before, self.now)
        check_plan(before, plan)
        if write:
            # What a stopped controller leaves behind is the wire form.
            status = JobStatus.from_wire(plan.status.to_wire())
            pods = [
                replace(each, is_deleting=True) if each.name in plan.delete[:deaths] else each for each in before.pods
            ]
            pods += [self._born(new) for new in plan.create[:births]]
            self.seen = replace(before, status=status, pods=tuple(pods))
            remade = (event.message.split()[1] for event in plan.events if event.reason == "Remade")
            self.excused.update(name.partition("-r")[0] for name in remade)
        self.now = max(self.now + timedelta(seconds=1), plan.wake_at or self.now)
        check_world(before, self.seen)
        return plan

    def _born(self, new):
        self.uids += 1
        made = pod(new.place, "Pending", attempt=new.attempt, uid=f"uid-{self.uids}")
        self.starts[made.name] += 1
        return made

    def move(self, index, choice, code):
        """Let one pod take a legal step of its own; a deleting one may vanish."""
        pods = list(self.seen.pods)
        if not pods:
            return
        index %= len(pods)
        moved = pods[index]
        options = NEXT[moved.phase]
        if moved.is_deleting and choice == 0:
            del pods[index]
        else:
            pods[index] = at(moved, options[choice % len(options)], code)
        self.seen = replace(self.seen, pods=tuple(pods))

    def resize(self, size):
        """Let an elastic job have another size."""
        before = self.seen.gang
        if before.is_elastic:
            self.excused.update(SITE.pod(member.place) for member in before.members[size:])
            sized = gang(size, scope=before.scope, restart=before.members[0].restart.value)
            self.seen = replace(self.seen, gang=replace(before, members=sized.members, failure=sized.failure))

    def hear(self):
        """Let every container have been silent for long, as far as anybody can say, and what failed have said why."""
        wishes = [LogRef(pod=each.name, container="main") for each in self.seen.pods]
        silent = LogActivity(read_at=self.now, since=self.now - timedelta(minutes=1))
        failure = self.seen.status.failure
        last_lines = {failure.pod: ("boom",)} if failure else {}
        self.seen = replace(self.seen, log_activity=dict.fromkeys(wishes, silent), last_lines=last_lines)

    def lose(self, index):
        """Let somebody force one pod away; one that no pass has recorded yet may be made again, so it stays."""
        rows = [row for task in self.seen.status.tasks for row in task["replicas"]]
        unrecorded = {row["name"] for row in rows if not row.get("uid")}
        there = [each for each in self.seen.pods if each.name not in unrecorded]
        if there:
            lost = there[index % len(there)]
            self.seen = replace(self.seen, pods=tuple(each for each in self.seen.pods if each is not lost))


def at(moved: PodSnapshot, phase: PodPhase, code: int) -> PodSnapshot:
    code = {PodPhase.SUCCEEDED: 0, PodPhase.FAILED: code}.get(phase)
    state = "Running" if code is None else "Terminated"
    container = ContainerState(name="main", state=state, exit_code=code, started_at=NOW)
    return moved if moved.phase.is_final else replace(moved, phase=phase, containers=(container,))


def check_plan(before: JobSnapshot, plan) -> None:
    there = {each.name: each for each in before.pods}
    for name in plan.delete:
        assert name in there, "no pod is deleted that was not seen"
        assert not there[name].is_deleting, "no pod is deleted twice"
    if not plan.status.phase.is_final:
        doomed = [there[name] for name in plan.delete]
        assert not [each for each in doomed if each.phase.is_final], "logs stay while the job runs"
    recorded = {row["name"] for task in before.status.tasks for row in task["replicas"] if row.get("uid")}
    made = {before.naming.pod(new.place, new.attempt) for new in plan.create}
    assert not (made and (before.is_paused or before.is_suspended)), "who is held makes nothing"
    assert plan.status.phase.is_final or not plan.deletes_job, "only an ended job goes"
    assert not made & recorded, "a name that was seen is never made again"
    assert not made & there.keys(), "what is there is not made"
    if before.status.phase.is_final:
        assert plan.status.phase is before.status.phase, "the end is the end"
        assert plan.status.completion_time == before.status.completion_time
        assert not plan.create


def check_world(before: JobSnapshot, now: JobSnapshot) -> None:
    live = [each for each in now.pods if not each.phase.is_final]
    assert len({each.place for each in live}) == len(live), "a place has one live pod at most"
    if now.gang.scope is GANG:
        peers = {each.attempt for each in live if not now.gang.watches(each.place)}
        assert len(peers) <= 1, "attempts never overlap"
    limit = now.gang.backoff_limit
    assert before.status.backoff_count <= now.status.backoff_count <= limit, "restarts are limited"
    assert before.status.attempt <= now.status.attempt


COUNT = st.integers(0, 3)
STEPS = st.one_of(
    st.tuples(st.just("step"), st.booleans(), COUNT, COUNT),
    st.tuples(st.just("step"), st.just(value=True), st.just(99), st.just(99)),
    st.tuples(st.just("move"), COUNT, COUNT, st.sampled_from(CODES)),
    st.tuples(st.just("lose"), COUNT),
    st.tuples(st.just("pause"), st.booleans()),
    st.tuples(st.just("suspend"), st.booleans()),
    st.tuples(st.just("restart"), st.sampled_from("ab")),
    st.tuples(st.just("resize"), st.integers(1, 4)),
    st.just(("hear",)),
)
LIVES = st.lists(STEPS, max_size=60)


def watched(crew, is_watched):
    """Give some gangs a member that only watches the others."""
    if crew.is_elastic or not is_watched:
        return crew
    evaluator = replace(crew.members[0], place=ReplicaId("evaluator", 0))
    return replace(crew, members=(*crew.members, evaluator), observer_roles=("evaluator",))


CREWS = st.builds(
    gang,
    st.integers(1, 4),
    restart=st.sampled_from(["Always", "OnFailure", "Never", "ExitCode"]),
    scope=st.sampled_from([GANG, REPLICA]),
    backoff_limit=st.integers(0, 3),
    clean_up=st.sampled_from(CleanUp),
    active_deadline_seconds=st.sampled_from([None, 30]),
    starting_deadline_seconds=st.sampled_from([None, 30]),
    stall_seconds=st.sampled_from([None, 20]),
    ttl_seconds=st.sampled_from([None, 0, 30]),
    is_elastic=st.booleans(),
)
GANGS = st.builds(watched, CREWS, st.booleans())


# A busy machine is no reason to fail.
patient = settings(deadline=None)


def live(crew, life):
    world = World(seen(of=crew))
    for what, *details in life:
        match what, details:
            case "step", [write, deaths, births]:
                world.step(write=write, deaths=deaths, births=births)
            case "move", [index, choice, code]:
                world.move(index, choice, code)
            case "lose", [index]:
                world.lose(index)
            case "pause", [is_paused]:
                world.seen = replace(world.seen, is_paused=is_paused)
            case "suspend", [is_suspended]:
                world.seen = replace(world.seen, is_suspended=is_suspended)
            case "restart", [wish]:
                world.seen = replace(world.seen, restart_request=wish)
            case "resize", [size]:
                world.resize(size)
            case "hear", []:
                world.hear()
    return world


@patient
@given(GANGS, LIVES)
def test_whatever_happens_nothing_bad_does(crew, life):
    live(crew, life)


@patient
@given(GANGS, LIVES)
def test_whatever_happened_a_calm_world_brings_the_job_to_its_end(crew, life):
    """From wherever chaos left it: pods do as they are told, and succeed."""
    world = live(crew, life)
    world.seen = replace(world.seen, is_paused=False, is_suspended=False)
    for _turn in range(60):
        kept = [each for each in world.seen.pods if not each.is_deleting]
        calm = {PodPhase.PENDING: PodPhase.RUNNING}
        world.seen = replace(
            world.seen,
            pods=tuple(at(each, calm.get(each.phase, PodPhase.SUCCEEDED), 0) for each in kept),
        )
        world.step()
    world.now += timedelta(minutes=10)
    world.step()

    assert world.seen.status.phase.is_final
    assert world.step().status == world.seen.status


@patient
@given(GANGS, LIVES)
def test_no_pod_starts_more_often_than_its_attempts(crew, life):
    world = live(crew, life)
    status = world.seen.status
    tries = status.backoff_count + status.resumes + 1
    by_place = Counter()
    for name, count in world.starts.items():
        assert count == 1
        by_place[name.partition("-r")[0]] += count

    assert all(count <= tries + world.excused[name] for name, count in by_place.items())
    last = {SITE.pod(record.place): record.attempt for record in status.replicas}
    assert all(count <= last[name] + 1 for name, count in by_place.items() if name in last)


@patient
@given(GANGS, LIVES)
def test_a_gang_is_never_complete_and_forgotten(crew, life):
    """A job under way always has something to wait for: a pod, a moment, or a person who paused it."""
    world = live(crew, life)
    plan = world.step()
    if plan.status.phase.is_final or world.seen.is_paused or world.seen.is_suspended:
        return

    live_pods = [each for each in world.seen.pods if not each.phase.is_final]
    assert plan.create or plan.wake_at or live_pods or plan.status != world.seen.status or plan.events
