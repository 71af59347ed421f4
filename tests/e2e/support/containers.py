"""Containers under real shims, for tests: made, started, waited for."""

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from paceline.cluster.host_facts import find_sandbox, look_at_host
from paceline.effects import Effects
from paceline.host.effects import real_world
from paceline.node.images import Images
from paceline.node.lifecycle.starter import binds_of
from paceline.node.lifecycle.state_files import read_ended, read_started
from paceline.node.logs.logs import LogQuery, read_log
from paceline.node.network.pod_hosts import HEAD
from paceline.node.runtime import cgroup_limits, sandbox, shim
from paceline.testing.sim.processes import StaticEnvironments

SECONDS = 60
HOST = look_at_host()


@dataclass(frozen=True)
class Container:
    """One container's folder, and what can be done to it."""

    world: Effects
    folder: Path

    async def start(self):
        await self.world.processes.start(self.folder)
        return self

    async def end(self):
        """Wait for the end and give its record."""
        async with asyncio.timeout(SECONDS):
            await self.world.processes.ended(self.identity)
        return self.ended

    @property
    def identity(self):
        return read_started(self.world.files, self.folder).identity

    @property
    def ended(self):
        return read_ended(self.world.files, self.folder)

    def signal(self, number):
        self.world.processes.signal(self.identity, number)

    async def output(self):
        return b"".join([chunk async for chunk in read_log(self.world.files, self.folder, LogQuery())])

    async def says(self, text):
        """Wait until the container has written this."""
        async with asyncio.timeout(SECONDS):
            async for chunk in read_log(self.world.files, self.folder, LogQuery(follow=True)):
                if text in chunk:
                    return
        raise AssertionError(f"it ended without saying {text!r}: {self.ended}")


@asynccontextmanager
async def machine():
    """This machine, with a zygote that goes afterwards."""
    world = real_world()
    try:
        yield world
    finally:
        world.processes.close()


def launch_limits(held_to, folder):
    if not held_to:
        return None
    return cgroup_limits.intent_of(
        HOST.cgroups, cgroup_limits.CgroupLimits(**held_to), name=f"{folder.parent.name}.main.0"
    )


def prepare(world, root, command, *, name="0", held_to=None, **launch):
    folder, etc = root / name, root / "etc"
    world.files.make_folder(folder)
    world.files.make_folder(etc)
    images = Images(rows=(), environments=StaticEnvironments(), host=HOST, files=world.files)
    environment = images.environment_of({"image": "python"})
    world.files.overwrite(etc / "hosts", HEAD.encode())
    world.files.overwrite(folder / "message", b"", 0o666)
    plan = sandbox.ContainerConfig(
        **{
            "hostname": "box",
            "environment": environment,
            "env": (),
            "command": command,
            "mounts": (),
            "hosts": etc / "hosts",
            "message": folder / "message",
            **launch,
        }
    )
    intent = {
        "cgroup": launch_limits(held_to, folder),
        "process": sandbox.process_of(plan, HOST),
        "argv": [find_sandbox(), "--", *sandbox.command(plan, HOST)],
        "options": sandbox.options(plan, HOST),
        "environment": "host",
        "binds": binds_of(plan, root / "mounts" if HOST.may_mount else None),
        "notFound": f"{command[0]}: not found in environment host",
    }
    world.files.overwrite(folder / shim.INTENT, shim.encode(intent), 0o600)
    return Container(world, folder)


def python(code):
    return ("python", "-c", code)
