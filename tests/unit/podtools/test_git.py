"""Code from a real git server: the commit is found out, brought, and no password is anywhere."""

import contextlib
import os
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from paceline.podtools.cache_volume import MAX_PACKS
from paceline.podtools.git import Repository, clone, resolve
from paceline.podtools.reporting import StepFailed
from paceline.testing.git_server import git_server


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with git_server(tmp_path_factory.mktemp("git")) as running:
        yield running


@pytest.fixture(scope="module")
def commits(server):
    """Two commits; the first is tagged, and another branch has one of its own."""
    first = server.commit("open", {"train.py": "print(1)\n", "sub/a.txt": "a"}, tag="v1")
    second = server.commit("open", {"train.py": "print(2)\n"})
    other = server.commit("open", {"train.py": "print(3)\n"}, branch="feature/x")
    server.commit("private/closed", {"train.py": "print('private')\n"})
    return {"v1": first, "main": second, "feature/x": other, "": second}


@pytest.fixture
def secret(tmp_path, server):
    folder = tmp_path / "secret"
    folder.mkdir()
    (folder / "username").write_text(server.user)
    (folder / "password").write_text(server.password)
    return folder


@pytest.mark.parametrize("revision", ["main", "v1", "feature/x", ""])
def test_a_branch_a_tag_and_the_default_branch_have_a_commit(server, commits, revision):
    assert resolve(Repository(url=server.url("open"), revision=revision)) == commits[revision]


@pytest.mark.parametrize(
    ("name", "revision", "said"),
    [
        ("open", "mian", "has no branch or tag mian; it has the branches feature/x, main"),
        ("open", "abc1234", "write a commit with all its 40 digits"),
        ("nowhere", "", "not found"),
    ],
    ids=["a wrong branch", "a short commit", "a wrong address"],
)
@pytest.mark.usefixtures("commits")
def test_what_is_not_there_is_said_in_the_words_of_git(server, name, revision, said):
    with pytest.raises(StepFailed, match=said):
        resolve(Repository(url=server.url(name), revision=revision))


def test_one_commit_is_brought_and_no_other(server, commits, tmp_path):
    clone(Repository(url=server.url("open")), commits["v1"], tmp_path)

    assert (tmp_path / "train.py").read_text() == "print(1)\n"
    assert (tmp_path / "sub" / "a.txt").read_text() == "a"


def test_an_interrupted_clone_is_made_anew_and_a_whole_one_is_left_alone(server, commits, tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / "half.txt").write_text("half")

    clone(Repository(url=server.url("open")), commits["main"], tmp_path)
    (tmp_path / "train.py").write_text("changed by the command")
    clone(Repository(url=server.url("open")), commits["main"], tmp_path)

    assert not (tmp_path / "half.txt").exists()
    assert (tmp_path / "train.py").read_text() == "changed by the command"


def with_submodule(server, url):
    """Commit a repository whose submodule is said to be at an address."""
    server.commit("lib", {"lib.py": "x"})
    server.commit("app", {"app.py": "import lib\n"})
    work = server.root / "work" / "app"
    if not (work / "lib").exists():
        add = ["git", "-c", "protocol.file.allow=always", "submodule", "add", str(server.root / "lib.git"), "lib"]
        subprocess.run(add, cwd=work, check=True, capture_output=True)
    return server.commit("app", {".gitmodules": f'[submodule "lib"]\n\tpath = lib\n\turl = {url}\n'})


def test_a_submodule_comes_too_also_from_an_address_beside_its_own(server, tmp_path):
    commit = with_submodule(server, "../lib.git")

    clone(Repository(url=server.url("app")), commit, tmp_path)

    assert (tmp_path / "lib" / "lib.py").read_text() == "x"


def test_a_submodule_that_is_not_to_be_had_is_said_at_every_try(server, tmp_path):
    commit = with_submodule(server, f"{server.address}/nowhere.git")

    for _ in range(2):
        with pytest.raises(StepFailed, match="nowhere"):
            clone(Repository(url=server.url("app")), commit, tmp_path)


HOSTILE = {
    "a program": "ext::sh -c touch% {canary}",
    "a folder of the machine": "{root}/lib.git",
    "an option": "-u./payload",
    "a command": "{address}/lib.git\n\tupdate = !touch {canary}",
}


@pytest.mark.parametrize("url", HOSTILE.values(), ids=HOSTILE)
def test_a_submodule_runs_nothing_and_reads_nothing_of_the_machine(server, tmp_path, url):
    canary, into = tmp_path / "canary", tmp_path / "into"
    into.mkdir()
    commit = with_submodule(server, url.format(canary=canary, root=server.root, address=server.address))

    with pytest.raises(StepFailed):
        clone(Repository(url=server.url("app")), commit, into)

    assert not canary.exists()
    assert not (into / "lib" / "lib.py").exists()


@pytest.mark.usefixtures("commits")
def test_a_server_that_sends_on_is_not_followed_and_it_is_said(server):
    """Where it sends may be an address that only the pod can reach."""
    before = len(server.requests)
    with sending_on_to(server.address) as address, pytest.raises(StepFailed, match="use that one"):
        resolve(Repository(url=f"{address}/open.git"))

    assert len(server.requests) == before


@contextlib.contextmanager
def sending_on_to(address):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(302)
            self.send_header("Location", f"{address}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_args):
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.usefixtures("commits")
def test_a_private_repository_opens_to_its_password_which_is_in_no_file(server, secret, tmp_path):
    into = tmp_path / "code"
    into.mkdir()
    repository = Repository(url=server.url("private/closed"), secret=secret)

    clone(repository, resolve(repository), into)

    assert (into / "train.py").exists()
    assert not [path for path in files_in(into) if server.password.encode() in path.read_bytes()]


@pytest.mark.usefixtures("commits")
def test_a_wrong_password_is_said_and_not_shown(server, secret):
    (secret / "password").write_text("wrong-guess")

    with pytest.raises(StepFailed) as caught:
        resolve(Repository(url=server.url("private/closed"), secret=secret))

    assert "Authentication failed" in str(caught.value)
    assert "wrong-guess" not in str(caught.value)


@pytest.mark.usefixtures("commits")
def test_a_password_is_given_to_the_host_that_it_is_for_and_to_no_other(server, secret, tmp_path):
    """Another server asks for a password too; what it is not told it cannot keep."""
    with git_server(tmp_path / "other", password="another") as other:
        other.commit("private/closed", {"a": "b"})
        (secret / "password").write_text("another")
        inner = Repository(url=server.url("private/closed"), secret=secret)
        words = ["git", "-c", "credential.helper=", *helper_of(inner), "credential", "fill"]
        host = other.address.removeprefix("http://")
        asked = f"protocol=http\nhost={host}\n\n"
        done = subprocess.run(
            words,
            input=asked,
            capture_output=True,
            text=True,
            check=False,
            env={"PATH": "/usr/bin:/bin", "GIT_TERMINAL_PROMPT": "0"},
        )

    assert done.returncode != 0
    assert "another" not in done.stdout


def helper_of(repository):
    from paceline.podtools.git import _settings

    return _settings(repository)


def test_a_password_is_on_no_command_line(server, secret):
    assert not [word for word in helper_of(Repository(url=server.url("x"), secret=secret)) if server.password in word]


def brought(repository, commit, into, shelf):
    into.mkdir()
    clone(repository, commit, into, shelf)
    return (into / "train.py").read_text()


def test_code_that_an_earlier_job_fetched_is_not_asked_of_the_server_again(server, commits, tmp_path):
    repository = Repository(url=server.url("open"))
    brought(repository, commits["v1"], tmp_path / "first", tmp_path)
    before = len(server.requests)

    assert brought(repository, commits["v1"], tmp_path / "second", tmp_path) == "print(1)\n"
    assert len(server.requests) == before
    assert brought(repository, commits["main"], tmp_path / "third", tmp_path) == "print(2)\n"
    status = subprocess.run(
        ["git", "-C", str(tmp_path / "second"), "status", "--porcelain"], capture_output=True, check=True
    )
    assert status.stdout == b""


def cut(pack, _others):
    pack.write_bytes(pack.read_bytes()[:-30])


def another(pack, others):
    pack.write_bytes(others[0].read_bytes())


@pytest.mark.parametrize("spoil", [cut, another], ids=["half of it", "another commit"])
def test_code_that_was_kept_badly_is_fetched_anew(server, commits, tmp_path, spoil):
    repository = Repository(url=server.url("open"))
    brought(repository, commits["v1"], tmp_path / "first", tmp_path)
    pack = next((tmp_path / "code").iterdir())
    brought(repository, commits["main"], tmp_path / "other", tmp_path)
    spoil(pack, [each for each in (tmp_path / "code").iterdir() if each != pack])

    assert brought(repository, commits["v1"], tmp_path / "second", tmp_path) == "print(1)\n"
    before = len(server.requests)
    assert brought(repository, commits["v1"], tmp_path / "third", tmp_path) == "print(1)\n"
    assert len(server.requests) == before


@pytest.mark.usefixtures("commits")
def test_code_that_needs_a_password_is_not_kept_for_others(server, secret, tmp_path):
    repository = Repository(url=server.url("private/closed"), secret=secret)
    brought(repository, resolve(repository), tmp_path / "first", tmp_path)

    assert not (tmp_path / "code").exists()


def test_only_so_many_commits_are_kept_and_a_shelf_that_takes_none_harms_nobody(server, commits, tmp_path):
    (tmp_path / "code").mkdir()
    for index in range(MAX_PACKS):
        (tmp_path / "code" / str(index)).touch()
        os.utime(tmp_path / "code" / str(index), (index, index))
    brought(Repository(url=server.url("open")), commits["v1"], tmp_path / "first", tmp_path)

    kept = {each.name for each in (tmp_path / "code").iterdir()}
    assert len(kept) == MAX_PACKS
    assert "0" not in kept
    assert brought(Repository(url=server.url("open")), commits["v1"], tmp_path / "second", tmp_path / "nowhere")


def test_whatever_user_the_command_runs_as_may_write_beside_its_code(server, commits, tmp_path):
    clone(Repository(url=server.url("open")), commits["v1"], tmp_path)

    assert (tmp_path / "train.py").stat().st_mode & 0o777 == 0o666
    for folder in ("sub", ".git", ".git/objects"):
        assert (tmp_path / folder).stat().st_mode & 0o777 == 0o777


def files_in(folder: Path):
    return [path for path in folder.rglob("*") if path.is_file()]
