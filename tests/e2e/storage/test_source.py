"""Code from git and from an archive, with its packages, on a real cluster: from the first stage to the last."""

import base64
import contextlib
import hashlib
import io
import json
import os
import re
import tarfile
from pathlib import Path

import pytest

from paceline.testing.embedded import wait_until
from paceline.testing.git_server import GitServer, git_server
from tests.e2e.node.test_images import wheel
from tests.e2e.support.data_jobs import beside_pods, ended, job, log, processes_that_show, secret, stages, submit
from tests.e2e.support.manifests import text


@pytest.fixture(scope="module")
def server(cluster, tmp_path_factory):
    # A password that no other test uses, so that whoever shows it is one of ours.
    place, password = tmp_path_factory.mktemp("git"), f"correct-horse-{os.getpid()}"
    with git_server(place, host=beside_pods(cluster), password=password) as running:
        yield running


@pytest.fixture(scope="module")
def commits(server: GitServer):
    """A repository whose packages lie in it, as wheels, so that nothing need be fetched from anywhere."""
    work = server.root / "work" / "open"
    work.mkdir(parents=True)
    wheel(work / "wheels", "tinything", "def say():\n    print('tiny and well')\n")
    train = "import os, sys, tinything\ntinything.say()\nprint(os.getcwd(), *sys.argv[1:])\n"
    files = {"train.py": train, "requirements.txt": "--no-index\n--find-links wheels\ntinything==1.0\n", "sub/x": "x"}
    first = server.commit("open", files, tag="v1")
    second = server.commit("open", {"second.txt": "2"})
    server.commit("private/closed", {"hello.sh": "echo closed and well\n"})
    server.commit("lost", {"requirements.txt": "--no-index\nnowherething==9.9\n"})
    return {"v1": first, "main": second}


def git(server: GitServer, name: str = "open", **more: str):
    return {"git": {"url": server.url(name), **more}}


def test_s15_x22_code_of_a_tag_runs_in_its_folder_with_its_packages_and_values(cluster, server, commits):
    values = {"values": {"lr": 0.001, "name": "007", "fast": True}, "names": {"lr": "--learning_rate"}}
    source = git(server, revision="v1")
    submit(cluster, job("tagged", "python3 train.py", workers=2, source=source, hyperparameters=values))

    found = ended(cluster, "tagged")

    assert found["phase"] == "Succeeded", found
    assert found["source"]["commit"] == commits["v1"]
    for index in (0, 1):
        lines = log(cluster, found, index=index).splitlines()
        assert lines == ["tiny and well", "/source --fast=true --learning_rate=0.001 --name=007"]
        assert commits["v1"] in stages(found, index)["clone"]["message"]
        assert "tinything==1.0" in stages(found, index)["install"]["message"]


@pytest.mark.slow
def test_s12_a_branch_is_pinned_and_a_subdirectory_is_where_the_command_runs(cluster, server, commits):
    source = {**git(server, revision="main", directory="sub"), "requirements": ""}
    submit(cluster, job("branch", "pwd; ls; cat ../second.txt", source=source))

    found = ended(cluster, "branch")

    assert found["source"]["commit"] == commits["main"]
    assert log(cluster, found).split() == ["/source/sub", "x", "2"]


@pytest.mark.slow
@pytest.mark.usefixtures("commits")
def test_s28_a_private_repository_opens_by_a_secret_that_nobody_else_sees(cluster, server):
    submit(
        cluster,
        secret("reader", username=server.user, password=server.password),
        job(
            "closed",
            "sh hello.sh; env; ls -a /paceline-secrets 2>&1; cat .git/config",
            source=git(server, "private/closed", secret="reader"),
        ),
    )

    found = ended(cluster, "closed")

    assert found["phase"] == "Succeeded", found
    said = log(cluster, found)
    assert said.startswith("closed and well\n")
    shown = "".join(
        cluster.kubectl(*words).out
        for words in (("get", "genericjobs,pods,events", "-o", "yaml"), ("describe", "genericjob,pods"))
    )
    logs = "".join(log(cluster, found, container) for container in ("main", "paceline-clone"))
    assert server.password not in said + shown + logs
    assert not leaks(cluster.home, server.password)


def leaks(home: Path, password: str) -> list[Path]:
    """Give the files of a cluster that have a password in them; the secret itself lies in the store, for its owner."""
    found = []
    # Not by rglob, which does not bear that folders go while it walks.
    for folder, _, names in os.walk(home):
        for path in (Path(folder, name) for name in names):
            if not path.is_file() or path.is_symlink() or path.name.startswith("store") or "secrets" in path.parts:
                continue
            with contextlib.suppress(FileNotFoundError):
                found += [path] if password.encode() in path.read_bytes() else []
    return found


@pytest.mark.slow
@pytest.mark.usefixtures("commits")
def test_s28_a_password_is_in_no_process_while_it_is_used(cluster, server):
    keys = secret("again", username=server.user, password=server.password)
    before = len(server.requests)
    server.gate.clear()
    try:
        submit(cluster, keys, job("watched", "true", source=git(server, "private/closed", secret="again")))
        # Once without the password, and once with it.
        wait_until("git has shown the password", lambda: len(server.requests) >= before + 2)
        shown = processes_that_show(server.password)
        gits = processes_that_show(server.url("private/closed"))
    finally:
        server.gate.set()

    assert gits
    assert shown == []
    assert ended(cluster, "watched")["phase"] == "Succeeded"


def ask(cluster, *words: str, code: int = 0):
    ran = cluster.paceline(*words)
    assert ran.code == code, (words, ran)
    return ran


def commit_of(cluster, job: str) -> str:
    return json.loads(cluster.kubectl("get", "genericjob", job, "-o", "json").out)["status"]["source"]["commit"]


@pytest.mark.slow
def test_d11_a_training_names_its_code_and_data_instead_of_writing_them_out(cluster, server, commits, tmp_path):
    (tmp_path / "seen.txt").write_text("from the volume\n")
    ask(cluster, "volume", "create", "photos", "--dir", str(tmp_path))
    made = ask(cluster, "repo", "create", "mnist", "--git", server.url("open"), "--revision", "v1")
    assert made.out == "repo/mnist created\n"
    assert "already exists" in ask(cluster, "repo", "create", "mnist", "--git", server.url("lost"), code=1).err
    listed = rf"^mnist +{re.escape(server.url('open'))} +v1 +<none> +<none> "
    assert re.search(listed, ask(cluster, "repo", "list").out, re.MULTILINE)

    command = ("--command", "python3 train.py && cat /input/seen.txt", "--data", "photos", "by-name")
    trained = ask(cluster, "train", "--repo", "mnist", *command)
    assert "tiny and well" in trained.out
    assert "from the volume" in trained.out
    assert commit_of(cluster, "by-name-1") == commits["v1"]

    ask(cluster, "train", "--repo", "mnist", "--revision", "main", "--update", *command)
    assert commit_of(cluster, "by-name-2") == commits["main"], "what is told beside the name comes first"

    folder = tmp_path / "unnamed"
    folder.mkdir()
    words = ("--command", "true", "--data", str(folder), "other")
    meant = ask(cluster, "train", "--repo", "mnits", *words, code=1).err
    assert "no repo named 'mnits' in namespace 'default'; did you mean \"mnist\"?" in meant
    assert str(folder) not in ask(cluster, "volume", "list").out, "nothing is made for it"
    ask(cluster, "repo", "delete", "-y", "mnist")
    assert "mnist" not in ask(cluster, "repo", "list").out
    ask(cluster, "rerun", "by-name")
    wait_until("its next job is there", lambda: cluster.kubectl("get", "genericjob", "by-name-3").code == 0)
    assert ended(cluster, "by-name-3")["source"]["commit"] == commits["main"], "it keeps the code that it was made with"


@pytest.mark.slow
@pytest.mark.usefixtures("commits")
def test_d11_named_code_is_opened_by_the_secret_that_it_names(cluster, server):
    submit(cluster, secret("opener", username=server.user, password=server.password))
    ask(cluster, "repo", "create", "closed", "--git", server.url("private/closed"), "--secret", "opener")

    trained = ask(cluster, "train", "--repo", "closed", "--command", "sh hello.sh", "by-secret")

    assert "closed and well" in trained.out
    assert server.password not in cluster.kubectl("get", "configmaps,trainingapps,genericjobs", "-o", "yaml").out


BAD = {
    "a wrong address": ({"url": "/nowhere.git"}, "not found"),
    "a wrong branch": ({"url": "/open.git", "revision": "mian"}, "has no branch or tag mian"),
    "a wrong password": ({"url": "/private/closed.git", "secret": "stranger"}, "Authentication failed"),
}


@pytest.mark.slow
@pytest.mark.usefixtures("commits")
def test_s26_code_that_cannot_be_had_fails_the_job_with_gits_words_and_no_pod_runs(cluster, server):
    jobs = {f"bad-{index}": each for index, each in enumerate(BAD.values())}
    made = [
        job(name, "echo ran", source={"git": {**given, "url": server.address + given["url"]}})
        for name, (given, _) in jobs.items()
    ]
    submit(cluster, secret("stranger", username="who", password="wrong-guess-9"), *made)

    for name, (_, said) in jobs.items():
        found = ended(cluster, name)
        assert found["phase"] == "Failed"
        failed = next(each for each in found["conditions"] if each["type"] == "Failed")
        assert (failed["reason"], said in failed["message"]) == ("SourceNotFound", True), failed
        assert "wrong-guess-9" not in str(found)
        assert found.get("aggregate", {}).get("succeeded", 0) == 0


@pytest.mark.slow
@pytest.mark.usefixtures("commits")
def test_s15_packages_that_are_not_to_be_had_fail_the_job_with_uvs_words(cluster, server):
    submit(cluster, job("lost", "echo ran", source=git(server, "lost")))

    found = ended(cluster, "lost")

    assert found["phase"] == "Failed"
    assert found["failure"]["container"] == "paceline-install"
    assert "nowherething" in found["failure"]["message"]
    assert stages(found)["install"]["exitCode"] != 0


def test_x23_a_folder_of_ones_own_travels_in_a_config_map(cluster):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in {"train.sh": b"cat data/a.txt\n", "data/a.txt": b"from here\n"}.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))
    data = packed.getvalue()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    held = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "mine"},
        "binaryData": {"source.tar.gz": base64.b64encode(data).decode()},
    }
    good, bad = ({"archive": {"digest": each, "configMap": "mine"}} for each in (digest, f"sha256:{'0' * 64}"))
    submit(cluster, held, job("mine", "sh train.sh", source=good), job("other", "sh train.sh", source=bad))

    assert log(cluster, ended(cluster, "mine")) == "from here\n"
    found = ended(cluster, "other")
    assert found["phase"] == "Failed"
    assert "another one than the job was made with" in found["failure"]["message"]


def test_s27_what_cannot_be_right_is_refused_when_it_is_written(cluster):
    source = {"git": {"url": "git@example.org:team/code.git"}}
    refused = cluster.kubectl("create", "-f", "-", stdin=text(job("ssh", "true", source=source)))

    assert refused.code != 0
    assert "use https: https://example.org/team/code.git" in refused.err


@pytest.mark.slow
def test_s15_code_and_packages_that_a_job_before_it_brought_are_found_in_the_cache(cluster, server, commits):
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "packages"},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    source = {**git(server, revision=commits["v1"]), "cache": "packages"}
    submit(cluster, claim, job("first", "python3 train.py", source=source))
    first = ended(cluster, "first")
    asked = len(server.requests)
    submit(cluster, job("second", "python3 train.py", source=source))
    second = ended(cluster, "second")

    assert (first["phase"], second["phase"]) == ("Succeeded", "Succeeded"), (first, second)
    assert stages(first)["install"]["message"].startswith("installed tinything==1.0")
    assert stages(second)["install"]["message"] == "found tinything==1.0 in the cache"
    assert log(cluster, second).startswith("tiny and well")
    assert len(server.requests) == asked
