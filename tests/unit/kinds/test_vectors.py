"""T9k's facts as they can be asserted of manifests alone; the numbers are those of the list they were taken from."""

import pytest

from paceline.apimachinery.quantity import parse
from paceline.kinds import registry
from paceline.kinds.resource_totals import say, totals
from tests.unit.kinds.manifests import (
    deepspeed,
    gang_of,
    mpi,
    one_fault,
    pytorch,
    replica,
    template,
    tensorflow,
    trainer,
    xgboost,
)
from tests.unit.kinds.oldshapes import alias_tensorflow


def asks(**resources):
    return pytorch(replica(template=template(resources=resources)))


def test_the_tutorials_job_asks_for_eight_cpus_and_may_use_sixteen():
    """Vector 1: four workers of 2 / 4 CPUs and 1 / 2 GiB."""
    job = alias_tensorflow()
    resources = {"requests": {"cpu": 2, "memory": "1Gi"}, "limits": {"cpu": 4, "memory": "2Gi"}}
    job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]["resources"] = resources
    found = totals(gang_of(job))

    assert found.requests == {"cpu": 8, "memory": parse("4Gi")}
    assert found.limits == {"cpu": 16, "memory": parse("8Gi")}
    assert say(found) == "cpu 8 / 16, memory 4Gi / 8Gi"


def test_the_tutorials_pods_are_named_after_the_job_and_its_incarnation():
    """Vector 1: `mnist-<5 hex>-worker-0` to `-3`; another incarnation has another hash."""
    job = alias_tensorflow()
    job["metadata"] |= {"name": "mnist", "uid": "one"}
    site, gang = registry.expand(job, registry.ports_of(job))
    again = registry.stem_of({**job, "metadata": {**job["metadata"], "uid": "two"}})

    names = [site.pod(member.place) for member in gang.members]
    assert names == [f"{site.stem}-worker-{index}" for index in range(4)]
    assert site.stem.startswith("mnist-")
    assert len(site.stem) == len("mnist-12345")
    assert again != site.stem


def test_a_path_that_t9k_ignored_is_refused_with_the_right_word():
    """Vector 14, the kind's half; that of pod templates is the server's."""
    job = tensorflow(tensorboardSpec={"logDir": {"pvc": [{"name": "mnist", "subpath": ["log"]}]}})

    assert 'did you mean "subPath"?' in one_fault(job)


def test_devices_in_requests_alone_are_refused():
    """Vector 18."""
    assert "set the device in limits" in one_fault(asks(requests={"nvidia.com/gpu": 1}))


def test_unequal_devices_are_refused():
    """Vector 18."""
    assert "nvidia.com/gpu" in one_fault(asks(requests={"nvidia.com/gpu": 1}, limits={"nvidia.com/gpu": 2}))


def test_devices_in_limits_alone_are_asked_for_too():
    """Vector 18, as it counts for the job."""
    job = asks(limits={"nvidia.com/gpu": 1})

    assert registry.faults(job) == ()
    assert totals(gang_of(job)).requests == {"nvidia.com/gpu": 2}


def test_a_sidecar_counts():
    main = template(name="tensorflow", resources={"limits": {"cpu": 1}})
    main["spec"]["containers"].append({"name": "beside", "image": "python", "resources": {"requests": {"cpu": "500m"}}})

    assert totals(gang_of(tensorflow(trainer("tensorflow") | {"template": main}))).requests == {"cpu": 3}


def test_what_is_not_said_is_shown_as_such():
    job = asks(requests={"cpu": "250m"}, limits={"memory": "1500Mi", "nvidia.com/gpu": 1024})

    assert say(totals(gang_of(job))) == "memory 2.93Gi / 2.93Gi, nvidia.com/gpu 2048 / 2048, cpu 0.5 / -"


def beside(name):
    written = template(name="log")
    written["spec"]["containers"].append({"name": name, "image": "python"})
    return written


TRAINS = {
    "tensorflow": tensorflow(trainer("tensorflow") | {"template": beside("tensorflow")}),
    "pytorch": pytorch(replica(template=beside("pytorch"))),
    "python": pytorch(replica(template=beside("python"))),
    "log": pytorch(replica(template=beside("main"))),
    "xgboost": xgboost(trainer("xgboost", "master", 1) | {"template": beside("xgboost")}),
    "worker": mpi(trainer("worker") | {"template": beside("worker")}),
}


@pytest.mark.parametrize("name", TRAINS)
def test_the_container_that_decides_over_a_replica_is(name):
    assert gang_of(TRAINS[name]).members[-1].main == name


def test_so_it_is_for_deepspeed_and_launchers():
    assert gang_of(deepspeed(worker={"template": beside("worker")})).members[0].main == "worker"
    assert gang_of(mpi()).members[0].main == "launcher"
