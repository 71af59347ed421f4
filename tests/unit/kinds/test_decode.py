"""Every field that does not fit is named, all at once, with what would be right."""

from typing import Annotated, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta

from paceline.kinds import registry
from paceline.kinds.decode import decode, misfits
from paceline.kinds.spec.fields import DNS_LABEL, Part, Positive, about
from tests.unit.kinds.manifests import (
    colossalai,
    deepspeed,
    generic,
    mpi,
    pytorch,
    replica,
    tensorflow,
    trainer,
    xgboost,
)
from tests.unit.kinds.oldshapes import OLD


class Wheel(Part, frozen=True, kw_only=True):
    size: Positive
    name: Annotated[str, Meta(pattern=DNS_LABEL, max_length=8)] = "front"


class Bike(Part, frozen=True, kw_only=True):
    wheels: Annotated[tuple[Wheel, ...], Meta(min_length=1)]
    has_bell: bool = False
    color: Literal["red", "green"] = "red"
    weight: int | str | None = None
    lamp: Wheel | str | None = None
    code: Annotated[str, Meta(pattern="^[0-9]+$")] = "0"
    parts: dict[str, int] | None = None
    count: Annotated[int | str, about("How many.")] | None = None


LABEL = "use lower-case letters, digits and '-'; start and end with a letter or digit"
GOOD = {"wheels": [{"size": 28}]}

FITS = {
    "what is required and nothing else": GOOD,
    "a number or text": {**GOOD, "weight": "12kg"},
    "nothing where nothing is allowed": {**GOOD, "weight": None},
    "one of two shapes": {**GOOD, "lamp": {"size": 1}},
    "the other of two shapes": {**GOOD, "lamp": "led"},
    "an annotated choice that may be left out": {**GOOD, "count": "2"},
    "a map": {**GOOD, "parts": {"chain": 1}},
}


@pytest.mark.parametrize("value", FITS.values(), ids=FITS)
def test_what_fits_is_read(value):
    assert misfits(value, Bike, "spec") == ()
    assert isinstance(decode(value, Bike), Bike)


MISFITS = {
    "an unknown field is named with the right one": (
        {**GOOD, "hasBel": True},
        'spec.hasBel: True is not allowed; unknown field, did you mean "hasBell"?',
    ),
    "an unknown field unlike any other is answered with all there are": (
        {"wheels": [{"size": 1, "zz": 1}]},
        "spec.wheels[0].zz: 1 is not allowed; unknown field; the fields are size, name",
    ),
    "a missing field is named": (
        {},
        "spec.wheels: None is not allowed; the field is required; it must be a list",
    ),
    "a number too small": (
        {"wheels": [{"size": 0}]},
        "spec.wheels[0].size: 0 is not allowed; must be at least 1",
    ),
    "a number too large": (
        {"wheels": [{"size": 2**40}]},
        "spec.wheels[0].size: 1099511627776 is not allowed; must be at most 2147483647",
    ),
    "text for a number": (
        {"wheels": [{"size": "big"}]},
        "spec.wheels[0].size: 'big' is not allowed; must be an integer",
    ),
    "true for a number": (
        {"wheels": [{"size": True}]},
        "spec.wheels[0].size: True is not allowed; must be an integer",
    ),
    "a number for true or false": (
        {**GOOD, "hasBell": 1},
        "spec.hasBell: 1 is not allowed; must be true or false",
    ),
    "too few": ({"wheels": []}, "spec.wheels: [] is not allowed; must have at least 1 entry"),
    "one thing for a list": (
        {"wheels": {"size": 1}},
        "spec.wheels: {'size': 1} is not allowed; must be a list",
    ),
    "a list for an object": ([], "spec: [] is not allowed; must be an object"),
    "nothing at all": (None, "spec: None is not allowed; must be an object"),
    "a word that is none of the few": (
        {**GOOD, "color": "gren"},
        'spec.color: \'gren\' is not allowed; supported values: "green", "red", did you mean "green"?',
    ),
    "neither of two types": (
        {**GOOD, "weight": []},
        "spec.weight: [] is not allowed; must be an integer or a string",
    ),
    "neither of two shapes": (
        {**GOOD, "lamp": 4},
        "spec.lamp: 4 is not allowed; must be an object or a string",
    ),
    "a fault inside one of two shapes": (
        {**GOOD, "lamp": {"size": 0}},
        "spec.lamp.size: 0 is not allowed; must be at least 1",
    ),
    "a name that is no label": (
        {"wheels": [{"size": 1, "name": "Front_"}]},
        f"spec.wheels[0].name: 'Front_' is not allowed; {LABEL}",
    ),
    "text that does not match": (
        {**GOOD, "code": "x"},
        "spec.code: 'x' is not allowed; must match ^[0-9]+$",
    ),
    "a name too long": (
        {"wheels": [{"size": 1, "name": "front-wheel"}]},
        "spec.wheels[0].name: 'front-wheel' is not allowed; must have at most 8 characters",
    ),
    "a value in a map": (
        {**GOOD, "parts": {"chain": "one"}},
        "spec.parts.chain: 'one' is not allowed; must be an integer",
    ),
}


@pytest.mark.parametrize(("value", "fault"), MISFITS.values(), ids=MISFITS)
def test_what_does_not_fit_is_named(value, fault):
    assert [str(each) for each in misfits(value, Bike, "spec")] == [fault]


def test_all_faults_are_named_at_once():
    value = {"wheels": [{"size": 0}, {"sise": 1}], "color": 3, "bell": 1}

    assert [fault.path for fault in misfits(value, Bike, "spec")] == [
        "spec.bell",
        "spec.wheels[0].size",
        "spec.wheels[1].sise",
        "spec.wheels[1].size",
        "spec.color",
    ]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def leaves(value, path=()):
    """Every place in a manifest, so that junk can be put there."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from leaves(inner, (*path, key))


WHOLE = {
    "runMode": {"debug": {"replicaSpecs": [{"type": "worker", "command": ["sh"]}]}, "pause": {"enabled": False}},
    "scheduler": {"t9kScheduler": {"queue": "q", "priority": 1}},
}
EXAMPLES = (
    pytorch(
        replica(restartPolicy="Always", scalingWeight=1),
        torchrunConfig={"enabled": True, "procPerNode": "2", "maxRestarts": 1, "extraOptions": ["-t"]},
        elastic={"minReplicas": 1, "maxReplicas": 2, "expectedReplicas": 2},
        runPolicy={"activeDeadlineSeconds": 1, "backoffLimit": 0, "cleanUpPolicy": "All"},
        restartScope="Gang",
        tensorboardSpec={"image": "tb", "trainingLogFilesets": ["t9k://pvc/mnist/log"], "logDir": {"pvc": []}},
        **WHOLE,
    ),
    generic(
        replica(restartPolicy={"policy": "Never", "limit": 2}),
        service={"ports": [{"name": "http", "port": 80, "targetPort": 80}]},
        cleanUpPolicy="Unfinished",
        **WHOLE,
    ),
    tensorflow(
        trainer("tensorflow", "chief", 1),
        trainer("tensorflow", "ps", restartPolicy="ExitCode"),
        tensorboardSpec={"logDir": {"s3": {"secretRef": {"name": "keys"}, "uri": ["s3://b/"]}}},
        runPolicy={"cleanUpPolicy": "None"},
        runMode={"pause": {"resumeSpecs": [{"type": "ps", "args": ["x"]}]}},
    ),
    xgboost(runPolicy={"backoffLimit": 1}, restartScope="Replica"),
    mpi(
        trainer("worker", restartPolicy={"policy": "Always", "limit": 1}),
        {"type": "launcher", "template": {"spec": {"containers": [{"name": "launcher", "env": []}]}}},
        mpiConfig={"mca": {"btl": "self"}, "home": "/opt", "extraArgs": ["-N", "2"], "script": ["a"]},
        ssh={"sshAuthMountPath": "/root/.ssh", "sshdPath": "/usr/sbin/sshd"},
        runPolicy={"cleanUpWorkers": True},
        **WHOLE,
    ),
    deepspeed(
        elastic={"enabled": True, "minReplicas": 1, "maxReplicas": 3, "expectedReplicas": 3},
        disableCustomEnv=True,
        config={"run": {"exec": ["a"]}, "localRank": False, "autotune": "run", "otherArgs": ["--x"]},
        **WHOLE,
    ),
    colossalai(trainer("worker"), {"type": "launcher"}, ssh={"authMountPath": "/x"}, **WHOLE),
)


OLD_JOBS = tuple(make() for make in OLD.values() if registry.kind_of(make()))


@given(st.data())
def test_whatever_is_put_anywhere_is_refused_or_read_and_never_crashes(data):
    """Control reads objects that only a schema has checked; a strange one must not end it."""
    example = data.draw(st.sampled_from((*EXAMPLES, *OLD_JOBS)))
    path = data.draw(st.sampled_from([each for each in leaves(example) if each]))
    changed = put(example, path, data.draw(JUNK))
    faults = registry.faults(changed)

    if not faults:
        site, gang = registry.expand(changed, registry.ports_of(changed))
        assert gang.members
        assert len(site.pod(gang.members[-1].place, 999)) <= 63


def put(value, path, new):
    if not path:
        return new
    key, *rest = path
    if isinstance(value, dict):
        return {**value, key: put(value[key], rest, new)}
    return [put(each, rest, new) if index == key else each for index, each in enumerate(value)]


def test_what_fits_is_what_msgspec_reads():
    """Our list of misfits and msgspec's own check agree on every example."""
    for example in EXAMPLES:
        kind = registry.kind_of(example)
        assert misfits(example["spec"], kind.spec, "spec") == ()
        assert isinstance(msgspec.convert(example["spec"], kind.spec), kind.spec)


@given(st.data())
def test_nothing_that_msgspec_refuses_goes_unnamed(data):
    """A spec is only looked through for misfits when it cannot be read: then there has to be one."""
    example = data.draw(st.sampled_from(EXAMPLES))["spec"]
    kind = registry.kind_of(next(each for each in EXAMPLES if each["spec"] is example)).spec
    changed = put(example, data.draw(st.sampled_from(list(leaves(example)))), data.draw(JUNK))
    try:
        decode(changed, kind)
    except msgspec.ValidationError:
        assert misfits(changed, kind, "spec")
    else:
        assert misfits(changed, kind, "spec") == ()


def test_a_whole_number_is_a_number_beside_other_misfits_too():
    class Slope(Part, frozen=True, kw_only=True):
        rise: float
        run: int

    assert misfits({"rise": 1, "run": 2}, Slope, "spec") == ()
    assert [each.path for each in misfits({"rise": 1, "run": "2"}, Slope, "spec")] == ["spec.run"]
    assert [each.path for each in misfits({"rise": True, "run": 2}, Slope, "spec")] == ["spec.rise"]
