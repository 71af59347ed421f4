"""The steps as they are called in a pod: a real S3 server, messages for the status, and no secret in any of them."""

import io
import os
import signal
import subprocess
import sys
import tarfile
import urllib.request
from hashlib import sha256
from pathlib import Path

import pytest

from paceline.errors import HostError
from paceline.podtools.__main__ import MODULES, main
from paceline.podtools.data_steps import scan_interval
from paceline.podtools.object_store import IDENTITY, BucketConfig, open_bucket
from paceline.podtools.reporting import Reporter, StepFailed, hidden_values, read_secret
from paceline.podtools.unpack import unpack
from paceline.testing.embedded import wait_until
from paceline.testing.s3_server import KEY, KEY_ID, s3_server

KEYS = {"accessKeyId": KEY_ID, "accessKeySecret": KEY}

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def server():
    try:
        with s3_server() as running:
            running.make_bucket("results")
            yield running
    except HostError as error:
        pytest.skip(str(error))


@pytest.fixture
def secret(tmp_path):
    folder = tmp_path / "secret"
    folder.mkdir()
    for name, text in KEYS.items():
        (folder / name).write_text(f"{text}\n")
    return folder


def output(server, secret, root, prefix="job/worker-0"):
    place = ["--url", "s3://results/runs", "--endpoint", server.address, "--secret", str(secret)]
    return [*place, "--from", str(root), "--prefix", prefix, "--job", "job-1"]


def there(server, folder):
    return open_bucket(BucketConfig(url=f"s3://results/{folder}", endpoint=server.address, secret=KEYS))


def test_results_go_to_a_bucket_and_data_come_from_it(server, secret, tmp_path):
    root, back = tmp_path / "output", tmp_path / "input"
    for folder in (root / "x", back):
        folder.mkdir(parents=True)
    (root / "x" / "y.bin").write_bytes(b"\x00" * 9_000_000)

    assert main(["flush", *output(server, secret, root)]) == 0
    assert main(["input", *output(server, secret, root)[:6], "--into", str(back)]) == 0

    assert (back / "job" / "worker-0" / "x" / "y.bin").read_bytes() == b"\x00" * 9_000_000
    assert not list(back.rglob("manifest.json"))


def test_a_folder_that_a_store_has_as_an_object_is_a_folder(server, secret, tmp_path):
    """As the web pages of stores make them: an empty object whose name ends with a slash."""
    for key in ("marked/", "marked/sub/", "marked/sub/empty", "marked/sub/inner/"):
        request = urllib.request.Request(f"{server.address}/results/{key}", data=b"", method="PUT")
        urllib.request.urlopen(request).close()
    there(server, "marked").put("sub/inner/a.txt", b"a")
    words = output(server, secret, tmp_path)[:6]
    words[1] = "s3://results/marked"
    into = tmp_path / "input"
    into.mkdir()

    assert main(["input", *words, "--into", str(into)]) == 0
    assert (into / "sub" / "inner" / "a.txt").read_bytes() == b"a"
    assert (into / "sub" / "empty").read_bytes() == b""


def test_a_sidecar_copies_while_it_runs_and_for_the_last_time_when_told_to_end(server, secret, tmp_path):
    root = tmp_path / "output"
    root.mkdir()
    (root / "early").write_text("early")
    words = [*output(server, secret, root, "side/worker-0"), "--ready", str(tmp_path / "ready")]
    sidecar = subprocess.Popen([sys.executable, "-m", "paceline.podtools", "sync", *words], stdout=subprocess.PIPE)
    try:
        kept = there(server, "runs/side/worker-0")
        wait_until("the first file is there", lambda: kept.get("early"))
        assert (tmp_path / "ready").exists()
        (root / "late").write_text("late")
        sidecar.send_signal(signal.SIGTERM)
        said, _ = sidecar.communicate(timeout=60)
    finally:
        sidecar.kill()

    assert sidecar.returncode == 0
    assert kept.get("late") == b"late"
    assert KEY.encode() not in said


@pytest.mark.parametrize("step", ["resolve", "clone", "unpack"])
def test_a_step_that_needs_no_bucket_loads_none(step):
    show = f"import sys, paceline.podtools.__main__, paceline.podtools.{MODULES[step]}; print('obstore' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)

    assert done.stdout == "False\n"


def test_many_files_are_looked_at_more_rarely():
    assert scan_interval(0) == scan_interval(100) == 2.0
    assert scan_interval(100_000) == 20.0


REFUSED = {
    "gone": (
        "s3://nobucket/x",
        "s3://nobucket/x/job/worker-0 refuses: NoSuchBucket: The specified bucket does not exist\n",
    ),
    "odd": ("ftp://x", "not the URL of a bucket"),
}


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_a_bucket_that_refuses_is_said_and_its_key_is_not(server, secret, tmp_path, capsys, case):
    words = output(server, secret, tmp_path)
    words[1], said = case

    assert main(["restore", *words]) == 1
    shown = capsys.readouterr().out
    assert said in shown
    assert KEY not in shown


FULL = """
import resource, sys
from paceline.podtools.__main__ import main
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
sys.exit(main(sys.argv[1:]))
"""


def test_a_disk_that_takes_no_more_is_said_and_leaves_no_half_file(tmp_path):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "large").write_bytes(b"x" * 10_000)
    into = tmp_path / "input"
    into.mkdir()
    words = ["input", "--url", f"file://{tmp_path / 'there'}", "--into", str(into)]

    done = subprocess.run([sys.executable, "-c", FULL, *words], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert f"large cannot be written to {into}" in done.stdout
    assert list(into.iterdir()) == []


def test_half_a_key_is_no_key(server, secret, tmp_path, capsys):
    (secret / "accessKeyId").unlink()

    assert main(["restore", *output(server, secret, tmp_path)]) == 1
    assert "both keys, accessKeyId and accessKeySecret" in capsys.readouterr().out


def test_an_oss_bucket_needs_to_be_told_where_it_is():
    with pytest.raises(StepFailed, match="needs an endpoint"):
        open_bucket(BucketConfig(url="oss://abc", secret={}))
    assert (
        open_bucket(BucketConfig(url="oss://abc/x", endpoint="https://oss.example.org", secret=KEYS)).name
        == "oss://abc/x"
    )


def test_a_bucket_for_everybody_needs_no_keys(server, monkeypatch):
    for name in IDENTITY:
        monkeypatch.delenv(name, raising=False)
    headers = {"x-amz-acl": "public-read", "Content-Type": "application/octet-stream"}
    request = urllib.request.Request(f"{server.address}/results/public/a", data=b"1", method="PUT", headers=headers)
    urllib.request.urlopen(request).close()

    assert open_bucket(BucketConfig(url="s3://results/public", endpoint=server.address, secret={})).get("a") == b"1"


def test_what_a_secret_says_of_a_bucket_need_not_be_said_again(server):
    known = {**KEYS, "url": "s3://results/named", "endpoint": server.address}
    open_bucket(BucketConfig(secret=known)).put("a", b"1")

    assert there(server, "named").get("a") == b"1"


def test_secrets_are_taken_out_of_what_is_said(tmp_path):
    voice = Reporter(secrets=("hunter22", "x"), message_file=tmp_path / "said")
    voice.conclude("fatal: hunter22 is wrong, x too")

    assert (tmp_path / "said").read_text() == "fatal: … is wrong, x too"


def test_what_a_secret_says_of_a_bucket_is_no_secret_and_its_keys_are():
    known = {**KEYS, "url": "s3://results/named", "endpoint": "https://oss.example.org", "region": "us-east-1"}

    assert set(hidden_values(known)) == set(KEYS.values())


def test_keys_in_the_address_of_a_bucket_are_refused_and_not_shown():
    with pytest.raises(StepFailed, match="keys go into the secret") as caught:
        open_bucket(BucketConfig(secret={"url": "s3://AKIA:very-secret@team/data"}))
    assert "very-secret" not in str(caught.value)


def test_a_message_keeps_its_end_and_fits(tmp_path):
    Reporter(message_file=tmp_path / "said").conclude("ü" * 5000 + "end")

    assert (tmp_path / "said").read_text().endswith("end")
    assert (tmp_path / "said").stat().st_size <= 4096


def test_a_secret_that_is_not_there_is_said(tmp_path):
    assert read_secret(None) == {}
    with pytest.raises(StepFailed, match="cannot be read"):
        read_secret(tmp_path / "nowhere")


def packed(folder, **files):
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name.replace("__", "/").replace("up", ".."))
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    file = folder / "source.tar.gz"
    file.write_bytes(held.getvalue())
    return file, f"sha256:{sha256(held.getvalue()).hexdigest()}"


def test_an_archive_is_laid_out_if_it_is_the_one_that_was_meant(tmp_path):
    file, digest = packed(tmp_path, a="1", b__c="2")
    into = tmp_path / "into"

    assert unpack(file, digest, into) == 2
    assert (into / "b" / "c").read_text() == "2"
    with pytest.raises(StepFailed, match="another one than the job was made with"):
        unpack(file, f"sha256:{'0' * 64}", into)


def test_an_archive_that_leads_out_is_refused(tmp_path):
    file, digest = packed(tmp_path, up__evil="1")

    with pytest.raises(StepFailed, match="cannot be unpacked"):
        unpack(file, digest, tmp_path / "into")
    assert not (tmp_path / "evil").exists()


def linked(name, kind, target):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.mark.parametrize(
    ("member", "said"),
    [
        (linked("a", tarfile.SYMTYPE, "../out"), "'a' leads out of its folder"),
        (linked("a", tarfile.SYMTYPE, "/etc/passwd"), "'a' leads out of its folder"),
        (linked("a", tarfile.LNKTYPE, "../out"), "'a' leads out of its folder"),
        (linked("/a", tarfile.DIRTYPE, ""), "'/a' leads out of its folder"),
        (linked("a", tarfile.FIFOTYPE, ""), "'a' is neither a file nor a folder nor a link"),
    ],
)
def test_a_member_of_an_archive_that_is_no_code_is_refused_by_name(member, said, tmp_path):
    (tmp_path / "out").write_text("not theirs")
    with tarfile.open(tmp_path / "x", "w:gz") as archive:
        archive.addfile(member)
    digest = f"sha256:{sha256((tmp_path / 'x').read_bytes()).hexdigest()}"

    with pytest.raises(StepFailed, match=said):
        unpack(tmp_path / "x", digest, tmp_path / "into")
    assert not os.path.lexists(tmp_path / "into" / "a")


def test_what_an_archive_holds_becomes_our_own_and_links_within_stay(tmp_path):
    theirs = tarfile.TarInfo("run.sh")
    theirs.mode, theirs.uid, theirs.gid = 0o4750, 12345, 12345
    with tarfile.open(tmp_path / "x", "w:gz") as archive:
        for member in (theirs, linked("b/link", tarfile.SYMTYPE, "../run.sh")):
            archive.addfile(member)
    digest = f"sha256:{sha256((tmp_path / 'x').read_bytes()).hexdigest()}"

    unpack(tmp_path / "x", digest, tmp_path / "into")

    known = (tmp_path / "into" / "run.sh").stat()
    assert (known.st_uid, known.st_gid, oct(known.st_mode & 0o7777)) == (os.geteuid(), os.getegid(), "0o777")
    assert (tmp_path / "into" / "b" / "link").readlink() == Path("../run.sh")


def test_an_archive_that_is_missing_or_broken_is_said(tmp_path):
    (tmp_path / "x").write_bytes(b"not packed")
    digest = f"sha256:{sha256(b'not packed').hexdigest()}"

    with pytest.raises(StepFailed, match="is missing"):
        unpack(tmp_path / "nowhere", digest, tmp_path / "into")
    with pytest.raises(StepFailed, match="cannot be unpacked"):
        unpack(tmp_path / "x", digest, tmp_path / "into")
