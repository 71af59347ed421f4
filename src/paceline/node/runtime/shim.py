"""The shim of one container: runs it once, writes its output to a log, and records how it ended.

A process of its own, forked from the zygote, so that a container outlives the agent. Standard library only, like its
imports. It works in one folder:

intent.json    what to run; written by the agent, removed here after the start is recorded (it may hold secrets)
lock           locked (flock) as long as the shim lives
started.json   the shim's identity; on disk before the program runs, so that an attempt runs at most once
log            the output, in CRI format
exit.json      how the container ended; the last file that the shim writes

SIGTERM asks the main process to stop, with the container's stop signal; SIGQUIT kills the whole container.
"""

import contextlib
import fcntl
import functools
import json
import os
import resource  # noqa: F401 - os.wait4 would import it in every shim after the fork
import select
import signal
import time
import traceback
from pathlib import Path
from typing import Any

from paceline.node.runtime.bwrap import NOT_STARTED, BwrapOptions, join_network, memory_file, pipe, spawn
from paceline.node.runtime.cri_log import CriLog, CriStream, now, now_ns, stamp
from paceline.node.runtime.process_limits import Cgroup, confined, read_file, set_oom_score, write_file
from paceline.node.runtime.subpath_mounts import SubpathMounts

INTENT, LOCK, STARTED, LOG, EXIT = "intent.json", "lock", "started.json", "log", "exit.json"
# Written by the agent when it asks the container to stop: the time, and the number of a signal if the user chose one.
STOP_REQUEST = "asked"
# The subPath mounts of a container that has none.
NO_BINDS = {"folder": "", "may_mount": False}

CHUNK = 256 * 1024
# An unfinished line is written after this long, so that progress bars move.
HOLD_SECONDS = 0.5
# How long a start may take before the agent is told that the container runs all the same, and how long a program may be
# called like a launcher before it is taken for the container's own.
START_SECONDS, LAUNCHER_SECONDS = 10.0, 2.0
# The shim polls for the program while bubblewrap sets up the sandbox: every 2 ms at first, then less often the longer
# this takes. On a busy machine, hundreds of shims that poll all the time would slow the starts down further.
POLL_SECONDS, MAX_POLL_SECONDS, POLL_PART = 0.002, 0.1, 0.25
RETRY_SECONDS = 0.5
LEAVE_SECONDS = 5.0
EXIT_FILE_BYTES = 8 * 1024
MESSAGE_BYTES = 2048
SHIM_OOM_SCORE = -500
# Makes subreaper.py, where there is no PID namespace, kill all processes of the container.
SUBREAPER_KILL = int(signal.SIGQUIT)
# Programs that run before the container's; while one of these runs, the container's does not yet.
LAUNCHERS = (b"bwrap", b"setpriv")
# In the flags of /proc/PID/stat.
PF_EXITING = 0x4


def run(folder: str, ready: int) -> None:
    """Run the container of this folder; `ready` gets a byte once its program runs or has failed."""
    os.chdir(folder)
    detach(ready)
    os.umask(0o022)
    with contextlib.suppress(OSError):
        # The name in `ps` and `top`.
        write_file("/proc/self/comm", b"paceline-shim")
    try:
        if not _lock() or os.path.exists(STARTED):
            _remove_spent_intent()
            return
        intent = json.loads(read_file(INTENT))
        # Before anyone can read the pid to signal.
        wake, begun = _catch_signals(), now_ns()
        # No program may run without a record: when this fails, the shim ends and the agent can start it again.
        started = {"startedAt": stamp(begun), "environment": intent.get("environment", "")}
        write_durably(STARTED, encode(_identity() | started))
        supervisor = ContainerSupervisor(intent, begun, ready=ready, wake=wake)
        _remove_spent_intent()
        supervisor.run()
    except BaseException:
        with contextlib.suppress(OSError):
            Path("shim.error").write_text(traceback.format_exc())
        raise


def _remove_spent_intent() -> None:
    """Remove the intent of a container that has started; an agent that died in between may have written it again."""
    with contextlib.suppress(FileNotFoundError):
        os.stat(STARTED)
        os.unlink(INTENT)


def detach(open_fd: int) -> None:
    """Leave the zygote's session, and close all files but this one."""
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(3, open_fd)
    os.closerange(open_fd + 1, os.sysconf("SC_OPEN_MAX"))
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)


def _lock() -> bool:
    """Take the folder's lock; the file stays open, and the kernel releases it when the shim ends."""
    fd = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    # An agent that tests the lock holds it for an instant, so try more than once.
    for _ in range(20):
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(0.01)
    return False


def _identity() -> dict[str, Any]:
    pid = os.getpid()
    return {"pid": pid, "startTicks": start_ticks(pid), "bootId": boot_id()}


@functools.cache
def boot_id() -> str:
    """Return the id of the current boot of the machine."""
    return read_file("/proc/sys/kernel/random/boot_id").decode().strip()


def start_ticks(pid: int) -> int | None:
    """Return when a process started, in ticks since boot; None when it is gone or a zombie."""
    fields = _stat(pid)
    return None if not fields or fields[0] in (b"Z", b"X") else int(fields[19])


def is_exiting(pid: int) -> bool:
    """Return whether a process is exiting or has a pending SIGKILL: it still exists, and runs no more of its code."""
    fields = _stat(pid)
    if not fields or int(fields[6]) & PF_EXITING:
        return True
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").split("\n")
    except (FileNotFoundError, ProcessLookupError):
        return True
    pending = [int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd:", "ShdPnd:"))]
    return any(signals & (1 << (signal.SIGKILL - 1)) for signals in pending)


def _stat(pid: int) -> list[bytes]:
    """Return the fields of /proc/PID/stat after the name: state, parent and so on; empty when the process is gone."""
    try:
        stat = read_file(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return []
    # The name, in parentheses, may contain anything.
    return stat[stat.rindex(b")") + 2 :].split()


def decode_wait_status(status: int) -> tuple[int, int | None, str]:
    """Return exit code, signal and reason for a wait status, as container runtimes do."""
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        return 128 - code, -code, "Error"
    return code, None, "Error" if code else "Completed"


def encode(record: dict[str, Any]) -> bytes:
    """Encode a record as JSON."""
    return json.dumps(record, separators=(",", ":")).encode()


def write_durably(path: str, data: bytes) -> None:
    """Write a file of the current folder atomically and durably."""
    temporary = f".{path}"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, data)
        os.fsync(fd)
    finally:
        os.close(fd)
    os.rename(temporary, path)
    sync_folder(".")


def sync_folder(path: str | Path) -> None:
    """Make the names in a folder durable."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


class ContainerSupervisor:
    """Runs the program, copies its output, forwards signals, and records the end."""

    def __init__(self, intent: dict[str, Any], begun: int, *, ready: int, wake: int) -> None:
        self._intent = intent
        self._begun = begun
        self._ready = ready
        self._deadline = time.monotonic() + START_SECONDS
        self._log = CriLog(intent.get("log", LOG))
        self._exit_file = _reserve_exit_file()
        self._errors = b""
        self._status = b""
        self._init_pid = 0
        self._init = -1
        self._children = -1
        self._bwrap = 0
        self._status_fd = -1
        self._streams: tuple[CriStream, ...] = ()
        self._wake = wake
        self._must_stop = False
        self._must_die = False
        self._cgroup = Cgroup(intent["cgroup"]) if intent.get("cgroup") else None
        self._mounts = SubpathMounts(**intent.get("binds") or NO_BINDS)

    def run(self) -> None:
        """Run the container until its end is recorded."""
        try:
            self._spawn()
        except OSError as error:
            message = f"{error.filename or self._intent['argv'][0]}: {error.strerror}"
            self._mounts.unmount()
            self._record(NOT_STARTED, None, "StartError", message=message)
            return
        # The kernel should kill the container before its shim; only root may lower the score.
        set_oom_score(SHIM_OOM_SCORE)
        self._pump()
        self._mounts.unmount()
        _, status, usage = os.wait4(self._bwrap, 0)
        self._drain()
        (code, number, reason), message = decode_wait_status(status), ""
        if not self._has_run(code, number):
            code, reason, message = NOT_STARTED, "StartError", self._start_error()
        elif self._cgroup and self._cgroup.has_killed():
            # Also when the program survived the loss of a child, as a kubelet reports it.
            reason = "OOMKilled"
        self._record(code, number, reason, message=message, max_rss_kib=usage.ru_maxrss)
        self._leave_cgroup()

    def _spawn(self) -> None:
        """Start bubblewrap, with its options in an anonymous file, because they contain the environment."""
        out, out_end = pipe()
        err, err_end = pipe()
        status, status_end = pipe()
        self._streams = (CriStream("stdout", out), CriStream("stderr", err))
        self._status_fd = status
        encoder = BwrapOptions(first=5, mounts=self._mounts)
        options = memory_file(encoder.encode(self._intent["options"]))
        program, *arguments = self._intent["argv"]
        argv = [program, *self._intent.get("launcher", ()), "--args", "3", "--json-status-fd", "4", *arguments]
        if network := self._intent.get("network"):
            # The shim joins too: it needs no network, and another fork would cost milliseconds.
            join_network(network)
        if self._cgroup:
            self._cgroup.create()
        enter = self._mounts.enter if self._mounts.needs_namespace else None
        with confined(self._intent.get("process") or {}):
            self._bwrap = spawn(argv, [out_end, err_end, options, status_end, *encoder.open], self._cgroup, enter)

    def _pump(self) -> None:
        """Copy output and forward signals until bubblewrap ends."""
        over = os.pidfd_open(self._bwrap)
        poll = select.poll()
        for fd in (over, self._wake, self._status_fd):
            poll.register(fd, select.POLLIN)
        while True:
            self._register_streams(poll)
            ready = {fd for fd, _ in poll.poll(self._poll_timeout())}
            if self._wake in ready:
                self._handle_signals()
            if self._status_fd in ready and not self._read_status():
                poll.unregister(self._status_fd)
            for stream in self._streams:
                if stream.fd in ready:
                    self._copy(stream)
            self._tick()
            if over in ready:
                os.close(over)
                return

    def _register_streams(self, poll: select.poll) -> None:
        """Poll the open streams; a full disk stops the reading, and so the program, and no output is lost."""
        for stream in self._streams:
            if stream.is_open and not self._log.backlog:
                poll.register(stream.fd, select.POLLIN)
            else:
                with contextlib.suppress(KeyError):
                    poll.unregister(stream.fd)

    def _poll_timeout(self) -> float | None:
        """Return for how many milliseconds nothing can be due."""
        if (self._ready >= 0 or self._must_stop) and self._init_pid:
            elapsed = time.monotonic() - self._deadline + START_SECONDS
            return min(max(elapsed * POLL_PART, POLL_SECONDS), MAX_POLL_SECONDS) * 1000
        if self._ready >= 0:
            # Bubblewrap will write the pid of its child, which wakes the poll.
            return max(self._deadline - time.monotonic(), POLL_SECONDS) * 1000
        if self._log.backlog:
            return RETRY_SECONDS * 1000
        return HOLD_SECONDS * 1000 if any(stream.partial for stream in self._streams) else None

    def _tick(self) -> None:
        moment = time.monotonic()
        if self._ready >= 0 and (self._main() or moment > self._deadline):
            self._report_ready()
        if self._mounts.is_mounted and self._init_pid and self._first_child():
            # The sandbox is complete, and has its own binds of them.
            self._mounts.unmount()
        if self._must_die:
            self._kill()
        elif self._must_stop and (main := self._main()):
            self._must_stop = False
            with contextlib.suppress(ProcessLookupError):
                os.kill(main, _chosen_signal() or self._intent.get("stopSignal") or signal.SIGTERM)
        if self._log.backlog:
            self._log.retry()
        for stream in self._streams:
            if stream.partial and moment - stream.partial_since > HOLD_SECONDS and not self._log.backlog:
                self._log.write(stream.flush(now()))

    def _copy(self, stream: CriStream) -> bool:
        """Copy one chunk into the log; False when there is none now."""
        try:
            data = os.read(stream.fd, CHUNK)
        except BlockingIOError:
            return False
        if not data:
            stream.is_open = False
            return False
        if stream is self._streams[1] and len(self._errors) < MESSAGE_BYTES:
            self._errors += data[:MESSAGE_BYTES]
        self._log.write(stream.take(data, now()))
        return True

    def _drain(self) -> None:
        """Copy what is left in the pipes; their writers are gone, so this ends."""
        for stream in self._streams:
            while stream.is_open and self._copy(stream):
                pass
            self._log.write(stream.flush(now()))
        self._read_status()
        for _ in range(10):
            if not self._log.backlog:
                return
            time.sleep(RETRY_SECONDS)
            self._log.retry()

    def _handle_signals(self) -> None:
        for number in os.read(self._wake, 512):
            self._must_stop |= number == signal.SIGTERM
            self._must_die |= number == signal.SIGQUIT

    def _leave_cgroup(self) -> None:
        """Remove the cgroups; processes that were killed, or entered by exec, may take a moment to leave them."""
        deadline = time.monotonic() + LEAVE_SECONDS
        while self._cgroup and not self._cgroup.remove() and time.monotonic() < deadline:
            time.sleep(0.01)

    def _read_status(self) -> bool:
        """Read the status of bubblewrap; False at its end."""
        try:
            data = os.read(self._status_fd, 4096)
        except BlockingIOError:
            return True
        self._status += data
        if self._init < 0 and b"\n" in self._status:
            self._init_pid = int(json.loads(self._status.split(b"\n", 1)[0])["child-pid"])
            with contextlib.suppress(ProcessLookupError):
                self._init = os.pidfd_open(self._init_pid)
        return bool(data)

    def _main(self) -> int:
        """Return the main process: the first child of the sandbox's init, once it is the user's program; else 0."""
        child = self._first_child() if self._init_pid else 0
        if not child:
            return 0
        # Without Path, because every start does this many times.
        with contextlib.suppress(OSError):
            file = os.open(f"/proc/{child}/comm", os.O_RDONLY | os.O_CLOEXEC)
            name = os.read(file, 64).strip()
            os.close(file)
            is_launcher = name in LAUNCHERS and time.monotonic() < self._deadline - START_SECONDS + LAUNCHER_SECONDS
            return 0 if is_launcher else child
        return 0

    def _first_child(self) -> int:
        """Return the oldest child of the sandbox's init; 0 while it has none, or is gone."""
        try:
            if self._children < 0:
                path = f"/proc/{self._init_pid}/task/{self._init_pid}/children"
                self._children = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            pids = os.pread(self._children, 64, 0).split()
        except FileNotFoundError:
            # Not every kernel lists children.
            return first_child(self._init_pid) if start_ticks(self._init_pid) is not None else 0
        except ProcessLookupError:
            return 0
        return int(pids[0]) if pids else 0

    def _kill(self) -> None:
        """Kill everything: all processes of a PID namespace end with its first one."""
        number = self._intent.get("endSignal", signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            if self._init >= 0:
                signal.pidfd_send_signal(self._init, number)
            else:
                os.kill(self._bwrap, number)
        self._must_die = False

    def _report_ready(self) -> None:
        if self._ready >= 0:
            with contextlib.suppress(OSError):
                os.write(self._ready, b"1")
            os.close(self._ready)
            self._ready = -1

    def _has_run(self, code: int, number: int | None) -> bool:
        """Return whether the program was executed."""
        if number is not None:
            return True
        # bubblewrap reports an exit code only after it has executed its command.
        if b'"exit-code"' not in self._status:
            return False
        return code not in (126, 127) or not self._errors.startswith(b"setpriv: failed to exec")

    def _start_error(self) -> str:
        message = self._errors[:MESSAGE_BYTES].decode(errors="replace").strip()
        is_absent = "exec" in message and message.endswith("No such file or directory")
        # The agent's message names the program and how to get it.
        return str(self._intent.get("notFound") or message) if is_absent else message

    def _record(self, code: int, number: int | None, reason: str, *, message: str = "", max_rss_kib: int = 0) -> None:
        record = {
            "exitCode": code,
            "signal": number,
            "reason": reason,
            "message": message,
            "startedAt": stamp(self._begun),
            "finishedAt": stamp(now_ns()),
            "maxRssKib": max_rss_kib,
            "lostLogBytes": len(self._log.backlog),
        }
        is_written = self._write_exit_file(encode(record))
        # Only now, so that a program that could not be executed never counts as running.
        self._report_ready()
        while not is_written:
            # The exit code must not be lost, so the shim waits until it is written, or for SIGQUIT.
            if select.select([self._wake], [], [], 1.0)[0] and signal.SIGQUIT in os.read(self._wake, 512):
                return
            is_written = self._write_exit_file(encode(record))

    def _write_exit_file(self, data: bytes) -> bool:
        try:
            os.pwrite(self._exit_file, data, 0)
            os.ftruncate(self._exit_file, len(data))
            os.fsync(self._exit_file)
            os.rename(f".{EXIT}", EXIT)
            sync_folder(".")
        except FileNotFoundError:
            return True  # The folder is gone, and no one needs the record.
        except OSError:
            return False
        return True


def _reserve_exit_file() -> int:
    """Allocate the exit record now, so that it can be written when the disk is full."""
    fd = os.open(f".{EXIT}", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):
        os.posix_fallocate(fd, 0, EXIT_FILE_BYTES)
    return fd


def _catch_signals() -> int:
    """Return a pipe that gets a byte for every signal; none of them ends the shim."""
    wake, end = pipe()
    os.set_blocking(end, False)
    signal.set_wakeup_fd(end, warn_on_full_buffer=False)
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    return wake


def _chosen_signal() -> int:
    """Return the signal in the stop request; 0 for the container's own."""
    with contextlib.suppress(OSError, ValueError):
        return int((Path(STOP_REQUEST).read_text().split()[1:] or ["0"])[0])
    return 0


def first_child(pid: int) -> int:
    """Return the oldest child of a process; 0 when it has none."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        # Not every kernel lists children.
        pids = sorted(int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
        return next((child for child in pids if _stat(child)[1:2] == [str(pid).encode()]), 0)
    return int(children[0]) if children else 0
