"""The facts about this machine that the node agent needs, read once at its start."""

import os
import platform
import re
import shutil
import sys
from pathlib import Path

from paceline.environments.cache import find_uv
from paceline.host.mounts import install_command
from paceline.host.pod_bridge import SYS_ADMIN, has_capabilities
from paceline.host.resources import PID_MAX, find_cgroups
from paceline.node.host_info import Host
from paceline.node.runtime.confinement import COVERED_BY_BUBBLEWRAP, MASKED, READ_ONLY

# Folders of programs beside /usr. Those that are links into /usr stay links.
TOP_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
MORE_FOLDERS = ("/usr", "/opt", "/nix/store")
# Exists where the kernel can filter system calls.
ACTIONS = Path("/proc/sys/kernel/seccomp/actions_avail")
# How many processes and threads a container may have: enough for data loaders with a thread pool each, and at most an
# eighth of the kernel's maximum.
LEAST_PIDS, PIDS_PER_CPU, PIDS_SHARE = 1024, 256, 8
# Overrides this number, as a kubelet's podPidsLimit does.
CHOSEN_PIDS = "PACELINE_POD_PIDS_LIMIT"


def look_at_host() -> Host:
    """Return the facts about this machine."""
    links = tuple((name, str(Path(name).readlink())) for name in TOP_FOLDERS if Path(name).is_symlink())
    plain = tuple(name for name in TOP_FOLDERS if Path(name).is_dir() and not Path(name).is_symlink())
    return Host(
        name=node_name(platform.node()),
        is_root=os.geteuid() == 0,
        uid=os.geteuid(),
        gid=os.getegid(),
        cpus=len(os.sched_getaffinity(0)),
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        facts=_facts(),
        links=links,
        folders=(*(name for name in MORE_FOLDERS if Path(name).is_dir()), *plain),
        python=sys.executable,
        python_bin=str(Path(sys.executable).parent),
        prefixes=(sys.prefix, sys.base_prefix),
        own_folders=(str(Path(__file__).parents[2]),),
        tools=_tools(),
        cgroups=find_cgroups(),
        pids_limit=pids_limit(),
        read_only_paths=tuple(path for path in READ_ONLY if _is_ours_to_close(path)),
        masked_files=tuple(path for path in MASKED if Path(path).exists() and not Path(path).is_dir()),
        masked_folders=tuple(path for path in MASKED if Path(path).is_dir()),
        has_seccomp=ACTIONS.exists(),
        may_mount=may_mount(),
        setpriv=shutil.which("setpriv") or "/usr/bin/setpriv",
        install_sandbox=install_command("bubblewrap"),
    )


def pids_limit(pid_max: Path = PID_MAX) -> int:
    """Return how many processes and threads a container may have on this machine."""
    chosen = os.environ.get(CHOSEN_PIDS, "")
    if chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    limit = max(LEAST_PIDS, PIDS_PER_CPU * (os.cpu_count() or 1))
    return min(limit, int(pid_max.read_text()) // PIDS_SHARE)


def _is_ours_to_close(path: str) -> bool:
    is_covered = path in COVERED_BY_BUBBLEWRAP and os.access(path, os.W_OK)
    return Path(path).exists() and not is_covered


def _tools() -> tuple[str, ...]:
    """Return the folder of uv, which installs packages in pods; empty without uv."""
    uv = find_uv(os.environ)
    return () if uv is None else (str(Path(uv).parent),)


def may_mount() -> bool:
    """Return whether this process may mount file systems."""
    return has_capabilities(SYS_ADMIN)


def find_sandbox() -> str | None:
    """Return the path of bubblewrap, looked up for every container, so that installing it is enough."""
    return shutil.which("bwrap")


def node_name(hostname: str) -> str:
    """Return a machine's hostname as a valid name of a Node."""
    label = re.sub(r"[^a-z0-9.-]+", "-", hostname.lower()).strip("-.")
    return label[:253].strip("-.") or "node"


def _facts() -> tuple[tuple[str, str], ...]:
    try:
        system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        system = platform.system()
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return (
        ("architecture", machine),
        ("kernelVersion", platform.release()),
        ("operatingSystem", platform.system().lower()),
        ("osImage", system),
        ("bootID", _read("/proc/sys/kernel/random/boot_id")),
        ("machineID", _read("/etc/machine-id")),
    )


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
