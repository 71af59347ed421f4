"""What a command in a container is given instead of input, opened while its process still has all rights."""

import os

import pytest

from paceline.node.runtime.nsenter import ExecRefused, open_null


def test_the_null_device_is_opened():
    handle = open_null()

    assert os.read(handle, 1) == b""
    os.close(handle)


def test_nothing_else_is_opened_in_its_place(tmp_path):
    place = tmp_path / "null"
    with pytest.raises(ExecRefused, match="cannot open"):
        open_null(str(place))
    place.symlink_to("/dev/null")
    with pytest.raises(ExecRefused, match="cannot open"):
        open_null(str(place))
    place.unlink()
    place.write_text("secret")
    with pytest.raises(ExecRefused, match="not the null device"):
        open_null(str(place))
    with pytest.raises(ExecRefused, match="not the null device"):
        open_null("/dev/zero")
