"""Which processes a test takes for those of its cluster: never those of another test that runs beside it."""

from pathlib import Path

from paceline.testing.embedded import has_mounted

HOME = Path("/tmp/pl-one")

# A pod of that cluster: parts of its agent folder, at places of the container's.
POD = """\
2000 1999 0:60 / / rw - tmpfs tmpfs rw
2001 2000 8:1 /tmp/pl-one/agent/pods/u/etc/hosts /etc/hosts ro - ext4 /dev/sda1 rw
2002 2000 0:61 / /cache rw - tmpfs tmpfs rw
"""
# Another cluster whose control process was started under `unshare --mount`: a copy of the machine's own mounts, with
# those that the first one has made for a pod with a volume in memory.
NEIGHBOUR = """\
1500 1499 8:1 / / rw - ext4 /dev/sda1 rw
1501 1500 0:61 / /tmp/pl-one/agent/mounts/u/cache rw - tmpfs tmpfs rw
1502 1500 8:1 /tmp/pl-one/agent/pods/u/x /tmp/pl-one/agent/mounts/u/x rw - ext4 /dev/sda1 rw
"""


def test_a_pod_is_found_by_what_it_has_mounted():
    assert has_mounted(HOME, POD)


def test_a_neighbour_that_sees_the_mounts_of_the_machine_is_no_pod():
    assert not has_mounted(HOME, NEIGHBOUR)


def test_a_pod_of_another_cluster_is_not_taken():
    assert not has_mounted(Path("/tmp/pl-two"), POD)
