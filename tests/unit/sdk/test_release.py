"""Files of values: read with their lines, put over each other, and compared."""

import pytest

from paceline.errors import AlreadyExists, BadRequest
from paceline.kinds.apps.templates.registry import find
from paceline.presentation.apps.app_change import reject_unchanged
from paceline.presentation.apps.changed_values import changed_values
from paceline.sdk.apps.values import ValueOverrides, read_values_file, render


def file(tmp_path, text, name="values.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return str(path)


BROKEN = {
    "a key one space too deep": ("worker:\n   number: 2\n ps:\n   number: 2\n", ":3: line 3 is not YAML"),
    "a tab": ("worker:\n\tnumber: 2\n", "spaces, not tabs"),
    "lost indentation": ("worker:\nnumber: 2\nps:\nnumber: 2\n", ':4: duplicate key "number"'),
    "two documents": ("a: 1\n---\nb: 2\n", "this is the second"),
    "a list": ("- 1\n", "is not a mapping of values"),
}


@pytest.mark.parametrize(("text", "said"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file_is_refused_with_its_line(text, said, tmp_path):
    path = file(tmp_path, text)

    with pytest.raises(BadRequest, match=r"values\.yaml") as refused:
        read_values_file(path)
    assert said in str(refused.value)


def test_lost_indentation_is_told_in_full(tmp_path):
    path = file(tmp_path, "worker:\nnumber: 2\nps:\nnumber: 2\n")

    with pytest.raises(BadRequest) as refused:
        read_values_file(path)
    assert str(refused.value).splitlines() == [
        f'{path}:4: duplicate key "number"; keep one of them',
        f"{path}: worker is empty; check the indentation below it",
        f"{path}: ps is empty; check the indentation below it",
    ]


def test_later_files_and_settings_go_over_earlier_ones(tmp_path):
    first, second = file(tmp_path, "a: {b: 1, c: 1}", "one.yaml"), file(tmp_path, "a: {b: 2}", "two.yaml")
    given = ValueOverrides(files=(first, second), settings=("a.d=3",), texts=("a.e=3",))

    assert given.over({"a": {"z": 0}}) == {"a": {"z": 0, "b": 2, "c": 1, "d": 3, "e": "3"}}


def test_an_empty_file_changes_nothing(tmp_path):
    assert ValueOverrides(files=(file(tmp_path, ""),)).over({"a": 1}) == {"a": 1}


def test_what_differs_is_named_by_its_path_and_numbers_are_numbers():
    before = {"a": {"b": 1, "c": "0.5"}, "d": [1]}
    after = {"a": {"b": 2, "c": 0.5}, "d": [1, 2], "e": True}

    assert changed_values(before, after) == {"a.b": (1, 2), "d": ([1], [1, 2]), "e": (None, True)}


def test_a_change_that_changes_nothing_is_refused():
    template = find("tensorflow-training")
    before = render("mnist", template, template.defaults())
    same = render("mnist", template, {**template.defaults()})
    other = render("mnist", template, {**template.defaults(), "mountPath": "/x"})

    reject_unchanged(before, other)
    with pytest.raises(AlreadyExists, match="paceline rerun mnist"):
        reject_unchanged(before, same)
