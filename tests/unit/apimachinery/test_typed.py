"""Objects are read and written as the types of Kubernetes do."""

import pytest

from paceline.apimachinery.builtin.go_json import complete, read_struct
from paceline.apimachinery.builtin.go_types import fields_of, struct_of
from paceline.apimachinery.quantity import canonical
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


FIELD = "into Go struct field"
PROBE = "spec.containers.livenessProbe"
WRONG = {
    "text for a number": (
        pod(terminationGracePeriodSeconds="5"),
        f"json: cannot unmarshal string {FIELD} PodSpec.spec.terminationGracePeriodSeconds of type int64",
    ),
    "a fraction": (
        pod(terminationGracePeriodSeconds=1.5),
        f"json: cannot unmarshal number 1.5 {FIELD} PodSpec.spec.terminationGracePeriodSeconds of type int64",
    ),
    "too large a number": (
        pod(containers=[{"ports": [{"hostPort": 2**40}]}]),
        f"json: cannot unmarshal number {2**40} {FIELD} ContainerPort.spec.containers.ports.hostPort of type int32",
    ),
    "text for a list": (
        pod(containers="x"),
        f"json: cannot unmarshal string {FIELD} PodSpec.spec.containers of type []v1.Container",
    ),
    "a number for text": (
        pod(containers=[{"env": [{"name": "A", "value": 1}]}]),
        f"json: cannot unmarshal number {FIELD} EnvVar.spec.containers.env.value of type string",
    ),
    "a number for a choice": (
        pod(restartPolicy=5),
        f"json: cannot unmarshal number {FIELD} PodSpec.spec.restartPolicy of type v1.RestartPolicy",
    ),
    "text for yes": (
        pod(hostNetwork="true"),
        f"json: cannot unmarshal string {FIELD} PodSpec.spec.hostNetwork of type bool",
    ),
    "a fraction of a port": (
        pod(containers=[{"livenessProbe": {"httpGet": {"port": 1.5}}}]),
        f"json: cannot unmarshal number 1.5 {FIELD} HTTPGetAction.{PROBE}.httpGet.port of type int32",
    ),
    "an amount that is none": (
        pod(containers=[{"resources": {"limits": {"cpu": "x"}}}]),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ),
    "a time that is none": (
        {"metadata": {"creationTimestamp": "yesterday"}},
        'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
    ),
}


@pytest.mark.parametrize(("said", "words"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_read_is_told_in_the_words_of_kubernetes(said, words):
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
