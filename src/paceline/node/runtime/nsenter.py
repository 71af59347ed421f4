"""Run one command in a running container: join its namespaces, start the command, report how it ended.

A process of its own, forked from the zygote like a shim; standard library only. It reads one request from its socket,
and answers with lines of JSON: first `{}` with the ends of the command's pipes (or of its terminal) attached, or
`{"error": …, "sort": …}`; then `{"code": …}`. When the agent hangs up, the command's whole session is killed.

Nothing of the host may leak into the container: every file is closed before the command's process is created, that
process drops its privileges first, and cannot be traced (PR_SET_DUMPABLE) until the command has replaced it.
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

from paceline.node.runtime.process_limits import (
    CAPABILITY_VERSION,
    MAX_CAPABILITIES,
    PR_CAPBSET_DROP,
    leave_session_keyring,
    libc,
    set_oom_score,
)
from paceline.node.runtime.shim import detach, first_child, start_ticks

HEAD_BYTES = 4
# In the order in which they are joined; the user namespace gives the right to join the others.
NAMESPACES = ("user", "mnt", "ipc", "uts", "net", "pid")
# How deep below its shim a container's first process can be: two processes of bubblewrap, then the program.
MAX_DEPTH = 6
NS_GET_USERNS = 0xB701
PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 4, 38, 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
PR_SET_SECCOMP, SECCOMP_MODE_FILTER, INSTRUCTION_BYTES = 22, 2, 8
NULL_DEVICE = os.makedev(1, 3)
NOT_FOUND, NOT_ALLOWED, BROKEN, GONE = "NotFound", "NotAllowed", "Broken", "Gone"


class ExecRefused(Exception):
    """The command cannot be run; `sort` is NOT_FOUND, NOT_ALLOWED, BROKEN or GONE."""

    def __init__(self, sort: str, message: str) -> None:
        super().__init__(message)
        self.sort = sort


def run(fd: int) -> None:
    """Run the command that is requested on this socket."""
    os.chdir("/")
    detach(fd)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    agent = socket.socket(fileno=fd)
    # The host's list of processes, which the container's mount namespace does not have.
    processes = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        child, ends = _start(_read_request(agent))
    except ExecRefused as error:
        _send(agent, {"error": str(error), "sort": error.sort})
        return
    except OSError as error:
        _send(agent, {"error": f"{error.strerror or error}", "sort": BROKEN})
        return
    with contextlib.suppress(OSError):
        socket.send_fds(agent, [b"{}\n"], ends)
    for end in ends:
        os.close(end)
    _send(agent, {"code": _wait(child, agent, processes)})


def _read_request(agent: socket.socket) -> dict[str, Any]:
    (size,) = struct.unpack("!I", _read(agent, HEAD_BYTES))
    request: dict[str, Any] = json.loads(_read(agent, size))
    return request


def _read(agent: socket.socket, size: int) -> bytes:
    data = agent.recv(size, socket.MSG_WAITALL)
    if len(data) < size:
        raise ExecRefused(BROKEN, "the agent hung up")
    return data


def _send(agent: socket.socket, record: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        agent.sendall(json.dumps(record).encode() + b"\n")


def _start(request: dict[str, Any]) -> tuple[int, list[int]]:
    """Start the command; return its pid and the agent's ends of its pipes."""
    target = find_container(request["shim"], request["ticks"])
    _join_cgroups(target)
    set_oom_score(request.get("oomScore"))
    leave_session_keyring()
    is_sandboxed = _join_namespaces(target)
    # From here on no process of the container may trace this one or its children.
    _prctl(PR_SET_DUMPABLE, 0)
    mine, ends = _terminal(request) if request["tty"] else _pipes(request)
    failed, failed_end = os.pipe2(os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        try:
            _exec(request, mine, keep=failed_end, is_sandboxed=is_sandboxed)
        except OSError as error:
            os.write(failed_end, f"{error.errno} {error.strerror}".encode())
        finally:
            os._exit(127)
    os.close(failed_end)
    for fd in set(mine):
        os.close(fd)
    failure = os.read(failed, 4096).decode()
    os.close(failed)
    if failure:
        os.waitpid(child, 0)
        raise _refusal(request["argv"][0], failure)
    return child, ends


def find_container(shim: int, ticks: int) -> int:
    """Return a container's first process below its shim: the first in another PID namespace, if there is one."""
    gone = ExecRefused(GONE, "the container has ended")
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
        return os.readlink(f"/proc/{pid}/ns/{name}")  # noqa: PTH115 - the text of the link is not a path
    except OSError:
        return ""


def _join_cgroups(target: int) -> None:
    """Join the container's cgroups; an error means that it has none."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{target}/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            root = Path("/sys/fs/cgroup") / (controllers.removeprefix("name=") if controllers else "")
            with contextlib.suppress(OSError):
                (root / path.lstrip("/") / "cgroup.procs").write_text(str(os.getpid()))


def _join_namespaces(target: int) -> bool:
    """Join the namespaces of the container that differ from this process's; False when there are none."""
    others = [name for name in NAMESPACES if _namespace(target, name) not in ("", _namespace(os.getpid(), name))]
    handles = [(name, os.open(f"/proc/{target}/ns/{name}", os.O_RDONLY | os.O_CLOEXEC)) for name in others]
    if "user" in others and "mnt" in others:
        # bubblewrap may have created a second user namespace, which does not own the other namespaces.
        owner = fcntl.ioctl(dict(handles)["mnt"], NS_GET_USERNS)
        user = handles.pop(0)
        handles = [("user", owner), *handles]
        if os.fstat(owner).st_ino != os.fstat(user[1]).st_ino:
            handles.append(user)
    for name, handle in handles:
        if libc.setns(handle, 0) != 0:
            number = ctypes.get_errno()
            raise ExecRefused(BROKEN, f"cannot join the container's {name} namespace: {os.strerror(number)}")
        os.close(handle)
    return bool(handles)


def _pipes(request: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Return the command's three ends of its pipes, and the agent's."""
    void = open_null()
    reading, feeding = os.pipe2(os.O_CLOEXEC) if request["stdin"] else (void, -1)
    out, out_end = os.pipe2(os.O_CLOEXEC)
    err, err_end = os.pipe2(os.O_CLOEXEC)
    ends = [out, err, feeding] if request["stdin"] else [out, err]
    return [reading, out_end, err_end], ends


def open_null(path: str = os.devnull) -> int:
    """Open the container's null device; ExecRefused when the container has put something else there.

    This process still is privileged: otherwise a link to a privileged file would be handed to the command.
    """
    try:
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ExecRefused(BROKEN, f"cannot open {path} of the container: {error.strerror}") from error
    info = os.fstat(handle)
    if not stat.S_ISCHR(info.st_mode) or info.st_rdev != NULL_DEVICE:
        os.close(handle)
        raise ExecRefused(BROKEN, f"{path} of the container is not the null device")
    return handle


def _terminal(request: dict[str, Any]) -> tuple[list[int], list[int]]:
    """Open a terminal of the container's own devpts, so that its programs can find it by name."""
    master, slave = os.openpty()
    if request["uid"] is not None:
        os.fchown(slave, request["uid"], request["gid"])
    return [slave, slave, slave], [master]


def _exec(request: dict[str, Any], ends: list[int], *, keep: int, is_sandboxed: bool) -> NoReturn:
    """Replace this process by the command, with only its three files and its privileges."""
    os.setsid()
    for fd, end in enumerate(ends):
        os.dup2(end, fd)
    os.closerange(3, keep)
    os.closerange(keep + 1, os.sysconf("SC_OPEN_MAX"))
    if request["tty"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if is_sandboxed:
        _drop_privileges(request)
    os.chdir(request["cwd"])
    os.umask(0o022)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        with contextlib.suppress(OSError, ValueError):
            signal.signal(number, signal.SIG_DFL)
    os.execvpe(request["argv"][0], request["argv"], request["env"])  # noqa: S606 - the requested command


def _drop_privileges(request: dict[str, Any]) -> None:
    """Become the container's user without any capability, as bubblewrap does for the container itself."""
    for capability in range(MAX_CAPABILITIES):
        libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    if request["uid"] is not None:
        os.setgroups(request.get("groups") or [])
        os.setresgid(request["gid"], request["gid"], request["gid"])
        os.setresuid(request["uid"], request["uid"], request["uid"])
    libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    head, none = struct.pack("Ii", CAPABILITY_VERSION, 0), struct.pack("6I", *[0] * 6)
    if libc.capset(head, none) != 0:
        raise OSError(ctypes.get_errno(), "cannot drop capabilities")
    _prctl(PR_SET_NO_NEW_PRIVS, 1)
    if text := request.get("filter"):
        _filter_calls(bytes.fromhex(text))


def _filter_calls(program: bytes) -> None:
    """Install the container's system call filter."""
    instructions = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // INSTRUCTION_BYTES, ctypes.addressof(instructions))
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, head, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot install the system call filter")


def _prctl(option: int, value: int) -> None:
    if libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def _refusal(program: str, failure: str) -> ExecRefused:
    number, _, text = failure.partition(" ")
    if number == "2":
        return ExecRefused(NOT_FOUND, f'exec: "{program}": executable file not found in $PATH')
    if number == "13":
        return ExecRefused(NOT_ALLOWED, f'exec: "{program}": permission denied')
    return ExecRefused(BROKEN, f'exec: "{program}": {text.lower()}')


def _wait(child: int, agent: socket.socket, processes: int) -> int:
    """Return the exit code of the command; kill it when the agent hangs up."""
    handle = os.pidfd_open(child)
    poll = select.poll()
    for fd in (handle, agent.fileno()):
        poll.register(fd, select.POLLIN)
    if handle not in {fd for fd, _ in poll.poll()}:
        # Before waitpid: until then no other process can have its pid.
        _kill_session(child, processes)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return 128 - code if code < 0 else code


def _kill_session(leader: int, processes: int) -> None:
    """Kill the command and its descendants that have not left its session."""
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
