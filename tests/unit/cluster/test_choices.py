"""What a person wrote into settings.yaml, and what is said when it makes no sense."""

import pytest

from paceline.cluster.config import configured_images
from paceline.errors import BadRequest, Invalid
from paceline.settings import Settings


def rows(home, text=None, *typed):
    if text is not None:
        (home / "settings.yaml").write_text(text)
    return configured_images(Settings(home=home, images=typed))


def test_a_cluster_without_the_file_has_what_it_was_started_with(tmp_path):
    assert rows(tmp_path, None, ("a", "host")) == (("a", "host"),)


def test_what_is_typed_comes_before_what_is_written(tmp_path):
    text = f"images:\n  'acme/*': host\n  pytorch/pytorch: {tmp_path}\n"
    (tmp_path / "bin").mkdir()

    assert rows(tmp_path, text, ("a", "host")) == (
        ("a", "host"),
        ("acme/*", "host"),
        ("pytorch/pytorch", str(tmp_path)),
    )


def test_an_environment_can_be_named_by_what_it_is_built_from(tmp_path):
    (tmp_path / "r.txt").write_text("six\n")
    text = f"environments: {{mine: [six, toml==0.10.2]}}\nimages: {{a: mine, b: pytorch==2.5.1, c: {tmp_path}/r.txt}}\n"

    assert rows(tmp_path, text) == (("a", "mine"), ("b", "pytorch==2.5.1"), ("c", f"{tmp_path}/r.txt"))


@pytest.mark.parametrize("text", ["", "# nothing\n", "images:\n", "images: {}\n"])
def test_nothing_chosen_is_fine(tmp_path, text):
    assert rows(tmp_path, text) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2]", "write a table of settings"),
        ("images: [a]", "write a table of patterns"),
        ("images: {a: 3}", "write a table of patterns"),
        ("image: {a: host}", "is not a setting; the settings are .*images"),
        ("images: {acme: /no/such/venv}", "the folder of a virtual environment"),
        ("images: {", "is not YAML"),
        ("images: {a: pytorhc}", "no such environment"),
        ("environments: {mine: 3}", "write a table of names"),
        ("environments: {mine: ['-r x']}", "into one file"),
        ("environments: {mine: requirements.txt}", "absolute path"),
        ("images: {a: host, a: host}", "a"),
    ],
)
def test_what_makes_no_sense_is_said_with_its_place(tmp_path, text, said):
    with pytest.raises((Invalid, BadRequest), match=said) as caught:
        rows(tmp_path, text)
    assert str(tmp_path / "settings.yaml") in str(caught.value)
