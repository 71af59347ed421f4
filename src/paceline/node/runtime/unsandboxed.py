"""A container without a sandbox, as people may choose: the same program under the same shim, and nothing around it.

It sees the machine as it is, with all that the agent's user may do. What only a sandbox can give is refused, and said.
"""

from collections.abc import Iterator
from typing import Any

from paceline.node.host_info import CannotStart, Host
from paceline.node.runtime import sandbox, subreaper
from paceline.node.runtime.env import CONFIG_ERROR
from paceline.node.runtime.shim import PLAIN_END
from paceline.node.volumes.volumes import Mount

WHY = "the cluster was started with --no-sandbox; `paceline down`, then `paceline up --sandbox`, would have it"
# What is given to every pod, and missed by few.
UNASKED = "/var/run/secrets/kubernetes.io/"


def intent_of(launch: sandbox.Launch, host: Host) -> dict[str, Any]:
    """Say what the shim starts in place of bubblewrap; CannotStart when the container needs one."""
    if said := "; ".join(_lacking(launch)):
        raise CannotStart(CONFIG_ERROR, f"{said}: {WHY}")
    return {
        "launcher": ["-I", "-S", subreaper.__file__],
        "argv": [host.python, "--", *sandbox.command(launch, host)],
        "options": tuple(_options(launch, host)),
        "endSignal": PLAIN_END,
    }


def _options(launch: sandbox.Launch, host: Host) -> Iterator[str]:
    yield from ("--chdir", launch.working_dir or "/")
    for name, value in sandbox.variables(launch, host).items():
        yield from ("--setenv", name, value)


def _lacking(launch: sandbox.Launch) -> Iterator[str]:
    for mount in launch.mounts:
        if not _is_there(mount):
            how = "read-only at" if mount.read_only else "at"
            yield f"volume {mount.name!r} cannot be mounted {how} {mount.target} without a sandbox"
    if launch.is_read_only:
        yield "readOnlyRootFilesystem cannot be had without a sandbox"


def _is_there(mount: Mount) -> bool:
    """Tell whether a program finds a volume at its place anyway: a folder of the machine under its own name."""
    if mount.target.startswith(UNASKED):
        return True
    if mount.source is None:
        return mount.target == sandbox.SHARED_MEMORY
    return str(mount.source) == mount.target and not mount.read_only
