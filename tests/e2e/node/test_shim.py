"""Real containers under real shims: run once, keep every byte, end for good, and leave a true record."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from paceline.node.runtime import confinement, cri_log, shim
from paceline.node.volumes.volumes import PodVolume, VolumeMount
from paceline.testing.embedded import arguments, open_files
from tests.e2e.support.containers import HOST, SECONDS, python


@pytest.mark.parametrize(
    ("command", "code", "reason"),
    [
        (("true",), 0, "Completed"),
        (("false",), 1, "Error"),
        (("sh", "-c", "exit 42"), 42, "Error"),
        (("sh", "-c", "exit 255"), 255, "Error"),
        (("sh", "-c", "kill -KILL $$"), 137, "Error"),
        (("sh", "-c", "kill -SEGV $$"), 139, "Error"),
        (("sh", "-c", "kill -TERM $$"), 143, "Error"),
    ],
)
async def test_the_exit_code_is_the_programs_own(container, command, code, reason):
    ended = await (await container(*command).start()).end()

    assert (ended.exit_code, ended.reason, ended.message) == (code, reason, "")
    assert ended.started_at < ended.finished_at


async def test_a_program_that_is_not_there_is_a_start_error_that_names_it(container):
    box = await container("no-such-program", "x").start()

    # `start` returns after the record, so that nobody takes such a container for a running one.
    assert (box.ended.exit_code, box.ended.reason) == (128, "StartError")
    assert box.ended.message == "no-such-program: not found in environment host"


async def test_a_sandbox_that_cannot_be_made_is_a_start_error_with_its_reason(container, tmp_path):
    box = container("true", hosts=tmp_path / "nowhere")
    await box.start()

    assert (box.ended.exit_code, box.ended.reason) == (128, "StartError")
    assert "nowhere" in box.ended.message


async def test_sigterm_reaches_the_program_which_may_take_its_leave(container):
    box = await container("sh", "-c", "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done").start()
    await box.says(b"up")

    box.signal(signal.SIGTERM)

    assert (await box.end()).exit_code == 3
    assert await box.output() == b"up\nbye\n"


async def test_a_program_that_does_not_listen_is_ended_by_sigquit(container):
    box = await container("sh", "-c", "trap '' TERM; echo up; while :; do sleep 0.05; done").start()
    await box.says(b"up")

    box.signal(signal.SIGTERM)
    assert box.world.processes.alive(box.identity)
    box.signal(signal.SIGQUIT)

    assert (await box.end()).exit_code == 137


HIDES = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print("up", flush=True)
        for fd in range(3):
            os.close(fd)
        time.sleep(3600)
    os._exit(0)
time.sleep(3600 if sys.argv[1] == "stay" else 0)
"""


@pytest.mark.parametrize("ending", ["leave", "killed", "shim killed"])
async def test_nothing_outlives_the_container_however_it_hides(container, tmp_path, ending):
    """A grandchild in a session of its own ends with the program, with the container, and with the shim."""
    stays = "leave" if ending == "leave" else "stay"
    box = container("python", "-c", HIDES, stays, env=(("MARK", str(tmp_path)),))
    await box.start()
    if ending != "leave":
        await box.says(b"up")
        assert len(marked(tmp_path)) >= 2
        box.signal(signal.SIGKILL if ending == "shim killed" else signal.SIGQUIT)
        await box.world.processes.ended(box.identity)

    await until(lambda: not marked(tmp_path))


async def until(condition):
    """Wait for the machine, which sends no events."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - see above
            await asyncio.sleep(0.01)


def marked(mark):
    """Find the live processes that carry a mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"MARK={mark}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


async def test_a_killed_shim_leaves_a_start_without_an_end(container):
    box = await container("sleep", "3600").start()

    box.signal(signal.SIGKILL)
    async with asyncio.timeout(SECONDS):
        await box.world.processes.ended(box.identity)

    assert box.ended is None
    assert not box.world.processes.holds(box.folder)


SPEAKS = """
import sys, zlib
out = sys.stdout.buffer
err = sys.stderr.buffer
for number in range(100_000):
    out.write(b"out %d\\n" % number)
    err.write(b"err %d\\n" % number)
out.write(b"x" * 65_536 + b"\\n")
out.write(b"r" * 100 + b"\\r" + b"no end")
"""


async def test_every_byte_is_in_the_log_in_the_order_of_its_stream(container):
    box = await container(*python(SPEAKS)).start()
    await box.end()

    entries = (box.folder / shim.LOG).read_bytes().split(b"\n")
    assert entries.pop() == b""
    streams = {b"stdout": bytearray(), b"stderr": bytearray()}
    for entry in entries:
        _stamp, stream, tag, content = entry.split(b" ", 3)
        streams[stream] += content + (b"\n" if tag == b"F" else b"")
        assert len(content) <= cri_log.LINE_LIMIT
    expected = b"".join(b"out %d\n" % number for number in range(100_000))
    expected += b"x" * 65_536 + b"\n" + b"r" * 100 + b"\r" + b"no end"
    assert zlib.crc32(streams[b"stdout"]) == zlib.crc32(expected)
    assert bytes(streams[b"stderr"]) == expected[: len(expected) - 65_537 - 107].replace(b"out", b"err")


async def test_what_was_said_without_a_newline_is_shown_while_the_program_runs(container):
    """A progress bar never ends its line; it is shown all the same."""
    box = await container("sh", "-c", "printf 'epoch 1'; exec sleep 3600").start()

    await box.says(b"epoch 1")
    box.signal(signal.SIGQUIT)

    await box.end()
    assert await box.output() == b"epoch 1"


async def test_a_try_runs_once_however_often_it_is_started(container, tmp_path):
    ledger = tmp_path / "ledger"
    box = container("sh", "-c", "echo ran >> /ledger", mounts=(mount(ledger, "/ledger"),))
    intent = (box.folder / shim.INTENT).read_bytes()
    await asyncio.gather(*(box.start() for _ in range(8)))
    await box.end()
    # Also with the intent back, as an agent would leave it that died at the wrong moment.
    (box.folder / shim.INTENT).write_bytes(intent)
    await box.start()

    assert ledger.read_text() == "ran\n"
    # It may hold secrets.
    assert not (box.folder / shim.INTENT).exists()


def mount(file, target):
    file.touch()
    return VolumeMount(target=target, volume=PodVolume(source=file))


async def test_the_intent_goes_with_the_start_because_it_may_hold_secrets(container):
    box = await container("sleep", "3600", env=(("TOKEN", "canary-7f3a"),)).start()

    left = [path.name for path in box.folder.iterdir() if b"canary-7f3a" in path.read_bytes()]
    said = [word for pid in family(box.identity.pid) for word in arguments(pid)]
    box.signal(signal.SIGQUIT)
    await box.end()

    assert left == []
    assert said
    assert not any("canary-7f3a" in word for word in said)


def family(pid):
    """Give a process and everything below it."""
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return  # It has ended meanwhile.
    for child in children:
        yield from family(int(child))


async def test_a_program_that_signals_its_group_does_not_reach_its_keeper(container):
    box = await container("sh", "-c", "trap 'exit 5' TERM; kill -TERM 0; exit 6").start()

    assert (await box.end()).exit_code in (5, 6)


DIES = """
import asyncio, os, signal, sys
from pathlib import Path
from paceline.host.effects import real_world

async def main():
    await real_world().processes.start(Path(sys.argv[1]))
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_a_container_outlives_the_agent_and_its_record_waits(container):
    box = container("sh", "-c", "read line < /gate; echo $line; exit 9", mounts=())
    gate = box.folder / "gate"
    os.mkfifo(gate)
    box = container("sh", "-c", "read line < /gate; echo $line; exit 9", mounts=(mount(gate, "/gate"),))
    agent = await asyncio.create_subprocess_exec(sys.executable, "-c", DIES, str(box.folder))
    assert await agent.wait() == -signal.SIGKILL

    # Nobody is there now; the next agent finds it by its lock and its identity.
    assert box.world.processes.holds(box.folder)
    assert box.world.processes.alive(box.identity)
    gate.write_text("said meanwhile\n")

    assert (await box.end()).exit_code == 9
    assert await box.output() == b"said meanwhile\n"
    assert not box.world.processes.holds(box.folder)


async def test_the_zygote_may_die_and_the_next_start_makes_another(container):
    first = await container("sleep", "3600", name="0").start()
    os.kill(first.world.processes._zygote.pid, signal.SIGKILL)

    second = await container("true", name="1").start()

    assert (await second.end()).exit_code == 0
    assert first.world.processes.alive(first.identity)
    first.signal(signal.SIGQUIT)
    await first.end()


async def test_a_shim_has_nothing_open_that_was_not_its_own(container, tmp_path):
    with (tmp_path / "foreign").open("w") as foreign:
        os.set_inheritable(foreign.fileno(), True)  # noqa: FBT003 - the standard library's own
        box = await container("sleep", "3600").start()
        opened = open_files(box.identity.pid)
        box.signal(signal.SIGQUIT)
        await box.end()

    assert not any("foreign" in name or "socket:" in name for name in opened)


async def test_the_container_gets_the_usual_signals_and_rights(container):
    code = (
        "import os, signal; print(signal.getsignal(signal.SIGPIPE), oct(os.umask(0)), open('/proc/self/status').read())"
    )
    box = await container(*python(code)).start()
    await box.end()
    said = (await box.output()).decode()

    fields = dict(line.split(":\t", 1) for line in said.splitlines()[1:] if ":\t" in line)
    assert "0o22" in said
    assert int(fields["SigBlk"], 16) == 0
    # Python itself ignores SIGPIPE and SIGXFSZ; of the others, only those that the C library keeps to itself are.
    assert int(fields["SigIgn"], 16) & 0x7FFFFFFF == (1 << signal.SIGPIPE - 1) | (1 << signal.SIGXFSZ - 1)
    assert int(fields["CapEff"], 16) == 0
    assert fields["NoNewPrivs"] == "1"


async def test_a_container_runs_as_the_user_it_asks_for(container):
    if not HOST.is_root:
        return  # Only root can become another user.
    code = (
        "import os, pathlib; print(os.getuid(), os.getgid(), os.getgroups(), open('/proc/self/status').read());"
        "print(open('/etc/hosts').read()); pathlib.Path.home().joinpath('mine').touch()"
    )
    box = await container(*python(code), user=confinement.User(uid=1234, gid=5678)).start()
    ended = await box.end()
    said = (await box.output()).decode()

    assert ended.exit_code == 0, said
    assert said.startswith("1234 5678 []")
    assert "CapEff:\t0000000000000000" in said


async def test_a_missing_program_is_named_also_for_another_user(container):
    if not HOST.is_root:
        return
    box = await container("no-such-program", user=confinement.User(uid=1234, gid=5678)).start()

    assert (box.ended.exit_code, box.ended.reason) == (128, "StartError")
    assert "no-such-program" in box.ended.message


async def test_the_last_words_of_a_program_are_in_its_record(container):
    box = await container("sh", "-c", "printf 'out of tea' > /dev/termination-log; exit 1").start()

    assert (await box.end()).message == "out of tea"


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 1 MiB, and a way to make it larger; None where only root could have one."""
    if not HOST.is_root:
        yield None
        return
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", disk], check=True)
    try:
        yield disk, lambda: subprocess.run(["mount", "-o", "remount,size=64m", disk], check=True)
    finally:
        # Lazily: a test that failed must not leave it behind.
        subprocess.run(["umount", "-l", disk], check=True)


async def test_a_full_disk_stops_the_program_and_loses_nothing(container, small_disk):
    """The program waits until there is room again; its output and its end are complete."""
    if small_disk is None:
        return
    disk, enlarge = small_disk
    box = await container(*python("for i in range(100_000): print(i)"), root=disk).start()
    await until(lambda: not os.statvfs(disk).f_bavail)
    assert box.world.processes.alive(box.identity)

    enlarge()

    assert (await box.end()).exit_code == 0
    assert await box.output() == b"".join(b"%d\n" % i for i in range(100_000))
    assert json.loads((box.folder / shim.EXIT).read_bytes())["lostLogBytes"] == 0


def fill(path):
    """Write until the disk is full."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(fd, b"\0" * 4096)
    except OSError:
        os.close(fd)


async def test_the_end_is_on_record_although_the_disk_is_full(container, small_disk):
    """The room for the record is taken at the start."""
    if small_disk is None:
        return
    disk, _ = small_disk
    box = await container("sleep", "3600", root=disk).start()
    fill(disk / "ballast")

    box.signal(signal.SIGQUIT)

    assert (await box.end()).exit_code == 137
