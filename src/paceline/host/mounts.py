"""Mounts for pods, by the programs that every Linux has for it; NFS has one of its own, which may be missing."""

import asyncio
import contextlib
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from paceline.errors import ServiceUnavailable
from paceline.node.host_info import CannotStart
from paceline.node.runtime.subpath_mounts import remove_mount_point
from paceline.node.volumes.projection import FAILED
from paceline.node.volumes.volumes import NFS, MountSpec

TABLE = Path("/proc/self/mountinfo")
# Where the fifth column of the table has it, with spaces and the like as octal numbers.
PLACE = 4
HELPERS = ("/sbin", "/usr/sbin", "/usr/local/sbin")
# How mount.nfs is installed, by what installs programs.
INSTALLERS = (
    ("apt-get", "apt-get install nfs-common"),
    ("dnf", "dnf install nfs-utils"),
    ("yum", "yum install nfs-utils"),
    ("zypper", "zypper install nfs-client"),
    ("pacman", "pacman -S nfs-utils"),
    ("apk", "apk add nfs-utils"),
)
MOUNT_SECONDS, UNMOUNT_SECONDS = 60.0, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RealMounts:
    """The mounts below one folder: a folder per pod, and in it one per volume."""

    root: Path

    async def mount(self, what: MountSpec, target: Path) -> None:
        """Mount at a folder, made if need be; being there already is fine. CannotStart says what is missing."""
        if what.kind == NFS and (missing := _missing_helper()):
            raise CannotStart(FAILED, missing)
        if str(target) in mount_points():
            return
        _make(target)
        code, said = await _run(*mount_command(what, target), seconds=MOUNT_SECONDS)
        if code:
            _unmake(target)
            raise CannotStart(FAILED, f"mount failed: exit status {code}: {what.kind} {what.source}: {said}")

    async def unmount(self, uid: str) -> None:
        """Take all mounts of a pod away; what cannot be reached any more is let go of."""
        folder = self.root / uid
        if not folder.exists():
            return  # It is made before anything is mounted in it; the table of mounts is long where many pods run.
        below = f"{folder}/"
        for place in sorted((each for each in mount_points() if each.startswith(below)), reverse=True):
            code, said = await _run("umount", place, seconds=UNMOUNT_SECONDS)
            if code:
                code, said = await _run("umount", "-f", "-l", place, seconds=UNMOUNT_SECONDS)
            if code:
                raise ServiceUnavailable(f"{place} is still mounted: {said}")
        _unmake(folder)

    def pod_uids(self) -> frozenset[str]:
        """Name the pods that have one."""
        try:
            return frozenset(os.listdir(self.root))  # noqa: PTH208 - names, not paths
        except FileNotFoundError:
            return frozenset()


def mount_command(what: MountSpec, target: Path) -> tuple[str, ...]:
    """Spell the command that mounts; the source is a pod author's, and never an option."""
    # A server that does not answer is asked again by us, not by a program that waits for minutes.
    options = (*what.options, *(("retry=0",) if what.kind == NFS else ()))
    words = ("-o", ",".join(options)) if options else ()
    return ("mount", "-t", what.kind, *words, "--", what.source, str(target))


def _make(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _unmake(folder: Path) -> None:
    """Remove a folder and those in it, but never more than empty ones: what is in a mount belongs to others."""
    with contextlib.suppress(OSError):
        for each in folder.iterdir():
            remove_mount_point(each)
        folder.rmdir()


def mount_points() -> frozenset[str]:
    """Name every place at which something is mounted."""
    lines = TABLE.read_text(errors="surrogateescape").splitlines()
    found = (line.split(" ", PLACE + 1)[PLACE] for line in lines)
    return frozenset(each.encode().decode("unicode_escape") if "\\" in each else each for each in found)


def _missing_helper() -> str:
    if shutil.which("mount.nfs") or any(Path(each, "mount.nfs").exists() for each in HELPERS):
        return ""
    line = next((line for tool, line in INSTALLERS if shutil.which(tool)), INSTALLERS[0][1])
    return f"mount.nfs is not installed, and without it nfs cannot be mounted; install it with: {line}"


async def _run(*words: str, seconds: float) -> tuple[int, str]:
    """Run a program to its end; one that takes too long is ended."""
    process = await asyncio.create_subprocess_exec(
        *words, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(seconds):
            said, _ = await process.communicate()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        # Not waited for: what hangs in the kernel does not hear of it.
        return 1, f"{words[0]} did not end within {seconds:.0f} s"
    return process.returncode or 0, " ".join(said.decode(errors="replace").split())
