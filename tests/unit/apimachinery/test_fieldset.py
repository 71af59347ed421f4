"""Sets of fields keep the laws of sets, in either form, and are written as Kubernetes writes them."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.apimachinery.fields import fieldset
from paceline.apimachinery.fields.fieldset import covers, decode, encode, has, minus, minus_all, plus, read, spell
from paceline.errors import BadRequest

STEPS = (
    *("f:a", "f:b", "f:a.b/c"),
    *('k:{"name":"x"}', 'k:{"name":"y"}', 'k:{"port":80,"protocol":"TCP"}'),
    *('v:"x"', "v:1", "v:true", "i:0", "i:12"),
)
POOL = [path for length in (1, 2, 3) for path in itertools.product(STEPS, repeat=length)]
paths = st.sampled_from(POOL)


def _many(seed):
    return frozenset(random.Random(seed).sample(POOL, 40))


# Small ones are changed path by path, large ones as a whole.
sets = st.frozensets(paths, max_size=8) | st.integers(0, 2**32).map(_many)


@given(sets)
def test_a_set_survives_being_written(some):
    assert decode(encode(some)) == some


@given(sets)
def test_what_is_written_is_read_as_it_is(some):
    assert read(encode(some)) == encode(some)
    assert list(read(encode(some))) == list(encode(some))


@given(sets, sets)
def test_adding_some_paths_is_the_union(some, more):
    assert plus(encode(some), more) == encode(some | more)


@given(sets, sets)
def test_the_order_of_adding_does_not_show(some, more):
    assert _listed(plus(encode(some), more)) == _listed(encode(some | more))


@given(sets, sets)
def test_a_set_covers_another_when_it_has_all_of_it(some, other):
    assert covers(encode(some), encode(other)) == (other <= some)
    assert covers(encode(some | other), encode(other))


@given(sets, sets)
def test_taking_some_paths_is_the_difference(some, less):
    assert minus(encode(some), less) == encode(some - less)


@given(sets, sets)
def test_taking_what_was_added_leaves_what_was_there(some, more):
    assert minus(plus(encode(some), more), more - some) == encode(some)


@given(sets, sets)
def test_taking_all_below_some_paths_leaves_nothing_of_them(some, tops):
    left = {path for path in some if not fieldset.is_below(path, tops)}

    assert minus_all(encode(some), tops) == encode(left)


@given(sets, paths)
def test_a_path_is_in_a_set_or_not(some, path):
    assert has(encode(some), path) == (path in some)


@given(sets, sets)
def test_nothing_is_changed_in_place(some, other):
    fields = encode(some)
    plus(fields, other)
    minus(fields, other)
    minus_all(fields, other)

    assert fields == encode(some)


def test_a_field_that_is_owned_itself_has_a_dot_when_something_below_is_owned():
    assert encode({("f:labels",), ("f:labels", "f:a"), ("f:b",)}) == {"f:b": {}, "f:labels": {".": {}, "f:a": {}}}


def test_every_level_is_in_the_order_of_kubernetes():
    fields = encode({("i:0",), ('v:"b"',), ('k:{"port":443}',), ('k:{"port":80}',), ("f:b",), ("f:a",)})

    assert list(fields) == ["f:a", "f:b", 'k:{"port":80}', 'k:{"port":443}', 'v:"b"', "i:0"]


def test_what_others_wrote_is_brought_into_the_usual_form():
    assert read({'k:{"b": 1, "a": "x"}': {}}) == {'k:{"a":"x","b":1}': {}}


@pytest.mark.parametrize(
    "fields", ["x", {"x:a": {}}, {"f:a": "x"}, {"k:[1]": {}}, {"k:{": {}}, {"v:": {}}, {"i:x": {}}]
)
def test_what_is_no_set_is_refused(fields):
    with pytest.raises(BadRequest):
        read(fields)


@pytest.mark.parametrize(
    ("path", "spelled"),
    [
        (("f:spec", "f:replicas"), ".spec.replicas"),
        (("f:spec", "f:containers", 'k:{"name":"c"}', "f:image"), '.spec.containers[name="c"].image'),
        (("f:ports", 'k:{"containerPort":80,"protocol":"TCP"}'), '.ports[containerPort=80,protocol="TCP"]'),
        (("f:finalizers", 'v:"a/b"'), '.finalizers[="a/b"]'),
    ],
)
def test_paths_are_spelled_as_in_conflicts(path, spelled):
    assert spell(path) == spelled


def _listed(fields):
    return [(step, _listed(below)) for step, below in fields.items()]
