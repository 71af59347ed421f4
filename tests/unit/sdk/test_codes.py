"""Named code repositories: found by name, without a password in them, never in place of a foreign config map."""

import pytest
from tests.unit.sdk.conftest import CONFIG_MAPS

from paceline.errors import AlreadyExists, Invalid, NotFound
from paceline.sdk.code_repositories import CodeRepositories, CodeRepository

URL = "https://example.org/team/mnist.git"


@pytest.fixture
def codes(session):
    return CodeRepositories(cluster=session.cluster, namespace="default")


def test_code_is_found_by_its_name_with_all_that_was_saved(codes):
    saved = {"url": URL, "revision": "v1", "directory": "train", "secret": "team-git"}
    codes.create(CodeRepository(name="mnist", **saved))
    codes.create(CodeRepository(name="cifar", url=URL))

    assert [each.name for each in codes.all()] == ["cifar", "mnist"]
    assert codes.named("mnist").values == saved
    assert codes.named("cifar").values == {"url": URL, "revision": "", "directory": "", "secret": ""}


def test_code_is_a_config_map_with_its_name_as_label(stage, codes):
    codes.create(CodeRepository(name="mnist", url=URL, revision="v1"))

    made = stage.objects[CONFIG_MAPS, "mnist"]
    assert made["metadata"]["labels"] == {"paceline.dev/code": "mnist"}
    assert made["data"] == {"url": URL, "revision": "v1"}


def test_an_unknown_name_is_said_with_the_one_that_was_probably_meant(codes):
    with pytest.raises(NotFound, match="no repo named 'mnist' in namespace 'default'; there are: none"):
        codes.named("mnist")
    codes.create(CodeRepository(name="mnist", url=URL))

    with pytest.raises(NotFound, match='did you mean "mnist"'):
        codes.named("mnits")
    with pytest.raises(NotFound, match="there are: mnist"):
        codes.named("speech")


BAD = {
    "a password in the address": ({"url": "https://me:hunter22@example.org/a.git"}, "--git", "set --secret"),
    "ssh": ({"url": "git@example.org:team/code.git"}, "--git", "use https: https://example.org/team/code.git"),
    "no address": ({"url": ""}, "--git", "must be an https://"),
    "an option for a revision": ({"revision": "--upload-pack=x"}, "--revision", "a full commit"),
    "a folder elsewhere": ({"directory": "../other"}, "--directory", "without .."),
    "what cannot be a secret": ({"secret": "Team_Git"}, "--secret", "lower case"),
    "what cannot be a name": ({"name": "My_Code"}, "name", 'did you mean "my-code"'),
    "no name": ({"name": ""}, "name", "give the repo a name"),
}


@pytest.mark.parametrize(("told", "option", "said"), BAD.values(), ids=BAD)
def test_code_that_cannot_be_is_refused_by_its_option_and_no_password_is_shown(stage, codes, told, option, said):
    with pytest.raises(Invalid) as caught:
        codes.create(CodeRepository(**{"name": "mnist", "url": URL, **told}))

    assert [fault.path for fault in caught.value.faults] == [option]
    assert said in str(caught.value)
    assert "hunter22" not in str(caught.value)
    assert stage.objects == {}


def test_a_name_that_is_taken_stays_as_it_is(stage, codes):
    codes.create(CodeRepository(name="mnist", url=URL))
    stage.put(CONFIG_MAPS, {"metadata": {"name": "settings", "labels": {"paceline.dev/code": "other"}}})

    with pytest.raises(AlreadyExists, match="already exists; to list all: paceline repo list"):
        codes.create(CodeRepository(name="mnist", url="https://example.org/other.git"))
    with pytest.raises(AlreadyExists, match="repo settings, or another config map of that name"):
        codes.create(CodeRepository(name="settings", url=URL))
    assert codes.named("mnist").url == URL


def test_deleted_code_is_gone_and_nothing_else(stage, codes):
    for name in ("mnist", "cifar"):
        codes.create(CodeRepository(name=name, url=URL))

    codes.delete(codes.named("mnist"))

    assert set(stage.objects) == {(CONFIG_MAPS, "cifar")}
