"""One commit for all members: looked up first, written down, and only then are pods made."""

from dataclasses import replace

import pytest

from paceline.model.job_status import JobStatus, Phase
from paceline.plan.job.decide import decide
from paceline.plan.job.manifests import auxiliary_pod_manifest
from paceline.plan.job.plan import AuxiliaryPod
from paceline.plan.job.snapshot import AuxiliaryPodSnapshot, PodPhase
from tests.unit.plan.worlds import NOW, SITE, TEMPLATE, after, gang, seen

COMMIT = "0123456789abcdef0123456789abcdef01234567"
OWNER = {"kind": "GenericJob", "name": "demo"}
LOOKING = replace(gang(2), resolve=TEMPLATE)


def errand(phase, message="", attempt=0, **more):
    told = {"finished_at": NOW, **more}
    return AuxiliaryPodSnapshot(
        name="resolve",
        pod=SITE.auxiliary_pod("resolve", attempt),
        attempt=attempt,
        phase=PodPhase(phase),
        message=message,
        **told,
    )


def world(*errands, **status):
    return replace(seen(of=LOOKING, **status), auxiliary_pods=errands)


def test_nothing_is_made_before_the_commit_is_known_but_the_pod_that_finds_it():
    plan = decide(world(), NOW)

    assert (plan.create, plan.auxiliary_pods) == ((), (AuxiliaryPod(name="resolve", attempt=0),))
    assert "being resolved" in plan.status.waiting


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_the_pod_that_looks_is_waited_for(phase):
    plan = decide(world(errand(phase)), NOW)

    assert (plan.create, plan.auxiliary_pods, plan.status.phase) == ((), (), Phase.PENDING)


WAITS = {
    "ImagePullBackOff": "Back-off pulling image",
    "Unschedulable": "0/2 nodes are available: 2 Insufficient cpu.",
}


@pytest.mark.parametrize("reason", WAITS)
def test_a_job_says_why_the_pod_that_resolves_its_revision_does_not_run(reason):
    stuck = errand("Pending", WAITS[reason], reason=reason)
    plan = decide(world(stuck), NOW)
    again = decide(world(stuck, status=plan.status), after(1))

    expected = f"the git revision is being resolved: pod demo-12345-resolve: {WAITS[reason]}"
    assert plan.status.waiting == expected
    assert [(event.reason, event.message) for event in plan.events if event.is_warning] == [(reason, expected)]
    assert (again.events, again.status) == ((), plan.status), "it is said once, and nothing is written again"


def test_who_looks_for_too_long_is_noticed_when_the_job_should_have_begun_and_goes():
    """Rule startingDeadlineSeconds: a pod that never ends tells nobody, so somebody must look."""
    late = replace(world(errand("Pending")), gang=replace(LOOKING, starting_deadline_seconds=30))
    early = replace(late, auxiliary_pods=())

    assert (decide(early, after(1)).wake_at, decide(late, after(1)).wake_at) == (after(30), after(30))
    plan = decide(late, after(30))
    assert (plan.status.phase, plan.delete) == (Phase.FAILED, ("demo-12345-resolve",))
    assert "0 of 2 pods ran within 30 seconds" in plan.events[-1].message


def test_the_commit_is_written_down_before_anything_is_made():
    plan = decide(world(errand("Succeeded", f"{COMMIT}\n")), NOW)

    assert (plan.create, plan.status.source, plan.wake_at) == ((), {"commit": COMMIT}, NOW)
    assert JobStatus.from_wire(plan.status.to_wire()).source == {"commit": COMMIT}


def test_members_are_made_once_the_commit_is_known():
    known = replace(gang(2), commit=COMMIT)
    plan = decide(seen(of=known), NOW)

    assert len(plan.create) == 2
    assert plan.status.source == {"commit": COMMIT}


def test_a_failure_is_tried_again_after_a_pause():
    shown = world(errand("Failed", "git: could not connect"))
    early, late = decide(shown, NOW), decide(shown, after(1))

    assert (early.wake_at, "could not connect" in early.status.waiting) == (after(1), True)
    assert late.status.errands == {"resolve": 1}
    again = decide(replace(shown, status=late.status), after(1))
    assert again.auxiliary_pods == (AuxiliaryPod(name="resolve", attempt=1),)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (errand("Failed", "git: no branch mian", attempt=2), "git: no branch mian"),
        (errand("Failed", attempt=2), "failed"),
        (errand("Succeeded", "not a commit", attempt=2), "reported no commit: not a commit"),
        (errand("Succeeded", attempt=2), "reported no commit: it reported nothing"),
    ],
    ids=["git says why", "nobody says why", "something else is said", "nothing is said"],
)
def test_code_that_is_not_there_fails_the_job_with_the_words_of_git(last, said):
    plan = decide(world(last, errands={"resolve": 2}), NOW)

    assert plan.status.phase is Phase.FAILED
    assert plan.events[-1].reason == "SourceNotFound"
    assert said in plan.events[-1].message


def test_a_job_that_is_paused_or_suspended_looks_nothing_up():
    assert decide(world(is_paused=True), NOW).auxiliary_pods == ()
    assert decide(world(is_suspended=True), NOW).auxiliary_pods == ()


def test_an_errand_is_a_pod_of_the_job_and_no_member():
    made = auxiliary_pod_manifest(SITE, LOOKING, AuxiliaryPod(name="resolve", attempt=1), owner=OWNER)

    assert made["metadata"]["name"] == "demo-12345-resolve-r1"
    assert "replica-type" not in made["metadata"]["labels"]
    assert made["spec"]["restartPolicy"] == "Never"
