"""A real S3 server: moto's, in an environment of its own (`tools/setup moto`), which can be killed and come back."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from paceline.errors import HostError

START_SECONDS = 60.0
LOOK_SECONDS = 0.05
KEY_ID, KEY = "AKIATESTTESTTEST", "very-secret-key-of-a-bucket"


@dataclass(slots=True, kw_only=True)
class S3Server:
    """The server, which keeps its objects in memory: what it loses by a kill, only a proxy in front could keep."""

    program: Path
    host: str
    port: int
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    @property
    def address(self) -> str:
        """Give the address to be used as endpoint."""
        return f"http://{self.host}:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        command = [str(self.program), "-H", self.host, "-p", str(self.port)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _await(self._process, self._answers, "the S3 server")

    def kill(self) -> None:
        """End it at once."""
        _end(self._process)
        self._process = None

    def make_bucket(self, name: str) -> None:
        """Make a bucket."""
        request = urllib.request.Request(f"{self.address}/{name}", method="PUT")  # noqa: S310 - loopback
        with urllib.request.urlopen(request):  # noqa: S310
            return

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.address}/moto-api/", timeout=5):  # noqa: S310 - loopback
                return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False


def find_moto() -> Path | None:
    """Find moto's server: PACELINE_MOTO names the environment, as `tools/setup moto` prints it."""
    chosen = os.environ.get("PACELINE_MOTO")
    usual = sorted((Path.home() / ".cache" / "paceline").glob("moto-*"))
    for folder in [Path(chosen)] if chosen else usual:
        if (folder / "bin" / "moto_server").exists():
            return folder / "bin" / "moto_server"
    return None


@contextlib.contextmanager
def s3_server(*, host: str = "127.0.0.1") -> Iterator[S3Server]:
    """Run a server until the end of the block."""
    program = find_moto()
    if program is None:
        raise HostError("there is no S3 server; type: tools/setup moto")
    with _kept_port(host) as port:
        server = S3Server(program=program, host=host, port=port)
        try:
            server.start()
            yield server
        finally:
            server.kill()


@dataclass(slots=True, kw_only=True)
class Front:
    """A process in front of a server, through which everybody speaks to it.

    Whoever is killed here takes every half-said word with it, as a store does whose disks outlive its processes.
    """

    server: S3Server
    port: int
    _process: "subprocess.Popen[bytes] | None" = field(default=None, init=False)

    @property
    def address(self) -> str:
        """Give the address to be used as endpoint."""
        return f"http://{self.server.host}:{self.port}"

    def start(self) -> None:
        """Start it, and wait until it listens."""
        listen, to = (self.server.host, str(self.port)), (self.server.host, str(self.server.port))
        self._process = subprocess.Popen([sys.executable, "-c", RELAY, *listen, *to])
        _await(self._process, self._listens, "the front of the S3 server")

    def kill(self) -> None:
        """End it at once."""
        _end(self._process)
        self._process = None

    def _listens(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection((self.server.host, self.port), timeout=1):
            return True
        return False


@contextlib.contextmanager
def _kept_port(host: str) -> Iterator[int]:
    """Keep a port: bound and never listened at, it is given to nobody else, also while its server is away."""
    with socket.socket() as keeper:
        # As the servers set it, too: only so may they listen there.
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind((host, 0))
        yield int(keeper.getsockname()[1])


def _await(process: "subprocess.Popen[bytes]", is_up: Callable[[], bool], name: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not is_up():
        if time.monotonic() > deadline or process.poll() is not None:
            raise HostError(f"{name} did not start")
        time.sleep(LOOK_SECONDS)


def _end(process: "subprocess.Popen[bytes] | None") -> None:
    if process is not None:
        process.kill()
        process.wait()


# HOST PORT HOST PORT: passes every connection to the first pair on to the second.
RELAY = """
import asyncio, contextlib, sys

async def pump(reader, writer):
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()

async def meet(reader, writer):
    there, back = await asyncio.open_connection(sys.argv[3], int(sys.argv[4]))
    await asyncio.gather(pump(reader, back), pump(there, writer))

async def main():
    server = await asyncio.start_server(meet, sys.argv[1], int(sys.argv[2]))
    await server.serve_forever()

asyncio.run(main())
"""


@contextlib.contextmanager
def in_front_of(server: S3Server) -> Iterator[Front]:
    """Run a front until the end of the block."""
    with _kept_port(server.host) as port:
        front = Front(server=server, port=port)
        try:
            front.start()
            yield front
        finally:
            front.kill()
