"""A real registry of images, Debian's docker-registry, from which real nodes pull."""

import json
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from paceline.errors import HostError
from paceline.testing.real.kube import running

_START_SECONDS = 30.0
_POLL_SECONDS = 0.05


@contextmanager
def real_registry(address: str) -> Iterator[None]:
    """Run an empty registry at HOST:PORT, without certificate; it and its images end with the block."""
    program = shutil.which("docker-registry")
    if program is None:
        raise HostError("there is no docker-registry; type: tools/setup registry")
    with TemporaryDirectory(prefix="paceline-registry-") as folder:
        config = Path(folder, "config.yml")
        storage = {"filesystem": {"rootdirectory": f"{folder}/images"}}
        config.write_text(json.dumps({"version": 0.1, "storage": storage, "http": {"addr": address}}))
        with running((program, "serve", str(config)), Path(folder, "log")):
            _wait(address)
            yield


def _wait(address: str) -> None:
    host, _, port = address.rpartition(":")
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
        except OSError as error:
            if time.monotonic() > deadline:
                raise HostError(f"the registry at {address} did not start: {error}") from error
            time.sleep(_POLL_SECONDS)
        else:
            return
