"""Commands in running containers: the request for one, the protocol of a running one, and its errors."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from paceline.effects import ProcessHandle
from paceline.errors import HostError
from paceline.node.host_info import User

# The output that a chunk comes from; the wire protocol has the same numbers.
STDOUT, STDERR = 1, 2


class ExecError(HostError):
    """A command could not be run in a container; the message is worded as a container runtime's."""


class ContainerGone(ExecError):
    """The container has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecRequest:
    """One command to run in a container."""

    # The shim of the container.
    shim: ProcessHandle
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    folder: str = "/"
    user: User | None = None
    has_terminal: bool = False
    has_input: bool = False
    # The container's system call filter in hexadecimal digits; empty when it has none.
    filter: str = ""
    oom_score: int | None = None


class ExecProcess(Protocol):
    """A command that runs in a container."""

    def output(self) -> AsyncGenerator[tuple[int, bytes], None]:
        """Yield chunks of output, each with STDOUT or STDERR, until the command ends."""
        ...

    async def write(self, data: bytes) -> None:
        """Write to its input; does nothing once the command has closed it."""
        ...

    def end_input(self) -> None:
        """Close its input."""
        ...

    def resize(self, width: int, height: int) -> None:
        """Set the size of its terminal."""
        ...

    async def code(self) -> int:
        """Wait for its end and return its exit code."""
        ...

    def close(self) -> None:
        """Kill it and its descendants, if it still runs."""
        ...


# Starts a command; ExecError says why it cannot be run.
RunExec = Callable[[ExecRequest], Awaitable[ExecProcess]]
