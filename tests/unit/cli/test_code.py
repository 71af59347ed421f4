"""Code by name on the command line: what cannot be is refused before anything is started."""

import pytest

from paceline.cli.main import main
from paceline.testing.embedded import folder_for_cluster

URL = "https://example.org/team/mnist.git"
CREATE = ("repo", "create", "mnist")
TRAIN = ("train", "--command", "true")
REFUSED = {
    "no address": (CREATE, "Missing option '--git'"),
    "a password in the address": (
        (*CREATE, "--git", "https://me:hunter22@example.org/a.git"),
        "put them into a Secret and set --secret",
    ),
    "ssh": ((*CREATE, "--git", "git@example.org:a/b.git"), "use https: https://example.org/a/b.git"),
    "a folder elsewhere": ((*CREATE, "--git", URL, "--directory", "/etc"), "--directory: '/etc'"),
    "code by name and by address": ((*TRAIN, "--git", URL, "--repo", "mnist", "n"), "--repo mnist already says"),
    "a training without a name": ((*TRAIN, "--repo", "mnist"), "the NAME of the application"),
    "a training without a command": (("train", "--repo", "mnist", "n"), "set a command"),
    "a revision of what is here": (("train", "train.py", "--revision", "v1"), "--revision v1 applies to a repository"),
    "a folder of what is here": (("train", ".", "--directory", "src"), "--directory src applies to a repository"),
    "a user for what is here": (("train", "train.py", "--git-user", "me"), "--git URL or --repo REPO"),
    "a password for what is here": (("train", "train.py", "--git-password-file", "f"), "omit --git-password-file"),
    "nobody's password": (
        (*TRAIN, "--git", URL, "--git-password-file", "f", "n"),
        "--git-password-file f: add --git-user NAME, the user of this password",
    ),
    "an option for a revision": ((*TRAIN, "--repo", "mnist", "--revision=--x", "n"), "a full commit"),
}


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A folder from which nothing runs on, also when a test finds that something was started."""
    with folder_for_cluster(home=tmp_path / "home") as cluster:
        cluster.home.mkdir()
        monkeypatch.setenv("PACELINE_HOME", str(cluster.home))
        monkeypatch.delenv("PACELINE_KUBECONFIG", raising=False)
        yield cluster.home


@pytest.mark.parametrize(("words", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused_and_nothing_is_started(words, said, home, capsys):
    code = main(words)

    err = capsys.readouterr().err
    assert code == 2, err
    assert said in err
    assert "hunter22" not in err
    assert list(home.iterdir()) == []
