"""Run a command in a running container to its end, for probes and hooks."""

from contextlib import aclosing, closing
from dataclasses import dataclass

from paceline.apimachinery.meta import Object, uid_of
from paceline.node.host_info import CannotStart
from paceline.node.lifecycle.snapshot import containers_of, latest_folder
from paceline.node.lifecycle.starter import Starter
from paceline.node.runtime.exec_types import Gone, NotRun, Run, order_for
from paceline.node.runtime.state_files import read_started

# What a command may say; the rest is read and forgotten.
MAX_OUTPUT = 10 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInside:
    """Knows the containers of this machine and the way into them."""

    starter: Starter
    command: Run

    async def run(self, pod: Object, container: str, argv: tuple[str, ...]) -> tuple[int, bytes]:
        """Run a command; NotRun says why it cannot be run."""
        try:
            return await self._run(pod, container, argv)
        except CannotStart as error:
            raise NotRun(str(error)) from error

    async def _run(self, pod: Object, container: str, argv: tuple[str, ...]) -> tuple[int, bytes]:
        world, folders = self.starter.world, self.starter.folders
        spec = next(each for each in containers_of(pod) if each["name"] == container)
        folder = latest_folder(world, folders, uid_of(pod), container)
        started = read_started(world.files, folder) if folder else None
        if started is None or started.identity is None:
            raise Gone(f"container {container} does not run")
        launch = await self.starter.launch(pod, spec)
        order = order_for(launch, self.starter.host, shim=started.identity, argv=argv, has_terminal=False)
        output = b""
        with closing(await self.command(order)) as running:
            async with aclosing(running.output()) as pieces:
                async for _, data in pieces:
                    output = (output + data)[:MAX_OUTPUT]
            return await running.code(), output
