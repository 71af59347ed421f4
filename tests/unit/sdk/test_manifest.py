"""Reading YAML: one file means what it means to kubectl, and what cannot be meant is refused with its line."""

import math
from pathlib import Path

import pytest

from paceline.errors import BadRequest, TooLarge
from paceline.sdk.submission.manifest import MAX_BYTES, read_file, read_text
from paceline.sdk.submission.submit import with_namespace

HEAD = "apiVersion: v1\nkind: Thing\nmetadata: {name: a}\n"


def read(text):
    return [document.object for document in read_text(text.encode(), "job.yaml")]


def value(text):
    return read(f"{HEAD}x: {text}\n")[0]["x"]


# Recorded from kubectl 1.32 (`kubectl label --local -o json`), so that one file means one thing.
MEANINGS = {
    "a word is a text": ("abc", "abc"),
    "yes is true": ("yes", True),
    "y is true": ("y", True),
    "off is false": ("off", False),
    "nothing is null": ("", None),
    "a tilde is null": ("~", None),
    "a date stays a text": ("2020-01-01", "2020-01-01"),
    "a moment stays a text": ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"),
    "base sixty stays a text": ("1:30", "1:30"),
    "a leading zero is octal": ("0777", 511),
    "0o is octal": ("0o17", 15),
    "eight is not octal": ("08", 8),
    "hexadecimal": ("0x1F", 31),
    "binary": ("0b11", 3),
    "underscores": ("1_000", 1000),
    "a plus sign": ("+5", 5),
    "a negative octal": ("-017", -15),
    "zero": ("0", 0),
    "an exponent": ("1e3", 1000),
    "a dot at the end": ("1.", 1),
    "a dot at the start": (".5", 0.5),
    "more than 64 bits becomes a float": ("123456789012345678901234567890", 1.2345678901234568e29),
    "a quantity is a text": ("1Gi", "1Gi"),
    "a version is a text": ("1.2.3", "1.2.3"),
    "quotes make a text": ("'12'", "12"),
    "a tag makes a text": ("!!str 12", "12"),
}


@pytest.mark.parametrize(("text", "meant"), MEANINGS.values(), ids=MEANINGS)
def test_an_unquoted_word_means_what_kubectl_takes_it_for(text, meant):
    found = value(text)

    assert found == meant
    assert isinstance(found, bool) == isinstance(meant, bool)


REFUSED = {
    "a list is not an object": ("- a\n- b\n", "job.yaml:1: a list of 2 items is not an object"),
    "a text is not an object": ("\n\nhello\n", "job.yaml:3: the string 'hello' is not an object"),
    "a number is not an object": ("42", "the number 42 is not an object"),
    "an empty file holds nothing": ("# only words\n---\n", "job.yaml: contains no object"),
    "a key twice": ("a: 1\nb: 2\na: 3\n", "the key 'a' is on line 1 and again on line 3"),
    "a key twice, spelled apart": ("1: a\n0x1: b\n'1': c\n", "the key '1' is on line 1 and again on line 3"),
    "a tab for indentation": ("a:\n\t- b\n", "spaces, not tabs"),
    "a colon in a text": ("a: b: c\n", "job.yaml:1: line 1 is not YAML"),
    "an open bracket": ("a: [1, 2\n", "a bracket above is not closed"),
    "a tag of another language": (f"{HEAD}x: !!python/object:os.system {{}}\n", "job.yaml:4: the tag !!python"),
    "a binary tag": (f"{HEAD}x: !!binary aGk=\n", "the tag !!binary is not allowed"),
    "a private tag": (f"{HEAD}x: !mine 3\n", "the tag !mine is not allowed"),
    "infinity": (f"{HEAD}x: .inf\n", ".inf is a number that JSON does not have"),
    "a number without end": (f"{HEAD}x: {'9' * 5000}\n", "5000 digits is too long"),
    "a key that means true": (f"{HEAD}on: 3\n", "write it as 'on'"),
    "a list as key": (f"{HEAD}? [a]\n: b\n", "a key must be a string"),
    "an alias as key": (f"{HEAD}a: &a x\n*a : b\n", "a key must be a string"),
    "no key at all": (f"{HEAD}? \n: b\n", "a key is missing"),
    "an alias to nothing": (f"{HEAD}x: *b\n", "has no anchor &b before it"),
    "an alias to its own inside": (f"{HEAD}x: &a [*a]\n", "the alias *a contains itself"),
    "an alias into another document": (f"{HEAD}x: &a 1\n---\n{HEAD}x: *a\n", "has no anchor"),
    "a merge of a text": (f"{HEAD}x: {{<<: abc}}\n", "takes a mapping or a list of mappings"),
    "a control character": (f"{HEAD}x: \x07\n", "the character 0x07 is not allowed"),
    "no apiVersion": ("kind: A\nmetadata: {name: a}\n", "apiVersion is missing; add it, such as apiVersion: batch"),
    "apiversion in small letters": ("apiversion: v1\nkind: A\nmetadata: {name: a}\n", "where you wrote apiversion"),
    "no name": ("apiVersion: v1\nkind: A\nmetadata: {}\n", "metadata.name is missing"),
    "a misspelt name": ("apiVersion: v1\nkind: A\nmetadata: {nme: a}\n", "did you mean name where you wrote nme"),
    "a name that is a number": ("apiVersion: v1\nkind: A\nmetadata: {name: 5}\n", "metadata.name: the number 5"),
    "a kind that is a list": (
        "apiVersion: v1\nkind: [A]\nmetadata: {name: a}\n",
        "kind: a list of 1 item is not allowed",
    ),
    "an item that is no object": ("apiVersion: v1\nkind: List\nitems: [3]\n", "items[0]: the number 3"),
}


@pytest.mark.parametrize(("text", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_meant_is_refused_with_its_place(text, said):
    with pytest.raises(BadRequest) as refusal:
        read(text)

    assert said in str(refusal.value)
    assert str(refusal.value).startswith("job.yaml:")


def test_everything_that_is_missing_is_named_at_once():
    with pytest.raises(BadRequest) as refusal:
        read("spec: {}\n")

    assert len(str(refusal.value).splitlines()) == 3


def bomb(levels):
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return HEAD + "\n".join(lines) + "\n"


TOO_LARGE = {
    "an alias bomb": (bomb(9), "alias"),
    "a bomb of merges": (
        HEAD
        + "m0: &m0 {a: &l [1, 2, 3, 4, 5, 6, 7, 8], b: *l, c: *l}\n"
        + "".join(f"m{n}: &m{n} {{a: *m{n - 1}, b: *m{n - 1}, <<: *m{n - 1}}}\n" for n in range(1, 30)),
        "alias",
    ),
    "deep lists": (HEAD + "x: " + "[" * 65 + "]" * 65 + "\n", "64 levels deep"),
    "depth without end": (HEAD + "x: " + "[" * 500_000, "64 levels deep"),
    "depth by aliases": (
        HEAD
        + "pad: ["
        + "1," * 2000
        + "]\nd0: &d0 [x]\n"
        + "".join(f"d{n}: &d{n} [*d{n - 1}]\n" for n in range(1, 80)),
        "64 levels deep",
    ),
    "too many values": (HEAD + "x: [" + "1," * 25_000 + "]\n", "20000 values"),
}


@pytest.mark.parametrize(("text", "said"), TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_bomb_is_noticed_before_it_goes_off(text, said):
    with pytest.raises(TooLarge, match=said):
        read(text)


def test_a_file_of_two_megabytes_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "big.yaml"
    path.write_bytes(b"x: " + b"y" * 2_000_000)

    with pytest.raises(TooLarge, match="larger than 1 MiB"):
        read_file(str(path))


def test_a_file_at_the_limit_is_read(tmp_path):
    path = tmp_path / "full.yaml"
    path.write_bytes((HEAD + "x: ").encode().ljust(MAX_BYTES, b"y"))

    assert len(read_file(str(path))[0].object["x"]) == MAX_BYTES - len(HEAD) - 3


def test_aliases_and_merges_that_people_write_are_unfolded():
    found = read(
        f"{HEAD}base: &b {{cpu: 1, mem: 2}}\none: *b\ntwo: {{<<: *b, cpu: 9}}\nlist: {{<<: [*b, {{x: 1}}]}}\n"
    )[0]

    assert found["one"] == {"cpu": 1, "mem": 2}
    assert found["two"] == {"cpu": 9, "mem": 2}
    assert found["list"] == {"cpu": 1, "mem": 2, "x": 1}


def test_several_documents_carry_their_own_lines():
    documents = read_text(f"{HEAD}---\n# nothing\n---\n{HEAD}".encode(), "job.yaml")

    assert [document.place for document in documents] == ["job.yaml:1", "job.yaml:7"]


def test_a_list_gives_its_items():
    found = read("apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {generateName: a-}}\n")

    assert [each["kind"] for each in found] == ["A"]


def test_a_file_that_is_not_utf8_names_the_line_and_the_byte():
    with pytest.raises(BadRequest, match=r"job.yaml:2: byte 0xff is not UTF-8"):
        read_text(b"a: 1\nb: \xff\n", "job.yaml")


def test_a_byte_order_mark_is_no_fault():
    assert read("\ufeff" + HEAD)[0]["kind"] == "Thing"


def test_json_is_yaml():
    assert read('{"apiVersion": "v1", "kind": "A", "metadata": {"name": "a"}}')[0]["kind"] == "A"


def test_numbers_are_always_finite():
    with pytest.raises(BadRequest, match="too large"):
        value("1e999")
    assert math.isfinite(value("1e308"))


def test_a_missing_file_suggests_its_neighbour(tmp_path):
    (tmp_path / "digits.yaml").write_text(HEAD)

    with pytest.raises(BadRequest, match=r"no such file; did you mean .*digits\.yaml\?"):
        read_file(str(tmp_path / "digit.yaml"))


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(BadRequest, match="is a folder"):
        read_file(str(tmp_path))


def test_a_file_that_may_not_be_read_says_so(tmp_path):
    missing = Path(tmp_path / "loop")
    missing.symlink_to(missing)

    with pytest.raises(BadRequest, match="cannot be read"):
        read_file(str(missing))


def test_a_chosen_namespace_must_not_contradict_the_file():
    document = read_text(b"apiVersion: v1\nkind: A\nmetadata: {name: a, namespace: one}\n", "job.yaml")[0]

    assert with_namespace(document, "two", is_chosen=False).object["metadata"]["namespace"] == "one"
    with pytest.raises(BadRequest, match="is 'one', but -n is 'two'"):
        with_namespace(document, "two", is_chosen=True)
