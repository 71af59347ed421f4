"""The limit on open files: as high as the machine allows for our own processes, as usual for what they start."""

import contextlib
import resource


def raise_open_files() -> int:
    """Raise this process's soft limit to its hard one; return what it was."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A kernel may have a lower ceiling than the hard limit says: then the soft one stays.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return soft


def restore_open_files(pid: int, soft: int) -> None:
    """Give a process that we started the soft limit it would have had without us."""
    with contextlib.suppress(OSError, ValueError):
        hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (soft, hard))
