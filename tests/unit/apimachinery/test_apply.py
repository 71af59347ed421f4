"""Server-side apply: what is said becomes true, what is no longer said goes, and nobody takes from others unasked."""

import contextlib
import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.apimachinery.fields.apply import LAST_APPLIED, AppliedConfig, ApplyConflict, apply, note_last_applied
from paceline.apimachinery.fields.fieldset import decode, encode, field_step
from paceline.apimachinery.fields.managed_fields import (
    APPLY,
    MAX_WRITERS,
    Author,
    Entry,
    compared,
    fields_of_new,
    from_wire,
    sent_or_stored,
    to_wire,
    updated,
)
from paceline.apimachinery.fields.merge import ABSENT, Comparison, compare, merged, owned_fields, paths_of, whole
from paceline.apimachinery.fields.typed import Structure, Types, faults, step_to

TEXT = {"type": "string"}
SCHEMA = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "integer"},
                "labels": {"type": "object", "additionalProperties": TEXT},
                "selector": {"type": "object", "additionalProperties": TEXT, "x-kubernetes-map-type": "atomic"},
                "words": {"type": "array", "items": TEXT},
                "tags": {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
                "parts": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name", "side"],
                    "items": {
                        "type": "object",
                        "properties": {
                            "name": TEXT,
                            "side": {"type": "string", "default": "left"},
                            "count": {"type": "integer"},
                            "more": {"type": "object", "properties": {"a": TEXT, "b": TEXT}},
                        },
                    },
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            },
        },
        "status": {"type": "object", "properties": {"phase": TEXT}},
    },
}
META = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
        "type": "object",
        "properties": {
            "name": TEXT,
            "uid": TEXT,
            "labels": {"type": "object", "additionalProperties": TEXT},
            "annotations": {"type": "object", "additionalProperties": TEXT},
        },
    }
}
KNOWN = Types(META).of_object(SCHEMA)
LIVE = {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}}


def author(name):
    return Author(name=name, api_version="v1", operation=APPLY)


def writer(name):
    return Author(name=name, api_version="v1")


def thing(**spec):
    return {**LIVE, "spec": spec}


class Cluster:
    """One object and who owns what of it."""

    def __init__(self):
        self.obj, self.managed = None, {}

    def apply(self, name, *, force=False, now="t", **spec):
        said = AppliedConfig(author=author(name), obj=thing(**spec), force=force)
        self.obj, self.managed = apply(KNOWN, self.obj, self.managed, config=said, now=now)
        return self.obj.get("spec", {})

    def write(self, name, now="t", **spec):
        new = thing(**spec)
        self.managed = updated(self.managed, writer(name), compared(KNOWN, self.obj, new), now=now)
        self.obj = new

    def owned(self, name):
        return {path for entry in self.managed.values() if entry.author.name == name for path in decode(entry.fields)}

    def entry(self, name):
        return next(entry for entry in self.managed.values() if entry.author.name == name)


@pytest.fixture
def cluster():
    return Cluster()


names = st.sampled_from(("a", "b", "c"))
parts = st.lists(
    st.fixed_dictionaries(
        {"name": names},
        optional={"side": st.sampled_from(("left", "right")), "count": st.integers(0, 2), "more": st.just({"a": "x"})},
    ),
    max_size=3,
    unique_by=lambda part: (part["name"], part.get("side", "left")),
)
specs = st.fixed_dictionaries(
    {"size": st.integers(0, 2)},
    optional={
        "labels": st.dictionaries(names, names, max_size=3),
        "selector": st.dictionaries(names, names, max_size=2),
        "words": st.lists(names, max_size=3),
        "tags": st.lists(names, max_size=3, unique=True),
        "parts": parts,
        "free": st.dictionaries(names, st.one_of(names, st.lists(names, max_size=2), st.dictionaries(names, names))),
    },
)


@given(specs)
def test_applying_the_same_again_changes_nothing(spec):
    cluster = Cluster()
    cluster.apply("m", **spec)
    before = copy.deepcopy((cluster.obj, cluster.managed))
    cluster.apply("m", now="later", **spec)

    assert (cluster.obj, cluster.managed) == before


@given(specs, specs)
def test_what_one_alone_applies_is_all_there_is(first, second):
    cluster, fresh = Cluster(), Cluster()
    cluster.apply("m", **first)
    cluster.apply("m", **second)
    fresh.apply("m", **second)

    assert set(paths_of(KNOWN, cluster.obj)) >= fresh.owned("m")
    assert cluster.owned("m") == fresh.owned("m")


@given(specs, specs)
def test_force_makes_true_what_is_said(first, second):
    cluster = Cluster()
    cluster.apply("m", **first)
    cluster.apply("n", force=True, **second)
    before = copy.deepcopy(cluster.obj)

    assert merged(KNOWN, cluster.obj, thing(**second)) == cluster.obj == before


@given(specs, specs)
def test_no_field_of_another_value_has_two_owners(first, second):
    cluster = Cluster()
    cluster.apply("m", **first)
    with contextlib.suppress(ApplyConflict):
        cluster.apply("n", **second)
    before = cluster.obj
    cluster.apply("m", **first)

    assert compare(KNOWN, before, cluster.obj) == Comparison()


@given(specs)
def test_nothing_is_changed_in_place(spec):
    cluster = Cluster()
    cluster.apply("m", **spec)
    live, managed = cluster.obj, cluster.managed
    before = copy.deepcopy((live, managed))
    cluster.apply("n", force=True, size=7, tags=["z"], parts=[{"name": "z"}])
    cluster.apply("m")

    assert (live, managed) == before


@given(specs)
def test_a_new_object_is_its_authors_whole(spec):
    found = compare(KNOWN, {}, thing(**spec))

    assert not found.modified
    assert not found.removed
    assert {**whole(KNOWN, thing(**spec)), ".": {}} == {".": {}, **encode(found.added)}


@given(specs, specs)
def test_differences_are_the_same_from_both_sides(one, other):
    there, back = compare(KNOWN, thing(**one), thing(**other)), compare(KNOWN, thing(**other), thing(**one))

    assert (set(there.added), set(there.removed)) == (set(back.removed), set(back.added))
    assert set(there.modified) == set(back.modified)


@given(specs, specs)
def test_entries_of_plain_writes_are_what_was_written_last(first, second):
    cluster = Cluster()
    cluster.write("one", **first)
    cluster.write("two", **second)
    found = compare(KNOWN, thing(**first), thing(**second))

    assert cluster.owned("two") == set(found.added) | set(found.modified)
    assert not cluster.owned("one") & (cluster.owned("two") | set(found.removed))


@given(specs)
def test_what_is_said_is_owned_path_by_path(spec):
    said = thing(**spec)

    assert listed(owned_fields(KNOWN, said)) == listed(encode(defined_paths(KNOWN, said)))
    assert paths_of(KNOWN, said) == set(defined_paths(KNOWN, said))


def defined_paths(value_type, value, path=()):
    """The paths that an applied value owns, by definition: every leaf, every item, and every field of a free map."""
    structure = value_type.structure_of(value)
    if structure is Structure.MAP and isinstance(value, dict | None):
        for name, inner in (value or {}).items():
            here = (*path, field_step(name))
            if isinstance(inner, dict | list):
                yield from defined_paths(value_type.below(name), inner, here)
            if not isinstance(inner, dict | list) or inner == {} or name not in value_type.fields:
                yield here
    elif structure in (Structure.LIST_MAP, Structure.SET) and isinstance(value, list | None):
        for item in value or ():
            here = (*path, step_to(value_type, item))
            yield from defined_paths(value_type.items, item, here)
            yield here
    else:
        yield path


def listed(fields):
    return [(step, listed(below)) for step, below in fields.items()]


def test_a_field_that_another_owns_is_a_conflict(cluster):
    cluster.apply("m", size=1, labels={"a": "x"})

    with pytest.raises(ApplyConflict) as raised:
        cluster.apply("n", size=2)

    assert str(raised.value) == 'Apply failed with 1 conflict: conflict with "m": .spec.size'


def test_all_conflicts_are_named_by_their_owners(cluster):
    cluster.write("kubectl-edit", size=1, parts=[{"name": "a", "count": 1}])
    cluster.apply("m", labels={"a": "x"})

    with pytest.raises(ApplyConflict) as raised:
        cluster.apply("n", size=2, labels={"a": "y"}, parts=[{"name": "a", "count": 2}])

    assert str(raised.value).splitlines() == [
        'Apply failed with 3 conflicts: conflicts with "kubectl-edit" using v1:',
        '- .spec.parts[name="a",side="left"].count',
        "- .spec.size",
        'conflicts with "m":',
        "- .spec.labels.a",
    ]


def test_force_takes_the_field(cluster):
    cluster.apply("m", size=1, labels={"a": "x"})

    assert cluster.apply("n", force=True, size=2) == {"size": 2, "labels": {"a": "x"}}
    assert cluster.owned("n") == {("f:spec", "f:size")}
    assert cluster.owned("m") == {("f:spec", "f:labels", "f:a")}


def test_who_says_the_same_shares_the_field_and_it_stays_until_the_last_lets_go(cluster):
    cluster.apply("m", size=1)
    cluster.apply("n", size=1)
    assert cluster.owned("m") == cluster.owned("n") == {("f:spec", "f:size")}

    assert cluster.apply("m") == {"size": 1}
    assert cluster.apply("n") == {}


def test_what_is_no_longer_said_goes(cluster):
    cluster.apply("m", size=1, labels={"a": "x", "b": "y"}, tags=["s", "t"], parts=[{"name": "a"}, {"name": "b"}])

    left = cluster.apply("m", labels={"b": "y"}, tags=["t"], parts=[{"name": "b"}])

    assert left == {"labels": {"b": "y"}, "tags": ["t"], "parts": [{"name": "b"}]}


def test_what_others_have_added_to_a_part_stays_with_the_part(cluster):
    cluster.apply("m", parts=[{"name": "a", "count": 1}])
    cluster.apply("n", parts=[{"name": "a", "more": {"a": "x"}}])

    assert cluster.apply("m") == {"parts": [{"name": "a", "more": {"a": "x"}}]}


def test_what_a_plain_write_put_beside_stays(cluster):
    cluster.apply("m", labels={"a": "x"})
    cluster.write("w", labels={"a": "x", "b": "y"})

    assert cluster.apply("m") == {"labels": {"b": "y"}}


def test_a_piece_is_taken_as_a_whole(cluster):
    cluster.apply("m", words=["a", "b"], selector={"a": "x"})

    with pytest.raises(ApplyConflict) as raised:
        cluster.apply("n", words=["a"], selector={"b": "y"})

    assert [clash.path[-1] for clash in raised.value.conflicts] == ["f:selector", "f:words"]


def test_items_stand_in_the_order_that_is_said_and_others_keep_their_places(cluster):
    cluster.write("w", tags=["a", "x", "b", "y"])

    assert cluster.apply("m", tags=["b", "new", "a"]) == {"tags": ["x", "b", "y", "new", "a"]}


def test_whoever_wrote_before_the_first_apply_is_written_down(cluster):
    cluster.obj = thing(size=1, labels={"a": "x"})

    with pytest.raises(ApplyConflict) as raised:
        cluster.apply("m", size=2)

    assert str(raised.value) == 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .spec.size'


def test_kubectl_takes_over_what_it_wrote_before_servers_could_apply(cluster):
    note = '{"apiVersion":"v1","kind":"Thing","metadata":{"name":"a"},"spec":{"size":1}}'
    cluster.obj = {**thing(size=1), "metadata": {"name": "a", "annotations": {LAST_APPLIED: note}}}
    cluster.managed = updated({}, writer("kubectl-client-side-apply"), compared(KNOWN, None, cluster.obj), now="t")

    with pytest.raises(ApplyConflict):
        Cluster.apply(copy.deepcopy(cluster), "other", size=2)

    assert cluster.apply("kubectl", size=2) == {"size": 2}
    noted = note_last_applied(cluster.obj, AppliedConfig(author=author("kubectl"), obj=thing(size=2)))
    assert '"size":2' in noted["metadata"]["annotations"][LAST_APPLIED]


def test_time_stands_still_while_nothing_changes(cluster):
    cluster.apply("m", now="1", size=1)
    cluster.apply("m", now="2", size=1)
    assert cluster.entry("m").time == "1"

    cluster.apply("m", now="3", size=2)
    assert cluster.entry("m").time == "3"


def test_who_says_what_is_so_already_gets_no_time(cluster):
    cluster.apply("m", now="1", size=1)
    cluster.apply("n", now="2", size=1)

    assert cluster.entry("n").time == ""
    assert "time" not in cluster.entry("n").to_wire()


def test_taking_the_last_label_away_leaves_the_name():
    obj = {**LIVE, "metadata": {"name": "a", "labels": {"a": "x"}}}
    made, managed = apply(KNOWN, None, {}, config=AppliedConfig(author=author("m"), obj=obj), now="t")
    made["metadata"]["uid"] = "u"

    left, _ = apply(KNOWN, made, managed, config=AppliedConfig(author=author("m"), obj=LIVE), now="t")

    assert left == {**LIVE, "metadata": {"name": "a", "uid": "u"}}


def test_a_plain_write_takes_what_it_changes_and_keeps_what_it_had(cluster):
    cluster.apply("m", size=1, labels={"a": "x"})
    cluster.write("w", now="1", size=2, labels={"a": "x"})
    cluster.write("w", now="2", size=2, labels={"a": "z"})

    assert cluster.owned("w") == {("f:spec", "f:size"), ("f:spec", "f:labels", "f:a")}
    assert "m" not in {entry.author.name for entry in cluster.managed.values()}
    assert cluster.entry("w").time == "2"


def test_a_write_that_only_takes_away_owns_nothing(cluster):
    cluster.apply("m", size=1, labels={"a": "x"})
    cluster.write("w", labels={"a": "x"})

    assert cluster.owned("w") == set()
    assert cluster.owned("m") == {("f:spec", "f:labels", "f:a")}


def test_the_oldest_writers_are_kept_under_one_name(cluster):
    for number in range(MAX_WRITERS + 3):
        labels = {f"l{each}": "x" for each in range(number + 1)}
        cluster.write(f"w{number:02}", now=f"2024-01-01T00:00:{number:02}Z", labels=labels)

    writers = [entry["manager"] for entry in to_wire(cluster.managed)]
    assert len(writers) == MAX_WRITERS
    assert writers[0] == "ancient-changes"
    assert len(cluster.owned("ancient-changes")) == len({"labels", "l0", "l1", "l2", "l3", "spec"})


def test_entries_are_written_as_kubernetes_writes_them(cluster):
    cluster.apply("m", now="2024-01-01T00:00:00Z", size=1)
    cluster.write("w", now="2024-01-01T00:00:00Z", size=2)
    entry = to_wire(cluster.managed)[0]

    assert list(entry) == ["manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1"]
    assert from_wire(to_wire(cluster.managed)) == cluster.managed


@pytest.mark.parametrize(
    "said", [None, [], "x", [{"manager": "x"}], [{"manager": "x", "operation": "Update", "apiVersion": "v1"}], [1]]
)
def test_entries_that_cannot_be_read_are_not_taken(said):
    there = to_wire({("Update", "w", "v1", ""): Entry(author=writer("w"), time="t", fields={"f:a": {}})})

    assert sent_or_stored(said, there) == from_wire(there)


def test_one_empty_entry_makes_all_entries_go():
    there = to_wire({("Update", "w", "v1", ""): Entry(author=writer("w"), time="t", fields={"f:a": {}})})

    assert sent_or_stored([{}], there) == {}


def test_a_newborn_does_not_own_what_every_object_has():
    new = {**thing(size=0, labels={"a": "x"}), "status": {"phase": "x"}}
    zero = {"metadata": {"creationTimestamp": None}, "spec": {"size": 0, "tags": None}}

    fields = fields_of_new(KNOWN, new, zero=zero, ignored=(("f:status",),))

    assert fields == {"f:spec": {"f:labels": {".": {}, "f:a": {}}}}


@pytest.mark.parametrize(
    ("spec", "wrong"),
    [
        ({"nope": 1}, ".spec.nope: field not declared in schema"),
        ({"size": "x"}, ".spec.size: expected a number"),
        ({"labels": "x"}, ".spec.labels: expected an object"),
        ({"labels": {"a": 1}}, ".spec.labels.a: expected a string"),
        ({"words": {}}, ".spec.words: expected a list"),
        ({"tags": ["a", "a"]}, '.spec.tags: duplicate entries for key [="a"]'),
        ({"parts": [{"name": "a"}, {"name": "a"}]}, '.spec.parts: duplicate entries for key [name="a",side="left"]'),
    ],
)
def test_what_does_not_fit_the_schema_is_told(spec, wrong):
    assert tuple(faults(KNOWN, thing(**spec))) == (wrong,)


def test_nothing_merged_with_something_is_the_something():
    assert merged(KNOWN, ABSENT, thing(size=1)) == thing(size=1)
