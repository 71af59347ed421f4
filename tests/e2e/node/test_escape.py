"""Code in a pod cannot get at the machine: more than 100 attempts, each with the answer that it must get.

The attempts are in `jobs/escape.py`. They run as root, as another user, on the machine's network, as a command in a
running container, and under an agent without privileges.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.support.escapes import EXEC, LEVELS, answers

ROOT = Path(__file__).parents[3]
UNPRIVILEGED = "unprivileged"
# Of capabilities root has what runtimes give, without NET_RAW and MKNOD.
GIVEN, NONE = "00000000a00405fb", "0000000000000000"

SYSCTLS = (
    *("kernel.core_pattern", "kernel.pid_max", "kernel.randomize_va_space", "kernel.hostname", "kernel.panic"),
    *("kernel.core_uses_pid", "kernel.dmesg_restrict", "kernel.kptr_restrict", "kernel.unprivileged_bpf_disabled"),
    *("fs.file-max", "fs.protected_symlinks", "fs.suid_dumpable", "vm.overcommit_memory", "vm.swappiness"),
    *("net.ipv4.ip_forward", "net.core.somaxconn"),
)
DENIED_CALLS = (
    *("acct", "add_key", "adjtimex", "bpf", "clock_adjtime", "delete_module", "fanotify_init", "finit_module"),
    *("fsconfig", "fsmount", "fsopen", "fspick", "init_module", "io_uring_enter", "io_uring_register"),
    *("io_uring_setup", "kexec_file_load", "kexec_load", "keyctl", "lookup_dcookie", "mount", "mount_setattr"),
    *("move_mount", "open_by_handle_at", "open_tree", "perf_event_open", "pivot_root", "quotactl", "reboot"),
    *("request_key", "sethostname", "setns", "settimeofday", "swapoff", "swapon", "syslog", "umount2"),
    *("unshare user namespace", "unshare mounts", "userfaultfd", "clone user namespace", "personality"),
)
X86_CALLS = {"call iopl": "EPERM", "call ioperm": "EPERM", "call x32": "EPERM", "call of 32 bits": "killed"}
ABSENT = (
    *("read shadow", "read machine id", "read memory device", "read first disk", "read virtual machines"),
    *("read file systems in user space", "read loop devices", "read tunnels", "read kubeconfig", "read signing key"),
    *("read store", "list home of the cluster", "list environments", "list home of root"),
    *("list processes of the agent", "agent socket"),
)
# What a root that is not the machine's own gets.
EXPECTED = {
    **{f"sysctl {name}": "EROFS" for name in SYSCTLS},
    **{f"call {name}": "EPERM" for name in DENIED_CALLS},
    **(X86_CALLS if os.uname().machine == "x86_64" else {}),
    **dict.fromkeys(ABSENT, "ENOENT"),
    # The C library uses clone then, whose flags a filter can read.
    "call clone3": "ENOSYS",
    "write interrupt affinity": "EROFS",
    "write sysrq": "EROFS",
    "write huge pages": "EROFS",
    "write uevent helper": "EROFS",
    "write network device": "EROFS",
    "read keys of the machine": "empty",
    "read kernel memory": "empty",
    "read timers": "empty",
    "read kernel log": "EPERM",
    "list acpi": "empty",
    "list firmware": "empty",
    "list shared memory": "empty",
    "list run": "empty",
    "cgroup release agent": "EROFS",
    "cgroup notify": "EROFS",
    "cgroup processes": "EROFS",
    "cgroup made": "EROFS",
    "make memory device": "EPERM",
    "make disk": "EPERM",
    "abstract socket": "ECONNREFUSED",
    "raw socket": "EPERM",
    "packet socket": "EPERM",
    "hypervisor socket": "EPERM",
    "network device flags": "EPERM",
    "chroot": "own root",
    "clock": "EPERM",
    "terminal input": "EPERM",
    "root of the first process": "own root",
    # It is bubblewrap's, which every container runs for as long as it lives.
    "program of the first process": "ETXTBSY",
    "environment of the first process": "empty",
    "map users": "EPERM",
    "processes seen": "own",
    "signal to the agent": "ESRCH",
    "trace the agent": "ESRCH",
    "lower OOM score": "EACCES",
    "raise priority": "EPERM",
    "become root": "root",
    "setuid program": "0",
    "hostname": "escape-root",
    "status CapEff": GIVEN,
    "status CapBnd": GIVEN,
    "status NoNewPrivs": "1",
    "status Seccomp": "2",
}
# What only root may ask for is refused to everybody else before it is found to be read-only.
NOT_ROOT = {
    **dict.fromkeys(("write interrupt affinity", "write sysrq", "write huge pages", "write uevent helper"), "EACCES"),
    **dict.fromkeys(("write network device", "cgroup release agent", "cgroup notify", "cgroup processes"), "EACCES"),
    **dict.fromkeys(("read kernel log", "program of the first process"), "EACCES"),
    "chroot": "EPERM",
    "status CapEff": NONE,
}
WITHOUT_PRIVILEGES = {
    **NOT_ROOT,
    # Pods share the machine's network there.
    "abstract socket": "connected",
    # There is no such user.
    "become root": "EINVAL",
    "setuid program": "65534",
    "status CapBnd": NONE,
}
DIFFERENT = {
    "root": {},
    "user": {
        **NOT_ROOT,
        **dict.fromkeys(("root of the first process", "environment of the first process"), "EACCES"),
        "become root": "EPERM",
        "setuid program": "1000",
        "hostname": "escape-user",
    },
    # Abstract names belong to a network, on Kubernetes too; nothing of ours listens at one.
    "host-network": {"abstract socket": "connected", "hostname": "escape-host-network"},
    EXEC: {"chroot": "EPERM", "status CapEff": NONE, "status CapBnd": NONE},
    UNPRIVILEGED: WITHOUT_PRIVILEGES,
    f"{UNPRIVILEGED} {EXEC}": WITHOUT_PRIVILEGES,
}
# Not every machine has these.
MAYBE = {
    "write interrupt affinity": "/proc/irq/default_smp_affinity",
    "write sysrq": "/proc/sysrq-trigger",
    "write huge pages": "/sys/kernel/mm/transparent_hugepage/enabled",
    "write uevent helper": "/sys/kernel/uevent_helper",
    "read keys of the machine": "/proc/keys",
    "read kernel memory": "/proc/kcore",
    "read timers": "/proc/timer_list",
    "list acpi": "/proc/acpi",
    "list firmware": "/sys/firmware",
    "sysctl kernel.unprivileged_bpf_disabled": "/proc/sys/kernel/unprivileged_bpf_disabled",
    "cgroup release agent": "/sys/fs/cgroup/memory/release_agent",
    "cgroup notify": "/sys/fs/cgroup/memory/notify_on_release",
}


def expected(level: str) -> dict[str, str]:
    absent = {name: "ENOENT" for name, path in MAYBE.items() if not Path(path).exists()}
    return EXPECTED | DIFFERENT[level] | absent


def test_the_list_is_long_enough() -> None:
    assert len(EXPECTED) >= 60


@pytest.mark.skipif(os.geteuid() != 0, reason="an agent that runs as root")
def test_no_attempt_gets_out_of_a_container() -> None:
    found = answers(tuple(LEVELS))

    assert set(found) == {*LEVELS, EXEC}
    for level, row in found.items():
        assert row == expected(level), level


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user without privileges")
def test_no_attempt_gets_out_under_an_agent_without_privileges() -> None:
    command = ("tools/unprivileged", sys.executable, "-m", "tests.e2e.support.escapes", "root")

    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)

    assert ran.returncode == 0, ran.stderr[-2000:]
    found = json.loads(ran.stdout)
    assert found["root"] == expected(UNPRIVILEGED)
    assert found[EXEC] == expected(f"{UNPRIVILEGED} {EXEC}")
