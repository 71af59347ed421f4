"""The options of bubblewrap as the shim writes them."""

import pytest

from paceline.node.runtime.bwrap import Files
from paceline.node.runtime.subpath_mounts import Binds


def words(*options):
    return Files(first=5, binds=Binds("", may_mount=False)).words(list(options))


def test_options_end_with_a_nul_character():
    assert words("--chdir", "/data") == b"--chdir\0/data\0"


@pytest.mark.parametrize("option", ["/data\0--bind\0/\0/host", {"place": "/x\0--bind", "text": "y"}])
def test_a_nul_character_in_a_path_adds_no_option(option):
    with pytest.raises(OSError, match="NUL"):
        words("--dir", option)
