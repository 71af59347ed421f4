"""Commands in running containers: who may be asked to run one, and what is to be run."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from paceline.effects import ProcessHandle
from paceline.errors import HostError
from paceline.node.host_info import Host
from paceline.node.runtime.confinement import User, filter_of
from paceline.node.runtime.sandbox import Launch, variables

# Which output a piece comes from; the numbers that the wire has for them too.
STDOUT, STDERR = 1, 2


class NotRun(HostError):
    """A command could not be run in a container; the words are a container runtime's."""


class Gone(NotRun):
    """The container has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One command to be run in a container."""

    # The shim that keeps the container.
    shim: ProcessHandle
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    folder: str = "/"
    user: User | None = None
    has_terminal: bool = False
    has_input: bool = False
    # The container's own system call filter, in hexadecimal digits; empty when it has none.
    filter: str = ""
    oom_score: int | None = None


class Command(Protocol):
    """A command that runs in a container."""

    def output(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Give what it writes, with where it wrote it to, until it has ended."""
        ...

    async def write(self, data: bytes) -> None:
        """Give it something to read; one that no longer reads is given nothing."""
        ...

    def end_input(self) -> None:
        """Let it read the end of its input."""
        ...

    def resize(self, width: int, height: int) -> None:
        """Tell it how large its terminal is now."""
        ...

    async def code(self) -> int:
        """Wait for its end and give its exit code."""
        ...

    def close(self) -> None:
        """End it and all that it started, if it still runs."""
        ...


# Starts a command; NotRun says why it cannot be run.
Run = Callable[[Order], Awaitable[Command]]


def order_for(launch: Launch, host: Host, *, shim: ProcessHandle, argv: tuple[str, ...], has_terminal: bool) -> Order:
    """Say how a command runs in a container: with its environment, in its folder, as its user."""
    env = variables(launch, host)
    if has_terminal:
        env = {"TERM": "xterm", **env}
    return Order(
        shim=shim,
        argv=argv,
        env=tuple(env.items()),
        folder=launch.working_dir or "/",
        user=launch.user,
        has_terminal=has_terminal,
        filter=filter_of(launch.confinement, launch.capabilities, host),
        oom_score=launch.confinement.oom_score,
    )
