"""A job is over when its results are safe, and not before; what was cut short is copied by a pod of its own."""

from dataclasses import replace

import pytest

from paceline.model.gang import CleanUp, OutputUpload
from paceline.model.job_status import JobStatus, Phase
from paceline.model.replica_record import ContainerState
from paceline.plan.job.auxiliary_pods import template_of
from paceline.plan.job.decide import decide
from paceline.plan.job.plan import AuxiliaryPod
from paceline.plan.job.snapshot import AuxiliaryPodSnapshot, PodPhase
from tests.unit.plan.worlds import NOW, SITE, TEMPLATE, after, gang, places, pod, seen

SIDECAR = "paceline-output"
A, B = places(2)
KEPT, CUT = ((ContainerState(name=SIDECAR, state="Terminated", exit_code=code, message="copied"),) for code in (0, 137))
COPYING = (ContainerState(name=SIDECAR, state="Running"),)
NEVER_BEGUN = (ContainerState(name=SIDECAR, state="Waiting"),)


def keepers(workers=1, *, has_claim=True, **rules):
    """A gang whose members' output goes to a bucket."""
    keeping = OutputUpload(container=SIDECAR, flush=TEMPLATE if has_claim else None)
    made = gang(workers, **{"restart": "Never", "clean_up": CleanUp.UNFINISHED, **rules})
    return replace(made, members=tuple(replace(each, keeping=keeping) for each in made.members))


def world(*members, of=None, errands=(), **status):
    """What is seen of members, each a phase and the stages of its pod."""
    made = of or keepers(len(members))
    shown = seen(*[phase for phase, _ in members], of=made, **status)
    stages = {member.place: told for member, (_, told) in zip(made.members, members, strict=True)}
    pods = tuple(replace(each, stages=stages[each.place]) for each in shown.pods)
    return replace(shown, pods=pods, auxiliary_pods=tuple(errands))


def errand(phase, *, attempt=0, place=A, **more):
    name = f"flush-{place}"
    told = {"message": "no such bucket" if phase == "Failed" else "2 files", "finished_at": NOW, **more}
    return AuxiliaryPodSnapshot(
        name=name, pod=SITE.auxiliary_pod(name, attempt), attempt=attempt, phase=PodPhase(phase), **told
    )


def ending(phase="Succeeded", reason="Succeeded"):
    time = "2030-01-01T00:00:00.000000Z"
    return {
        "ending": {"phase": phase, "reason": reason, "message": "so it ended", "time": time},
        "phase": Phase.RUNNING,
    }


def passes(shown, moment=NOW):
    """Decide, let the write land, and decide again."""
    first = decide(shown, moment)
    return first, decide(replace(shown, status=JobStatus.from_wire(first.status.to_wire())), moment)


def test_a_job_whose_sidecars_ended_well_succeeds_at_once():
    plan = decide(world(("Succeeded", KEPT)), NOW)

    assert (plan.status.phase, plan.auxiliary_pods) == (Phase.SUCCEEDED, ())


@pytest.mark.parametrize(("phase", "outcome"), [("Succeeded", "Succeeded"), ("Failed", "Failed")])
def test_a_copy_that_was_cut_short_holds_the_end_back_until_another_pod_made_it(phase, outcome):
    cut = world((phase, CUT))
    first, second = passes(cut)

    assert not first.status.phase.is_final
    assert first.status.ending["phase"] == outcome
    assert first.auxiliary_pods == ()
    assert second.auxiliary_pods == (AuxiliaryPod(name="flush-worker-0", attempt=0),)

    flushed = replace(cut, status=second.status, auxiliary_pods=(errand("Succeeded"),))
    last = decide(flushed, after(5))
    assert last.status.phase.value == outcome
    assert last.status.completion_time == after(5)
    assert last.status.ending == {}
    assert last.status.tasks[0]["replicas"][0]["stages"][0]["message"] == "2 files"


def test_how_the_job_ended_is_said_once_and_when_it_has():
    cut = world(("Succeeded", CUT))
    first, second = passes(cut)
    last = decide(replace(cut, status=second.status, auxiliary_pods=(errand("Succeeded"),)), NOW)

    assert [each.reason for plan in (first, second, last) for each in plan.events].count("Succeeded") == 1
    assert "KeepingOutput" in [each.reason for each in first.events]
    assert last.events[-1].reason == "Succeeded"


def test_while_a_copy_is_made_the_job_waits_and_says_for_what():
    plan = decide(world(("Succeeded", CUT), errands=(errand("Running"),), **ending()), NOW)

    assert (plan.status.phase, plan.auxiliary_pods) == (Phase.RUNNING, ())
    assert "the output of worker-0 is being uploaded" in plan.status.waiting


def test_a_failed_copy_is_reported_and_tried_again_and_again():
    shown = world(("Succeeded", CUT), errands=(errand("Failed"),), **ending())
    early, late = decide(shown, NOW), decide(shown, after(2))

    assert "no such bucket" in early.status.waiting
    assert (early.wake_at, early.status.errands) == (after(1), {})
    assert late.status.errands == {"flush-worker-0": 1}
    again = decide(replace(shown, status=late.status), after(2))
    assert again.auxiliary_pods == (AuxiliaryPod(name="flush-worker-0", attempt=1),)


def test_a_failed_copy_without_a_time_is_tried_again_after_a_pause():
    shown = world(("Succeeded", CUT), errands=(errand("Failed", finished_at=None),), **ending())

    assert decide(shown, NOW).wake_at == after(1)


def test_peers_that_are_ended_with_the_job_are_waited_for():
    shown = world(("Succeeded", KEPT), ("Running", COPYING))
    first = decide(shown, NOW)
    held = decide(replace(shown, status=first.status), after(11))

    assert not first.status.phase.is_final
    assert held.delete == (SITE.pod(B),)
    assert f"pod {SITE.pod(B)} uploads its output" in held.status.waiting


def test_peers_that_run_on_are_not_waited_for():
    plan = decide(world(("Succeeded", KEPT), ("Running", COPYING), of=keepers(2, clean_up=CleanUp.NONE)), NOW)

    assert plan.status.phase is Phase.SUCCEEDED


def test_a_pod_that_went_without_a_word_is_copied_for():
    plan = decide(world(("Succeeded", KEPT), ("gone", ()), **ending()), NOW)

    assert plan.auxiliary_pods == (AuxiliaryPod(name="flush-worker-1", attempt=0),)


def test_a_member_that_failed_before_its_command_left_nothing():
    assert decide(world(("Failed", NEVER_BEGUN)), NOW).status.phase is Phase.FAILED


def test_a_member_that_was_never_made_left_nothing():
    plan = decide(world(("Succeeded", KEPT), ("", ()), **ending()), NOW)

    assert plan.status.phase is Phase.SUCCEEDED


def test_what_an_earlier_try_left_is_copied_though_the_last_never_began():
    plan = decide(world(("Failed", NEVER_BEGUN), attempt=2, **ending("Failed", "Failed")), NOW)

    assert plan.auxiliary_pods == (AuxiliaryPod(name="flush-worker-0", attempt=0),)


def test_what_nothing_outlives_is_said_to_be_incomplete_and_holds_nobody_up():
    first, second = passes(world(("Succeeded", CUT), of=keepers(has_claim=False)))

    assert first.status.ending
    assert second.status.phase is Phase.SUCCEEDED
    assert "the output of worker-0 may be incomplete" in second.events[-1].message
    assert second.events[-1].is_warning


def test_several_members_are_copied_for_side_by_side():
    shown = world(("Failed", CUT), ("Failed", CUT), **ending("Failed", "Failed"))
    plan = decide(
        replace(shown, auxiliary_pods=(errand("Failed"), errand("Failed", place=B, finished_at=after(1)))), after(1)
    )

    assert plan.status.errands == {"flush-worker-0": 1}
    assert plan.wake_at == after(1)


def test_members_without_a_bucket_hold_nothing_up():
    made = keepers(2)
    mixed = replace(made, members=(made.members[0], replace(made.members[1], keeping=None)))

    assert decide(world(("Succeeded", KEPT), ("Running", ()), of=mixed), NOW).status.phase is Phase.SUCCEEDED


def test_a_deadline_ends_pods_and_waits_for_their_copies():
    late = keepers(1, active_deadline_seconds=5, clean_up=CleanUp.NONE)
    shown = world(("Running", COPYING), of=late, start_time=NOW, phase=Phase.RUNNING)
    first = decide(shown, after(6))
    second = decide(replace(shown, status=first.status), after(6))

    assert (first.status.ending["phase"], first.status.phase) == ("Failed", Phase.RUNNING)
    assert second.delete == (SITE.pod(A),)
    assert "uploads its output" in second.status.waiting


def test_what_an_author_should_know_is_said_at_the_end():
    remarked = replace(gang(1), success_note="nothing was kept")

    assert decide(seen("Succeeded", of=remarked), NOW).events[-1].message.endswith("; nothing was kept")


def test_an_errand_that_nobody_knows_has_no_pod():
    with pytest.raises(KeyError):
        template_of(keepers(has_claim=False), "flush-worker-0")
    assert template_of(keepers(), "flush-worker-0") == TEMPLATE


def test_a_pod_without_stages_is_unchanged_by_somebody_elses_errand():
    plan = decide(world(("Running", ()), of=gang(1), errands=(errand("Succeeded"),)), NOW)

    assert "stages" not in plan.status.tasks[0]["replicas"][0]
    assert pod(A, "Running").stages == ()


def test_a_job_says_why_the_pod_that_uploads_its_output_does_not_run():
    stuck = errand("Pending", reason="ErrImagePull", message="no such image")
    plan = decide(world(("Succeeded", CUT), errands=(stuck,), **ending()), NOW)

    assert (
        "the output of worker-0 is being uploaded: pod demo-12345-flush-worker-0: no such image" in plan.status.waiting
    )
