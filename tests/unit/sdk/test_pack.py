"""Code is packed the same way everywhere, and nothing goes along that nobody meant to send."""

import io
import os
import tarfile

import pytest

from paceline.errors import BadRequest, TooLarge
from paceline.sdk.submission.source_archive import MAX_BYTES, MAX_PLAIN_BYTES, pack


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "code" / "inner").mkdir(parents=True)
    (tmp_path / "code" / ".git").mkdir()
    for name in ("train.py", "beside.py", "requirements.txt", "notes.md", "inner/deep.py", ".git/config"):
        (tmp_path / "code" / name).write_text(name)
    (tmp_path / "code" / "away").symlink_to("/etc")
    (tmp_path / "code" / "link.py").symlink_to("/etc/passwd")
    return tmp_path / "code"


def test_a_script_goes_with_the_python_files_and_requirements_beside_it(folder):
    assert pack(str(folder / "train.py")).files == ("beside.py", "requirements.txt", "train.py")


def test_a_folder_goes_whole_but_for_links_and_what_tools_keep_there(folder):
    packed = pack(str(folder))

    assert packed.files == ("beside.py", "inner/deep.py", "notes.md", "requirements.txt", "train.py")
    with tarfile.open(fileobj=io.BytesIO(packed.data)) as archive:
        assert archive.getnames() == list(packed.files)


def test_the_same_files_have_the_same_digest_whenever_they_are_packed(folder):
    first = pack(str(folder))
    os.utime(folder / "train.py", (1, 1))
    again = pack(str(folder))
    (folder / "train.py").write_text("changed")

    assert first.digest == again.digest != pack(str(folder)).digest


def test_what_is_too_much_or_not_there_is_refused(folder, tmp_path):
    (folder / "large.bin").write_bytes(os.urandom(MAX_BYTES + 4096))
    (tmp_path / "empty").mkdir()

    with pytest.raises(TooLarge, match="--git"):
        pack(str(folder))
    with pytest.raises(BadRequest, match="no files to upload in it"):
        pack(str(tmp_path / "empty"))
    with pytest.raises(BadRequest, match="no such file"):
        pack(str(tmp_path / "nosuch.py"))


def test_a_folder_of_data_is_refused_before_it_is_read(folder):
    with (folder / "data.bin").open("wb") as file:
        file.truncate(MAX_PLAIN_BYTES * 1000)

    with pytest.raises(TooLarge, match="50000 MiB is too large"):
        pack(str(folder))


def test_a_script_that_is_a_link_goes_along_as_what_it_leads_to(folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "today.py").symlink_to(folder / "train.py")
    packed = pack(str(tmp_path / "elsewhere" / "today.py"))

    with tarfile.open(fileobj=io.BytesIO(packed.data)) as archive:
        assert archive.extractfile("today.py").read() == b"train.py"
