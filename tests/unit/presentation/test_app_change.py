"""The next revision of an application before it is made: its differences, and what follows."""

import pytest

from paceline.errors import AlreadyExists
from paceline.kinds.apps.expand import digest_of, expand_app
from paceline.presentation.apps.app_change import (
    app_change,
    changed_app_values,
    noted,
    recorded_spec,
    reject_unchanged,
    rolled_back,
    with_values,
)
from paceline.presentation.apps.changed_values import changed_specs, changed_values
from paceline.presentation.consequences import consequences_of_change

VALUES = {"git": {"url": "https://example.org/code.git"}, "command": "python3 train.py", "framework": "python"}
TEMPLATE = {"name": "model-training", "version": "0.1.0"}
GENERIC = {
    "replicaSpecs": [
        {"type": "worker", "template": {"spec": {"containers": [{"name": "main", "image": "a", "args": ["x", "y"]}]}}}
    ]
}


def app(values=VALUES, *, phase="Running", revision=3, **spec):
    return {
        "apiVersion": "paceline.dev/v1beta1",
        "kind": "TrainingApp",
        "metadata": {"name": "mnist", "namespace": "default", "uid": "a-1", "generation": 5},
        "spec": {"template": TEMPLATE, "values": values, **spec},
        "status": {
            "phase": phase,
            "revision": revision,
            "job": {"kind": "TensorFlowTrainingJob", "name": f"mnist-{revision}"},
        },
    }


def own_job(image="a"):
    spec = {"job": {"kind": "GenericJob", "spec": {**GENERIC, "schedulerName": image}}}
    return {**app(), "spec": spec}


def record_of(current, revision=3, **changes):
    parts = expand_app(current, revision)
    job = {"kind": parts.kind, "name": f"mnist-{revision}", "spec": dict(parts.spec)}
    return {"revision": revision, "digest": digest_of(current), "job": job, **changes}


def test_a_value_changes_the_job_and_nothing_else_in_it():
    current = app()

    change = app_change(current, with_values(current, {**VALUES, "memory": "2Gi"}))

    assert change.values == {"memory": ("1Gi", "2Gi")}, "compared with the template's default"
    assert change.job
    assert all(".resources." in path and path.endswith(".memory") for path in change.job)
    assert set(change.job.values()) == {("1Gi", "2Gi")}
    assert "[worker]" in next(iter(change.job))


def test_the_number_of_the_revision_in_names_and_folders_is_no_difference():
    current = app()

    assert app_change(current, current).job == {}
    assert app_change(current, current, record_of(current)).job == {}
    assert "mnist-3" in str(expand_app(current, 3)), "there are such names"


def test_the_job_that_ran_is_compared_and_not_what_the_template_makes_of_its_values_today():
    current = app()
    record = record_of(current)
    ran = {**record, "job": {**record["job"], "spec": {**record["job"]["spec"], "oldField": "was here"}}}

    assert app_change(current, current, ran).job == {"spec.oldField": ("was here", None)}
    assert app_change(current, current, {**ran, "digest": "another"}).job == {}


def test_what_runs_is_stopped_first_and_what_has_ended_is_not():
    running, ended = app(), app(phase="Succeeded")

    assert app_change(running, with_values(running, {**VALUES, "cpu": "2"})).stops == "mnist-3"
    assert app_change(ended, with_values(ended, {**VALUES, "cpu": "2"})).stops == ""


def test_the_consequences_name_the_revision_its_job_and_what_is_kept():
    stopped = app(phase="Stopped", suspend=True)

    codes = [consequence.to_wire() for consequence in consequences_of_change(app_change(stopped, stopped))]

    assert codes == [
        {"code": "ChangedRevision", "revision": 4, "job": "mnist-4", "stops": "mnist-3"},
        {"code": "WaitsForResume"},
        {"code": "RevisionsStay"},
    ]


def test_a_broken_application_can_be_mended():
    broken = app({"command": "python3 train.py"})

    change = app_change(broken, with_values(broken, VALUES))

    assert "git.url" in change.values
    assert change.job["kind"][0] is None


def test_the_values_of_an_invalid_update_are_compared():
    assert changed_app_values(app(), app({**VALUES, "workers": "many"})) == {"workers": (1, "many")}


def test_a_rollback_takes_template_and_values_or_the_job_from_the_record():
    values = {"template": "tensorflow-training-0.1.0", "values": {"a": 1}, "job": {"kind": "GenericJob", "spec": {}}}
    job = {"template": "", "job": {"kind": "GenericJob", "name": "tune-1", "spec": {"b": 2}}}

    template = {"name": "tensorflow-training", "version": "0.1.0"}
    assert recorded_spec(values) == {"template": template, "values": {"a": 1}}
    assert recorded_spec(job) == {"job": {"kind": "GenericJob", "spec": {"b": 2}}}


def test_a_rollback_to_a_template_without_a_version_or_without_values_stays_with_the_template():
    """Records leave out what is empty."""
    record = {"template": "tensorflow-training", "job": {"kind": "TensorFlowTrainingJob", "spec": {}}}

    assert recorded_spec(record) == {"template": {"name": "tensorflow-training"}, "values": {}}


@pytest.mark.parametrize(("current", "record"), [(app(), own_job()), (own_job(), app())], ids=["to job", "to template"])
def test_a_rollback_from_a_template_to_a_job_and_back_leaves_nothing_of_the_other(current, record):
    recorded = record_of(record, 1, template="model-training-0.1.0" if "values" in record["spec"] else "")
    recorded |= {"values": record["spec"]["values"]} if "values" in record["spec"] else {}
    stopped = {**current, "spec": {**current["spec"], "suspend": True}}

    assert rolled_back(stopped, recorded)["spec"] == {**record["spec"], "suspend": True}


def test_an_update_that_changes_nothing_is_refused():
    with pytest.raises(AlreadyExists, match="revision 3 of mnist already has these values"):
        reject_unchanged(app(), app())
    reject_unchanged(app(), with_values(app(), {**VALUES, "cpu": "2"}))


def test_who_asks_is_noted_beside_the_other_annotations():
    current = app()
    current["metadata"]["annotations"] = {"note": "mine", "paceline.dev/asked-by": "ada"}

    assert noted(current, "bob")["metadata"]["annotations"] == {"note": "mine", "paceline.dev/asked-by": "bob"}
    assert noted(current, "") == current


def test_entries_of_a_list_are_compared_by_name_wherever_they_stand():
    older = {"env": [{"name": "LR", "value": "0.1"}, {"name": "SEED", "value": "1"}]}
    newer = {"env": [{"name": "SEED", "value": "1"}, {"name": "LR", "value": "0.2"}, {"name": "EMPTY"}]}

    assert changed_values(older, newer) == {"env[LR].value": ("0.1", "0.2"), "env[EMPTY]": (None, {"name": "EMPTY"})}
    assert changed_values({}, {"env": [{"name": "A"}]}) == {"env[A]": (None, {"name": "A"})}


def test_entries_without_a_name_of_their_own_are_compared_by_their_place():
    assert changed_values({"args": ["--lr=1", "x"]}, {"args": ["--lr=2", "x"]}) == {"args[0]": ("--lr=1", "--lr=2")}
    assert changed_values({"args": ["x"]}, {"args": ["x", "y"]}) == {"args": (["x"], ["x", "y"])}
    twice = [{"name": "a", "v": 1}, {"name": "a", "v": 2}]
    assert changed_values({"list": twice}, {"list": [*twice[:1], {"name": "a", "v": 3}]}) == {"list[1].v": (2, 3)}


def test_records_are_compared_with_the_defaults_of_their_template():
    older = {"template": "model-training-0.1.0", "values": {"command": "a"}, "job": {}}
    newer = {"template": "model-training-0.1.0", "values": {"command": "a", "memory": "2Gi"}, "job": {}}

    assert changed_specs(older, newer) == {"values.memory": ("1Gi", "2Gi")}


def test_records_of_a_template_that_nobody_knows_are_compared_as_they_are_written():
    older, newer = ({"template": "gone-2.0", "values": {"a": value}, "job": {}} for value in (1, 2))

    assert changed_specs(older, newer) == {"values.a": (1, 2)}
