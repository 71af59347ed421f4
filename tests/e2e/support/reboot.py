"""A reboot of the machine, as a cluster sees it: everything has ended, and the kernel tells of another boot."""

import uuid
from pathlib import Path

from paceline.testing.embedded import Embedded, end_all, paceline_command, wait_until

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def crash_machine(cluster: Embedded) -> None:
    """End every process of the cluster and of its pods, as a power cut does."""
    wait_until("nothing of the cluster runs", lambda: not end_all(cluster.home))


def up_after_reboot(cluster: Embedded, folder: Path) -> str:
    """Start the cluster where the kernel tells of another boot."""
    other = folder / "boot_id"
    other.write_text(f"{uuid.uuid4()}\n")
    script = 'mount --bind "$1" "$2" && shift 2 && exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", script, "sh", str(other), str(BOOT_ID), paceline_command(), "up", "-d"]
    started = cluster.command(*words, stdin="", seconds=120)
    assert started.code == 0, f"this test must be root, to mount a file over {BOOT_ID}:\n{started.err}"
    return other.read_text().strip()
