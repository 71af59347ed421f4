"""Mount and unmount volumes of pods with the machine's mount and umount, and mount.nfs, which may be missing."""

import asyncio
import contextlib
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from paceline.errors import ServiceUnavailable
from paceline.node.host_info import CannotStart
from paceline.node.runtime.subpath_mounts import remove_mount_point
from paceline.node.volumes.projection import FAILED
from paceline.node.volumes.volumes import NFS, MountSpec

MOUNT_TABLE = Path("/proc/self/mountinfo")
# The column of the mount point, in which spaces and the like are octal escapes.
MOUNT_POINT = 4
HELPERS = ("/sbin", "/usr/sbin", "/usr/local/sbin")
# The packages with mount.nfs where it is not nfs-utils.
NFS_PACKAGES = {"apt-get": "nfs-common", "zypper": "nfs-client"}
# How package managers install a package; the first one is named on a machine with none of them.
INSTALLERS = {
    "apt-get": "apt-get install",
    "dnf": "dnf install",
    "yum": "yum install",
    "zypper": "zypper install",
    "pacman": "pacman -S",
    "apk": "apk add",
}
MOUNT_SECONDS, UNMOUNT_SECONDS = 60.0, 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RealMounts:
    """The mounts below one folder, which has a folder per pod with a folder per volume."""

    root: Path

    async def mount(self, spec: MountSpec, target: Path) -> None:
        if spec.kind == NFS and (missing := _missing_helper()):
            raise CannotStart(FAILED, missing)
        if str(target) in mount_points():
            return
        _make_folder(target)
        code, output = await _run(*mount_command(spec, target), seconds=MOUNT_SECONDS)
        if code:
            _remove_empty(target)
            raise CannotStart(FAILED, f"mount failed: exit status {code}: {spec.kind} {spec.source}: {output}")

    async def unmount(self, uid: str) -> None:
        """Unmount everything of a pod, by force if its server cannot be reached."""
        folder = self.root / uid
        if not folder.exists():
            return  # Every mount has this folder; the mount table is long where many pods run.
        prefix = f"{folder}/"
        for path in sorted((path for path in mount_points() if path.startswith(prefix)), reverse=True):
            code, output = await _run("umount", path, seconds=UNMOUNT_SECONDS)
            if code:
                code, output = await _run("umount", "-f", "-l", path, seconds=UNMOUNT_SECONDS)
            if code:
                raise ServiceUnavailable(f"{path} is still mounted: {output}")
        _remove_empty(folder)

    def pod_uids(self) -> frozenset[str]:
        try:
            return frozenset(os.listdir(self.root))  # noqa: PTH208 - names, not paths
        except FileNotFoundError:
            return frozenset()


def mount_command(spec: MountSpec, target: Path) -> tuple[str, ...]:
    """Return the mount command; the source comes from the pod's author and is never taken for an option."""
    # We retry if a server does not answer, instead of waiting for minutes in mount.nfs.
    options = (*spec.options, *(("retry=0",) if spec.kind == NFS else ()))
    arguments = ("-o", ",".join(options)) if options else ()
    return ("mount", "-t", spec.kind, *arguments, "--", spec.source, str(target))


def _make_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)


def _remove_empty(folder: Path) -> None:
    """Remove a folder and its empty folders, but never what is in a mount."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            remove_mount_point(path)
        folder.rmdir()


def mount_points() -> frozenset[str]:
    lines = MOUNT_TABLE.read_text(errors="surrogateescape").splitlines()
    paths = (line.split(" ", MOUNT_POINT + 1)[MOUNT_POINT] for line in lines)
    return frozenset(path.encode().decode("unicode_escape") if "\\" in path else path for path in paths)


def _missing_helper() -> str:
    if shutil.which("mount.nfs") or any(Path(folder, "mount.nfs").exists() for folder in HELPERS):
        return ""
    command = install_command("nfs-utils", NFS_PACKAGES)
    return f"mount.nfs is not installed, and nfs cannot be mounted without it; install it with: {command}"


def install_command(package: str, other_names: Mapping[str, str] = MappingProxyType({})) -> str:
    """Return the command with which this user installs a package; some package managers have other names for it."""
    tool = next((tool for tool in INSTALLERS if shutil.which(tool)), next(iter(INSTALLERS)))
    command = f"{INSTALLERS[tool]} {other_names.get(tool, package)}"
    return command if os.geteuid() == 0 else f"sudo {command}"


async def _run(*argv: str, seconds: float) -> tuple[int, str]:
    """Run a program and return its exit code and output; kill it if it takes too long."""
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    try:
        async with asyncio.timeout(seconds):
            output, _ = await process.communicate()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        # Not waited for: a process that hangs in the kernel does not end.
        return 1, f"{argv[0]} did not end within {seconds:.0f} s"
    return process.returncode or 0, " ".join(output.decode(errors="replace").split())
