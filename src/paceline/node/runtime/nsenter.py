"""One command in a running container: joins the container's namespaces, runs it there, and says how it ended.

A program of its own, stdlib only, forked from the nursery like a shim. On its socket it is given one order, and
answers with lines of JSON: first `{}` with the ends of the command's pipes (or of its terminal) attached, or
`{"error": …, "sort": …}`; then `{"code": …}`. When the agent hangs up, all that the command started ends.

Nothing of the machine may leak into the container: every file is closed before the command's process is made, it
gives up its rights first, and cannot be looked into (PR_SET_DUMPABLE) until the command has replaced it.
"""

import contextlib
import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import stat
import struct
import termios
from pathlib import Path
from typing import Any, NoReturn

from paceline.node.runtime.process_limits import leave_session_keyring, set_oom_score
from paceline.node.runtime.shim import first_child, start_ticks

HEAD_BYTES = 4
# Namespaces in the order in which they are joined; the first gives the right to join the others.
NAMESPACES = ("user", "mnt", "ipc", "uts", "net", "pid")
# Shim, two processes of bubblewrap, the program: deeper than this no container's first process lies.
MAX_DEPTH = 6
NS_GET_USERNS = 0xB701
PR_SET_DUMPABLE, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 4, 24, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, INSTRUCTION_BYTES = 22, 2, 8
CAPABILITY_VERSION, LAST_CAPABILITY = 0x20080522, 63
NULL_DEVICE = os.makedev(1, 3)
NOT_FOUND, NOT_ALLOWED, BROKEN, GONE = "NotFound", "NotAllowed", "Broken", "Gone"

_libc = ctypes.CDLL(None, use_errno=True)


class Refused(Exception):
    """The command cannot be run: of which sort the reason is, and what it is."""

    def __init__(self, sort: str, message: str) -> None:
        super().__init__(message)
        self.sort = sort


def run(fd: int) -> None:
    """Carry out the order that comes on this socket."""
    os.setsid()
    os.chdir("/")
    for number in (signal.SIGCHLD, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)
    void = os.open(os.devnull, os.O_RDWR)
    for low in (0, 1, 2):
        os.dup2(void, low)
    os.closerange(3, fd)
    os.closerange(fd + 1, os.sysconf("SC_OPEN_MAX"))
    agent = socket.socket(fileno=fd)
    # The machine's own list of processes, which is out of sight once the container's files are joined.
    processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        child, ends = _start(_read_order(agent))
    except Refused as error:
        _say(agent, {"error": str(error), "sort": error.sort})
        return
    except OSError as error:
        _say(agent, {"error": f"{error.strerror or error}", "sort": BROKEN})
        return
    with contextlib.suppress(OSError):
        socket.send_fds(agent, [b"{}\n"], ends)
    for end in ends:
        os.close(end)
    _say(agent, {"code": _wait(child, agent, processes)})


def _read_order(agent: socket.socket) -> dict[str, Any]:
    (size,) = struct.unpack("!I", _read(agent, HEAD_BYTES))
    order: dict[str, Any] = json.loads(_read(agent, size))
    return order


def _read(agent: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = agent.recv(size - len(data))
        if not piece:
            raise Refused(BROKEN, "the agent hung up")
        data += piece
    return data


def _say(agent: socket.socket, record: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        agent.sendall(json.dumps(record).encode() + b"\n")


def _start(order: dict[str, Any]) -> tuple[int, list[int]]:
    """Start the command; give its pid and the ends of its pipes that the agent is to have."""
    target = find_container(order["shim"], order["ticks"])
    _join_cgroups(target)
    set_oom_score(order.get("oomScore"))
    leave_session_keyring()
    is_sandboxed = _join_namespaces(target)
    # From here on nobody in the container may look into this process or its children.
    _prctl(PR_SET_DUMPABLE, 0)
    mine, ends = _terminal(order) if order["tty"] else _pipes(order)
    failed, failed_end = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        try:
            _become(order, mine, keep=failed_end, is_sandboxed=is_sandboxed)
        except OSError as error:
            os.write(failed_end, f"{error.errno} {error.strerror}".encode())
        finally:
            os._exit(127)
    os.close(failed_end)
    for fd in set(mine):
        os.close(fd)
    said = os.read(failed, 4096).decode()
    os.close(failed)
    if said:
        os.waitpid(child, 0)
        raise _refusal(order["argv"][0], said)
    return child, ends


def find_container(shim: int, ticks: int) -> int:
    """Find a container's first process below its shim: the first in a PID namespace of its own, if there is one."""
    gone = Refused(GONE, "the container has ended")
    if start_ticks(shim) != ticks:
        raise gone
    here = _namespace(os.getpid(), "pid")
    first = pid = first_child(shim)
    for _ in range(MAX_DEPTH):
        if not pid:
            break
        if _namespace(pid, "pid") not in (here, ""):
            return pid
        pid = first_child(pid)
    if not first:
        raise gone
    return first


def _namespace(pid: int, name: str) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/{name}")  # noqa: PTH115 - no path, a name
    except OSError:
        return ""


def _join_cgroups(target: int) -> None:
    """Count what the command uses as the container's; where groups cannot be joined there are none of our own."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{target}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            root = Path("/sys/fs/cgroup") / (controllers.removeprefix("name=") if controllers else "")
            with contextlib.suppress(OSError):
                (root / path.lstrip("/") / "cgroup.procs").write_text(str(os.getpid()))


def _join_namespaces(target: int) -> bool:
    """Join every namespace in which the container is and this process is not; False when there is none."""
    others = [name for name in NAMESPACES if _namespace(target, name) not in ("", _namespace(os.getpid(), name))]
    handles = [(name, os.open(f"/proc/{target}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)) for name in others]
    if "user" in others and "mnt" in others:
        # bubblewrap may have made a second user namespace, in which it has no say over the others.
        owner = fcntl.ioctl(dict(handles)["mnt"], NS_GET_USERNS)
        user = handles.pop(0)
        handles = [("user", owner), *handles]
        if os.fstat(owner).st_ino != os.fstat(user[1]).st_ino:
            handles.append(user)
    for name, handle in handles:
        if _libc.setns(handle, 0) != 0:
            number = ctypes.get_errno()
            raise Refused(BROKEN, f"the container's {name} namespace cannot be joined: {os.strerror(number)}")
        os.close(handle)
    return bool(handles)


def _pipes(order: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Make what the command reads and writes: its own three ends, and the agent's."""
    void = open_null()
    reading, feeding = os.pipe2(os.O_CLOEXEC) if order["stdin"] else (void, -1)
    out, out_end = os.pipe2(os.O_CLOEXEC)
    err, err_end = os.pipe2(os.O_CLOEXEC)
    ends = [out, err, feeding] if order["stdin"] else [out, err]
    return [reading, out_end, err_end], ends


def open_null(path: str = os.devnull) -> int:
    """Open the container's null device, and nothing else that the container has put there.

    This process still has all rights: a link to a file that only those open would be handed to the command.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise Refused(BROKEN, f"{path} of the container cannot be opened: {error.strerror}") from error
    about = os.fstat(handle)
    if not stat.S_ISCHR(about.st_mode) or about.st_rdev != NULL_DEVICE:
        os.close(handle)
        raise Refused(BROKEN, f"{path} of the container is not the null device")
    return handle


def _terminal(order: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Open a terminal among the container's own devices, so that programs there can find it by name."""
    master, slave = os.openpty()
    if order["uid"] is not None:
        os.fchown(slave, order["uid"], order["gid"])
    return [slave, slave, slave], [master]


def _become(order: dict[str, Any], ends: list[int], *, keep: int, is_sandboxed: bool) -> NoReturn:
    """Be the command, with nothing but its three files and the rights it is to have."""
    os.setsid()
    for fd, end in enumerate(ends):
        os.dup2(end, fd)
    os.closerange(3, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
    if order["tty"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if is_sandboxed:
        _give_up_rights(order)
    os.chdir(order["cwd"])
    os.umask(0o022)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    os.execvpe(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - the command that was asked for


def _give_up_rights(order: dict[str, Any]) -> None:
    """Have the container's user and none of root's powers, as bubblewrap sees to for the container itself."""
    for capability in range(LAST_CAPABILITY + 1):
        _libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if order["uid"] is not None:
        os.setgroups(order.get("groups") or [])
        os.setresgid(order["gid"], order["gid"], order["gid"])
        os.setresuid(order["uid"], order["uid"], order["uid"])
    _libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    head, none = struct.pack("Ii", CAPABILITY_VERSION, 0), struct.pack("6I", *[0] * 6)
    if _libc.capset(head, none) != 0:
        raise OSError(ctypes.get_errno(), "capabilities cannot be given up")
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    if text := order.get("filter"):
        _filter_calls(bytes.fromhex(text))


def _filter_calls(program: bytes) -> None:
    """Make no system call that the container may not make."""
    instructions = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // INSTRUCTION_BYTES, ctypes.addressof(instructions))
    if _libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "system calls cannot be filtered")


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def _refusal(program: str, said: str) -> Refused:
    number, _, text = said.partition(" ")
    if number == "2":
        return Refused(NOT_FOUND, f'exec: "{program}": executable file not found in $PATH')
    if number == "13":
        return Refused(NOT_ALLOWED, f'exec: "{program}": permission denied')
    return Refused(BROKEN, f'exec: "{program}": {text.lower()}')


def _wait(child: int, agent: socket.socket, processes: int) -> int:
    """Wait for the command's end, or for the agent to hang up and so to end it."""
    handle = os.pidfd_open(child)
    poll = select.poll()
    for fd in (handle, agent.fileno()):
        poll.register(fd, select.POLLIN)
    if handle not in {fd for fd, _ in poll.poll()}:
        # Before the command's process is waited for: until then no other can have its number.
        _end_session(child, processes)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _end_session(leader: int, processes: int) -> None:
    """Kill the command and everything that it started and that has not left its session."""
    for name in os.listdir(processes):
        if name.isdigit() and (int(name) == leader or _session(name, processes) == leader):
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(name), signal.SIGKILL)


def _session(name: str, processes: int) -> int:
    try:
        fd = os.open(f"{name}/stat", os.O_RDONLY | os.O_CLOEXEC, dir_fd=processes)
    except OSError:
        return 0
    try:
        stat = os.read(fd, 4096)
    except OSError:
        return 0
    finally:
        os.close(fd)
    return int(stat[stat.rindex(b")") + 2 :].split()[3])
