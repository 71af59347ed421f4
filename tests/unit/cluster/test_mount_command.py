"""How volumes are mounted by the machine's own program."""

from pathlib import Path

from paceline.host.mounts import mount_command
from paceline.node.volumes.volumes import NFS, MountSpec


def test_a_server_whose_name_begins_with_a_dash_is_no_option():
    what = MountSpec(kind=NFS, source="-T/claim/fstab:/x", options=("ro",))

    words = mount_command(what, Path("/agent/mounts/1/0"))

    assert words == ("mount", "-t", "nfs", "-o", "ro,retry=0", "--", "-T/claim/fstab:/x", "/agent/mounts/1/0")
