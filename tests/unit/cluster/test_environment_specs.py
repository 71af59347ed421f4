"""What an environment is built from, and what tells two builds apart."""

import re

import pytest

from paceline.environments.specs import SHIPPED, EnvironmentSpecs, spec_of
from paceline.errors import Invalid
from paceline.node.images import HOST, OWN, PROMISES


def test_every_environment_that_an_image_is_mapped_to_is_shipped_and_no_other():
    assert {path.stem for path in SHIPPED.glob("*.txt")} == set(PROMISES) - {HOST, OWN}


@pytest.mark.parametrize("name", sorted(set(PROMISES) - {HOST, OWN}))
def test_shipped_requirements_name_one_version_each(name):
    recipe = EnvironmentSpecs().read(name)

    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", line) for line in recipe.lines)
    assert recipe.title == f"{name}-{recipe.version}-{recipe.key}"


def test_another_version_of_the_first_package_lets_the_others_go_with_it():
    recipe = EnvironmentSpecs(custom={"mine": ("torch[extra]==2.13.0", "numpy>=2", "six")}).read("mine==2.5.1")

    assert recipe.lines == ("torch[extra]==2.5.1", "numpy", "six")
    assert recipe.version == "2.5.1"


def test_an_own_environment_goes_before_a_shipped_one_of_the_same_name():
    assert EnvironmentSpecs(custom={"pytorch": ("six",)}).read("pytorch").lines == ("six",)


def test_a_file_is_named_after_itself_and_its_comments_change_nothing(tmp_path):
    path = tmp_path / "Train.txt"
    path.write_text("six==1.17.0\n")
    first = EnvironmentSpecs().read(str(path))
    path.write_text("# ours\n\nsix==1.17.0  # the one\n")

    assert EnvironmentSpecs().read(str(path)) == first
    assert first.title.startswith("train-1.17.0-")


def test_hashes_on_lines_of_their_own_belong_to_their_package(tmp_path):
    path = tmp_path / "lock.txt"
    path.write_text("six==1.17.0 \\\n    --hash=sha256:aa \\\n    --hash=sha256:bb\n")

    (line,) = EnvironmentSpecs().read(str(path)).lines
    assert line.startswith("six==1.17.0 ")
    assert line.count("--hash") == 2


def test_other_packages_are_another_environment(tmp_path):
    keys = {spec_of("a", lines, folder=tmp_path).key for lines in (["six"], ["six==1"], ["six", "toml"])}

    assert len(keys) == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tensorfow", "no such environment; use host, .*tensorflow"),
        ("/no/such/file.txt", "cannot be read"),
    ],
)
def test_what_is_no_environment_is_said(text, said):
    with pytest.raises(Invalid, match=said):
        EnvironmentSpecs().read(text)


@pytest.mark.parametrize(
    ("name", "lines", "said"),
    [
        ("a", ["-r other.txt"], "into one file"),
        ("a", ["--editable ."], "into one file"),
        ("a", ["# nothing"], "at least one package"),
        ("../a", ["six"], "lower-case letters"),
        ("", ["six"], "lower-case letters"),
    ],
)
def test_requirements_that_cannot_be_told_apart_by_their_text_are_refused(name, lines, said, tmp_path):
    with pytest.raises(Invalid, match=said):
        spec_of(name, lines, folder=tmp_path)


@pytest.mark.parametrize(
    ("line", "is_open"),
    [
        ("six==1.16.0", False),
        ("torch[all]===2.13.0+cpu", False),
        ('six==1.16.0; sys_platform == "linux"', False),
        ("six @ file:///wheels/six-1.0.whl", False),
        ("six", True),
        ('six; sys_platform == "linux"', True),
        ("six==1.*", True),
        ("six~=1.16", True),
        ("six>=1", True),
        ("six @ git+file:///six.git@main", True),
    ],
)
def test_h36_requirements_that_name_no_one_version_may_mean_others_tomorrow(line, is_open, tmp_path):
    found = spec_of("mine", ("--no-index", "numpy==2.4.6", line), folder=tmp_path)

    assert found.has_unpinned is is_open


@pytest.mark.parametrize("name", EnvironmentSpecs().names())
def test_h36_a_shipped_environment_asks_nobody_when_it_is_there(name):
    assert not EnvironmentSpecs().read(name).has_unpinned
