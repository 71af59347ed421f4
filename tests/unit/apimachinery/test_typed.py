"""Objects are read and written as the types of Kubernetes do."""

import pytest

from paceline.apimachinery.builtin.go_json import complete, read_struct
from paceline.apimachinery.builtin.go_types import fields_of, struct_of
from paceline.apimachinery.quantity import RULE, canonical
from paceline.errors import BadRequest

POD = "core.v1.Pod"


def pod(**spec):
    return {"metadata": {"name": "p"}, "spec": spec}


def test_what_is_empty_and_may_be_left_out_is():
    said = pod(hostNetwork=False, nodeName="", volumes=[], nodeSelector={}, containers=[])

    assert read_struct(said, POD) == pod(containers=[])


def test_what_is_empty_but_chosen_stays():
    """A pointer tells no from nothing."""
    said = pod(enableServiceLinks=False, priority=0, affinity={})

    assert read_struct(said, POD) == said


def test_null_is_nothing():
    assert read_struct({"metadata": None, "spec": {"containers": None}}, POD) == {"spec": {}}


def test_what_kubernetes_does_not_know_is_left_to_others():
    said = pod(nope=1, containers=[{"name": "c", "nope": None}])

    assert read_struct(said, POD) == said


AMOUNTS = {
    "1": "1",
    "1000m": "1",
    "0.5": "500m",
    "1024Mi": "1Gi",
    "1536Mi": "1536Mi",
    "1.5Gi": "1536Mi",
    "1000": "1k",
    "1e3": "1e3",
    "2E6": "2e6",
    "1e2": "100",
    "100n": "100n",
    "0.1Ki": "102400m",
    "0Mi": "0",
    "-1500m": "-1500m",
}


@pytest.mark.parametrize(("written", "shown"), AMOUNTS.items(), ids=AMOUNTS)
def test_an_amount_is_shown_in_the_largest_unit_that_leaves_no_fraction(written, shown):
    assert canonical(written) == shown


def test_resources_are_counted_in_thousandths():
    container = {"name": "c", "resources": {"limits": {"cpu": "100n", "memory": 1024}}}

    read = read_struct(pod(containers=[container]), POD)

    assert read["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "1m", "memory": "1024"}}


def test_times_are_shown_in_one_way():
    said = {"metadata": {}, "firstTimestamp": "2030-01-01T02:00:00.5+02:00", "eventTime": "2030-01-01T00:00:00.000001Z"}

    read = read_struct(said, "core.v1.Event")

    assert read["firstTimestamp"] == "2030-01-01T00:00:00Z"
    assert read["eventTime"] == "2030-01-01T00:00:00.000001Z"


PORT = {"livenessProbe": {"httpGet": {"port": 1.5}}}
WRONG = {
    "text for a number": (
        pod(terminationGracePeriodSeconds="5"),
        "spec.terminationGracePeriodSeconds: must be an integer of 64 bits, not this string",
    ),
    "a fraction": (
        pod(terminationGracePeriodSeconds=1.5),
        "spec.terminationGracePeriodSeconds: must be an integer of 64 bits, not this number",
    ),
    "too large a number": (
        pod(containers=[{"ports": [{"hostPort": 2**40}]}]),
        "spec.containers.ports.hostPort: must be an integer of 32 bits, not this number",
    ),
    "text for a list": (pod(containers="x"), "spec.containers: must be a list, not this string"),
    "a number for text": (
        pod(containers=[{"env": [{"name": "A", "value": 1}]}]),
        "spec.containers.env.value: must be a string, not this number",
    ),
    "a number for a choice": (pod(restartPolicy=5), "spec.restartPolicy: must be a string, not this number"),
    "text for yes": (pod(hostNetwork="true"), "spec.hostNetwork: must be true or false, not this string"),
    "a fraction of a port": (
        pod(containers=[PORT]),
        "spec.containers.livenessProbe.httpGet.port: must be an integer or a string, not this number",
    ),
    "an amount that is none": (
        pod(containers=[{"resources": {"limits": {"cpu": "x"}}}]),
        f"spec.containers.resources.limits: {RULE}, not this string",
    ),
    "a time that is none": (
        {"metadata": {"creationTimestamp": "yesterday"}},
        "metadata.creationTimestamp: must be a time such as 2030-01-31T12:00:00Z, not this string",
    ),
}


@pytest.mark.parametrize(("said", "words"), WRONG.values(), ids=WRONG)
def test_a_value_of_the_wrong_type_is_refused_with_its_path(said, words):
    with pytest.raises(BadRequest) as caught:
        read_struct(said, POD)

    assert str(caught.value) == words


def test_what_is_always_written_is_there():
    event = {"metadata": {"name": "e"}}

    complete(event, "core.v1.Event")

    assert event == {
        "metadata": {"name": "e"},
        "involvedObject": {},
        "source": {},
        "firstTimestamp": None,
        "lastTimestamp": None,
        "eventTime": None,
        "reportingComponent": "",
        "reportingInstance": "",
    }


def test_every_field_of_every_kind_has_a_number_or_is_no_field():
    """Two fields of one number would be read as each other."""
    waiting, seen = [struct_of("", "v1", "Pod"), struct_of("", "v1", "Node"), struct_of("", "v1", "Service")], set()
    while waiting:
        struct = waiting.pop()
        if struct in seen:
            continue
        seen.add(struct)
        fields = [each for each in fields_of(struct) if each.type.struct != "meta.v1.TypeMeta"]
        assert len({each.number for each in fields}) == len(fields), struct
        assert all(each.number > 0 for each in fields), struct
        for each in fields:
            kind = each.type.inner or each.type
            if kind.struct:
                waiting.append(kind.struct)
    assert len(seen) > 100
