"""Kinds are found by any of their names, and a wrong one is answered with the right one."""

import pytest
from tests.unit.sdk.conftest import ANSWERS

from paceline.errors import Invalid, NotFound
from paceline.kinds.kind_types import GROUP
from paceline.sdk.discovery import JOB_GROUP, Kinds


@pytest.fixture
def asked():
    return []


@pytest.fixture
def kinds(asked):
    def ask(path):
        asked.append(path)
        if path not in ANSWERS:
            raise NotFound(path)
        return ANSWERS[path]

    return Kinds(ask)


def test_the_group_of_jobs_is_the_group_of_the_kinds():
    assert JOB_GROUP == GROUP


@pytest.mark.parametrize(
    "word", ["pj", "pytorchtrainingjobs", "PyTorchTrainingJob", "pytorchtrainingjobs.batch.tensorstack.dev"]
)
def test_a_kind_has_many_names(kinds, word):
    found = kinds.named(word)

    assert found.kind == "PyTorchTrainingJob"
    assert found.is_job


def test_a_job_kind_is_found_without_asking_for_the_rest(kinds, asked):
    kinds.named("pj")

    assert "/apis" not in asked
    assert "/api/v1" not in asked


def test_each_part_is_asked_for_once(kinds, asked):
    for word in ("po", "nodes", "pods"):
        kinds.named(word)

    assert asked.count("/api/v1") == 1


def test_a_cluster_kind_has_no_namespace(kinds):
    assert not kinds.named("no").where.namespaced


def test_subresources_are_no_kinds(kinds):
    assert [kind.where.plural for kind in kinds.jobs()] == ["pytorchtrainingjobs"]


def test_a_wrong_name_suggests_the_right_one(kinds):
    with pytest.raises(Invalid, match="did you mean 'pod'"):
        kinds.named("podz")


def test_a_wrong_kind_suggests_the_right_one(kinds):
    with pytest.raises(Invalid, match="did you mean 'PyTorchTrainingJob'"):
        kinds.of("batch.tensorstack.dev/v1beta1", "PyTorchJob")


def test_a_wrong_version_suggests_the_right_one(kinds):
    with pytest.raises(Invalid, match=r"PyTorchTrainingJob is in 'batch.tensorstack.dev/v1beta1'"):
        kinds.of("batch.tensorstack.dev/v1", "PyTorchTrainingJob")


def test_a_group_nobody_has_says_where_jobs_are(kinds):
    with pytest.raises(Invalid, match=r"jobs are in 'batch.tensorstack.dev/v1beta1'"):
        kinds.of("kubeflow.org/v1", "PyTorchJob")


def test_without_paceline_there_are_no_job_kinds():
    def nothing(path):
        raise NotFound(path)

    assert Kinds(nothing).jobs() == ()
