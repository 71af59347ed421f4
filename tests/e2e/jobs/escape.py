"""Attempts to get out of a container, each answered by one line of JSON: its name, and what came of it.

Whatever succeeds by mistake does no harm: values are written back as they were read, calls have arguments that no
kernel accepts, and files are made in the container's own folders.
"""

import ctypes
import errno
import fcntl
import json
import mmap
import os
import platform
import signal
import socket
import stat
import struct
import subprocess
import time
from pathlib import Path

libc = ctypes.CDLL(None, use_errno=True)
COLUMN = {"x86_64": 0, "aarch64": 1}[platform.machine()]
TERMINAL_INPUT = 0x5412
NEW_USER, NEW_MOUNTS = 0x10000000, 0x00020000
HOST_PID = int(os.environ["ESCAPE_HOST_PID"])
HOME, CACHE = Path(os.environ["ESCAPE_HOME"]), Path(os.environ["ESCAPE_CACHE"])
ABSTRACT, SETUID_PROGRAM = "\0" + os.environ["ESCAPE_SOCKET"], os.environ["ESCAPE_SETUID"]
SCRATCH = Path(os.environ["ESCAPE_SCRATCH"])

SYSCTLS = (
    *("kernel/core_pattern", "kernel/pid_max", "kernel/randomize_va_space", "kernel/hostname", "kernel/panic"),
    *("kernel/core_uses_pid", "kernel/dmesg_restrict", "kernel/kptr_restrict", "kernel/unprivileged_bpf_disabled"),
    *("fs/file-max", "fs/protected_symlinks", "fs/suid_dumpable", "vm/overcommit_memory", "vm/swappiness"),
    *("net/ipv4/ip_forward", "net/core/somaxconn"),
)
WRITTEN = {
    "interrupt affinity": "/proc/irq/default_smp_affinity",
    "sysrq": "/proc/sysrq-trigger",
    "huge pages": "/sys/kernel/mm/transparent_hugepage/enabled",
    "uevent helper": "/sys/kernel/uevent_helper",
    "network device": "/sys/class/net/lo/mtu",
}
READ = {
    "keys of the machine": "/proc/keys",
    "kernel memory": "/proc/kcore",
    "timers": "/proc/timer_list",
    "kernel log": "/proc/kmsg",
    "shadow": "/etc/shadow",
    "machine id": "/etc/machine-id",
    "memory device": "/dev/mem",
    "first disk": "/dev/vda",
    "virtual machines": "/dev/kvm",
    "file systems in user space": "/dev/fuse",
    "loop devices": "/dev/loop-control",
    "tunnels": "/dev/net/tun",
    "kubeconfig": str(HOME / "kubeconfig"),
    "signing key": str(HOME / "keys/tokens.key"),
    "store": str(HOME / "store/objects.db"),
}
LISTED = {
    "acpi": "/proc/acpi",
    "firmware": "/sys/firmware",
    "home of the cluster": str(HOME),
    "environments": str(CACHE / "envs"),
    "home of root": "/root/.ssh",
    "processes of the agent": f"/proc/{HOST_PID}",
    "shared memory": "/dev/shm",
    "run": "/run",
}
# By number on x86-64 and arm64; arguments that the kernel itself answers otherwise (EFAULT, EBADF, EINVAL).
CALLS = {
    "acct": (163, 89, -1),
    "add_key": (248, 217, 0, 0, 0, 0, -3),
    "adjtimex": (159, 171, 0),
    "bpf": (321, 280, 99, 0, 0),
    "clock_adjtime": (305, 266, 0, 0),
    "clone3": (435, 435, 0, 0),
    "delete_module": (176, 106, 0, 0),
    "fanotify_init": (300, 262, -1, 0),
    "finit_module": (313, 273, -1, 0, 0),
    "fsconfig": (431, 431, -1, 0, 0, 0, 0),
    "fsmount": (432, 432, -1, 0, 0),
    "fsopen": (430, 430, 0, 0),
    "fspick": (433, 433, -1, 0, 0),
    "init_module": (175, 105, 0, 0, 0),
    "io_uring_enter": (426, 426, -1, 0, 0, 0, 0, 0),
    "io_uring_register": (427, 427, -1, 0, 0, 0),
    "io_uring_setup": (425, 425, 0, 0),
    "kexec_file_load": (320, 294, -1, -1, 0, 0, 0),
    "kexec_load": (246, 104, 0, 99, 0, 0),
    "keyctl": (250, 219, 0, -4, 0),
    "lookup_dcookie": (212, 18, 0, 0, 0),
    "mount": (165, 40, 0, 0, 0, 0, 0),
    "mount_setattr": (442, 442, -1, 0, 0, 0, 0),
    "move_mount": (429, 429, -1, 0, -1, 0, 0),
    "open_by_handle_at": (304, 265, -1, 0, 0),
    "open_tree": (428, 428, -1, 0, 0),
    "perf_event_open": (298, 241, 0, 0, -1, -1, 0),
    "pivot_root": (155, 41, 0, 0),
    "quotactl": (179, 60, 0, 0, 0, 0),
    "reboot": (169, 142, 0, 0, 0, 0),
    "request_key": (249, 218, 0, 0, 0, 0),
    "sethostname": (170, 161, 0, 0),
    "setns": (308, 268, -1, 0),
    "settimeofday": (164, 170, -1, 0),
    "swapoff": (168, 225, 0),
    "swapon": (167, 224, 0, 0),
    "syslog": (103, 116, 99, 0, 0),
    "umount2": (166, 39, 0, 0),
    "unshare user namespace": (272, 97, NEW_USER),
    "unshare mounts": (272, 97, NEW_MOUNTS),
    "userfaultfd": (323, 282, -1),
    "clone user namespace": (56, 220, NEW_USER | signal.SIGCHLD, 0, 0, 0, 0),
    "personality": (135, 92, 0x0400000),
}
X86_CALLS = {"iopl": (172, 99), "ioperm": (173, -1, 0, 0), "x32": (0x40000000 + 39,)}


def call(number, *arguments):
    ctypes.set_errno(0)
    result = libc.syscall(number, *(ctypes.c_long(value) for value in arguments))
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    if result == 0 and number in (56, 220):
        os._exit(0)
    return "done"


def write_back(path):
    """Write to a file what is in it."""
    with Path(path).open("rb", buffering=0) as file:
        try:
            text = file.read(4096)
        except OSError:
            text = b""
    with Path(path).open("wb", buffering=0) as file:
        file.write(text)
    return "written"


def write_only(path):
    os.close(os.open(path, os.O_WRONLY))
    return "opened"


def read(path):
    with Path(path).open("rb", buffering=0) as file:
        return "read" if file.read(1) else "empty"


def names(path):
    return ",".join(sorted(entry.name for entry in Path(path).iterdir())) or "empty"


def status(field):
    lines = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    return lines[field].strip()


def cgroup_file(name):
    folder = Path("/sys/fs/cgroup/memory")
    return str((folder if folder.is_dir() else folder.parent) / name)


def make_cgroup():
    Path(cgroup_file("escape")).mkdir()
    return "made"


def device(kind, major, minor):
    path = SCRATCH / f"device-{major}-{minor}"
    os.mknod(path, kind | 0o600, os.makedev(major, minor))
    path.unlink()
    return "made"


def connect(family, kind, address):
    with socket.socket(family, kind) as sock:
        sock.connect(address)
    return "connected"


def raw(family, protocol):
    socket.socket(family, socket.SOCK_RAW, protocol).close()
    return "opened"


def link_flags():
    """Set the flags of the loopback device to what they are."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        request = struct.pack("16sH14x", b"lo", 0)
        flags = fcntl.ioctl(sock, 0x8913, request)
        fcntl.ioctl(sock, 0x8914, flags)
    return "set"


def chroot_escape():
    """Leave a root by a handle from outside of it, and climb."""
    inner = SCRATCH / f"inner-{os.getpid()}"
    inner.mkdir(exist_ok=True)
    child = os.fork()
    if child == 0:
        try:
            top = os.open("/", os.O_RDONLY)
            os.chroot(inner)
            os.fchdir(top)
            for _ in range(32):
                os.chdir("..")
            os.chroot(".")
            os._exit(0 if not Path("/etc/shadow").exists() else 1)
        except OSError as error:
            os._exit(100 + error.errno)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code > 100:
        raise OSError(code - 100, "")
    return "own root" if code == 0 else "out"


def set_clock():
    time.clock_settime(time.CLOCK_REALTIME, time.time())
    return "set"


def terminal_input():
    fcntl.ioctl(0, TERMINAL_INPUT, b"x")
    return "typed"


def foreign_call():
    """Make a call of 32-bit x86, and say how the process ended."""
    child = os.fork()
    if child == 0:
        code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
        os._exit(0)
    end = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return "killed" if end < 0 else "done"


def same_root():
    ours, first = Path("/").stat(), Path("/proc/1/root").stat()
    return "own root" if (ours.st_dev, ours.st_ino) == (first.st_dev, first.st_ino) else "another root"


def visible():
    """Say whose processes are seen: those of the container have its first process above them."""
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return "own" if max(pids) < 1000 and len(pids) < 20 else "others"


def signal_host():
    os.kill(HOST_PID, 0)
    return "sent"


def trace_host():
    ctypes.set_errno(0)
    if libc.ptrace(16, HOST_PID, None, None) < 0:
        raise OSError(ctypes.get_errno(), "")
    return "traced"


def lower_oom_score():
    Path("/proc/self/oom_score_adj").write_text("-1")
    return "lowered"


def be_root():
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(0, 0, 0)
            os._exit(0)
        except OSError as error:
            os._exit(error.errno)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code:
        raise OSError(code, "")
    return "root"


def run_setuid():
    done = subprocess.run([SETUID_PROGRAM, "-u"], capture_output=True, text=True, check=False)
    return done.stdout.strip() or f"code {done.returncode}"


def attempts():
    for name in SYSCTLS:
        yield f"sysctl {name.replace('/', '.')}", lambda name=name: write_back(f"/proc/sys/{name}")
    for name, path in WRITTEN.items():
        yield f"write {name}", lambda path=path: write_only(path)
    for name, path in READ.items():
        yield f"read {name}", lambda path=path: read(path)
    for name, path in LISTED.items():
        yield f"list {name}", lambda path=path: names(path)
    for name, row in CALLS.items():
        yield f"call {name}", lambda row=row: call(row[COLUMN], *row[2:])
    for name, (number, *rest) in X86_CALLS.items() if COLUMN == 0 else ():
        yield f"call {name}", lambda number=number, rest=rest: call(number, *rest)
    if COLUMN == 0:
        yield "call of 32 bits", foreign_call
    yield "cgroup release agent", lambda: write_only(cgroup_file("release_agent"))
    yield "cgroup notify", lambda: write_only(cgroup_file("notify_on_release"))
    yield "cgroup processes", lambda: write_only(cgroup_file("cgroup.procs"))
    yield "cgroup made", make_cgroup
    yield "make memory device", lambda: device(stat.S_IFCHR, 1, 1)
    yield "make disk", lambda: device(stat.S_IFBLK, 8, 0)
    yield "agent socket", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, str(HOME / "agent.sock"))
    yield "abstract socket", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, ABSTRACT)
    yield "raw socket", lambda: raw(socket.AF_INET, socket.IPPROTO_ICMP)
    yield "packet socket", lambda: raw(socket.AF_PACKET, 0)
    yield "hypervisor socket", lambda: connect(40, socket.SOCK_STREAM, (2, 1))
    yield "network device flags", link_flags
    yield "chroot", chroot_escape
    yield "clock", set_clock
    yield "terminal input", terminal_input
    yield "root of the first process", same_root
    yield "program of the first process", lambda: write_only("/proc/1/exe")
    yield "environment of the first process", lambda: read("/proc/1/environ")
    yield "map users", lambda: write_back("/proc/self/uid_map")
    yield "processes seen", visible
    yield "signal to the agent", signal_host
    yield "trace the agent", trace_host
    yield "lower OOM score", lower_oom_score
    yield "raise priority", lambda: str(os.nice(-1))
    yield "become root", be_root
    yield "setuid program", run_setuid
    yield "hostname", socket.gethostname
    for field in ("CapEff", "CapBnd", "NoNewPrivs", "Seccomp"):
        yield f"status {field}", lambda field=field: status(field)


def answer_of(attempt):
    try:
        return str(attempt())
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, repr(error))


def main():
    for name, attempt in attempts():
        print(json.dumps({"name": name, "answer": answer_of(attempt)}), flush=True)


if __name__ == "__main__":
    main()
