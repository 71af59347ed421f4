"""Volumes that the kernel has to mount before a container sees them: memory of a size, and disks of other machines."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

MEMORY, NFS = "tmpfs", "nfs"


@dataclass(frozen=True, slots=True, kw_only=True)
class MountSpec:
    """What is mounted: a sort of file system, where it comes from, and its options."""

    kind: str
    source: str
    options: tuple[str, ...] = ()


class Mounts(Protocol):
    """The mounts of this machine's pods. They outlive the agent, and are found again by it."""

    async def mount(self, what: MountSpec, target: Path) -> None:
        """Mount at a folder, made if need be; being there already is fine. Blocked says what is missing."""
        ...

    async def unmount(self, uid: str) -> None:
        """Take all mounts of a pod away, now that nothing runs in it; none is fine. Busy when one is in use."""
        ...

    def known(self) -> frozenset[str]:
        """Name the pods that have one."""
        ...
