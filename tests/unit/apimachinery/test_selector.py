"""Which objects are meant."""

import pytest

from paceline.apimachinery.selector import matches, parse_fields, parse_labels
from paceline.errors import BadRequest

WORKER = {"app": "demo", "role": "worker", "index": "3", "example.com/a": ""}

HOLD = {
    "": True,
    "app=demo": True,
    "app==demo": True,
    "app = demo , role = worker": True,
    "app=demo,role=chief": False,
    "app!=demo": False,
    "missing!=demo": True,
    "role in (worker, chief)": True,
    "role in (chief)": False,
    "role notin (chief)": True,
    "missing notin (a)": True,
    "app": True,
    "missing": False,
    "!missing": True,
    "!app": False,
    "index>2": True,
    "index>3": False,
    "index<4": True,
    "app>2": False,
    "missing<2": False,
    "example.com/a=": True,
    "app=": False,
    "role in ()": False,
    "in=x": False,
}


@pytest.mark.parametrize(("text", "holds"), HOLD.items(), ids=HOLD)
def test_labels_hold_or_do_not(text, holds):
    assert matches(parse_labels(text), WORKER) is holds


BROKEN = ["=", "a=b=c", "a b", "a in b", "a in (b", "a in (b c)", "a,", ",a", "!a=b", "a>x", "a b c", "(", "a!", "!"]
BROKEN += ["-a=b", "a=b/c", "a=" + "x" * 64, "a//b", "ü=1"]


@pytest.mark.parametrize("text", BROKEN)
def test_a_selector_that_cannot_be_read_is_refused(text):
    with pytest.raises(BadRequest):
        parse_labels(text)


POD = {
    "metadata": {"name": "p", "namespace": "default"},
    "spec": {"nodeName": "n1", "hostNetwork": True},
    "status": {"phase": "Running"},
}
FIELDS = {
    "metadata.name=p": True,
    "metadata.name!=p": False,
    "spec.nodeName=n1,status.phase=Running": True,
    "spec.nodeName=n1,status.phase!=Running": False,
    "spec.nodeName=": False,
    "status.podIP=": True,
    "spec.hostNetwork=true": True,
    "": True,
}


@pytest.mark.parametrize(("text", "holds"), FIELDS.items(), ids=FIELDS)
def test_fields_hold_or_do_not(text, holds):
    rules = parse_fields(text, group="", kind="Pod")

    assert all(rule.holds(POD) for rule in rules) is holds


def test_a_comma_can_be_part_of_a_value():
    (rule,) = parse_fields(r"metadata.name=a\,b\=c", group="", kind="Pod")

    assert rule.value == "a,b=c"


@pytest.mark.parametrize("text", ["x", "spec.secret=1", "metadata.labels.a=b", "=a", "status.phase"])
def test_a_field_that_is_not_known_is_refused(text):
    with pytest.raises(BadRequest):
        parse_fields(text, group="", kind="Pod")


def test_other_kinds_are_selected_by_their_names_only():
    assert parse_fields("metadata.name=a", group="toys.test", kind="Widget")
    with pytest.raises(BadRequest, match=r"field label not supported: spec\.nodeName"):
        parse_fields("spec.nodeName=a", group="toys.test", kind="Widget")


def test_names_alone_can_decide():
    (rule,) = parse_fields("metadata.namespace!=default", group="", kind="Pod")

    assert rule.is_by_key
