"""A real kube-apiserver, so that tests can hold ours against the original.

No controller manager, scheduler or kubelet runs beside it: objects are checked, stored and
watched, but nothing collects owned objects, finishes a namespace or starts a pod.
"""

import base64
import http.client
import json
import os
import secrets
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from paceline.errors import HostError

KUBERNETES_VERSION = "v1.34.4"
ETCD_VERSION = "v3.6.6"

_LOOPBACK = "127.0.0.1"
_START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_LAST_WORDS_CHARS = 2000

Process = subprocess.Popen[bytes]


@dataclass(slots=True, kw_only=True)
class ServerPrograms:
    """etcd and kube-apiserver; `start` and `kill` in turn."""

    home: Path
    # What runs, by the name of the program.
    commands: Mapping[str, Sequence[str]]
    _running: list[AbstractContextManager[Process]] = field(init=False, default_factory=list)

    def start(self, kube: "RealKube") -> None:
        """Start both, and return once the server is ready."""
        processes = {}
        for name, command in self.commands.items():
            self._running.append(running(command, self.home / f"{name}.log"))
            processes[name] = self._running[-1].__enter__()
        _wait_until_ready(kube, processes, self.home)

    def kill(self) -> None:
        """End both as kill -9 does; what they have stored stays."""
        while self._running:
            self._running.pop().__exit__(None, None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RealKube:
    """How to reach a running server as a member of system:masters."""

    server: str
    ca_file: Path
    token: str
    kubeconfig: Path
    # Where its database answers.
    etcd: str = ""
    programs: ServerPrograms = field(default_factory=lambda: ServerPrograms(home=Path(), commands={}))

    def get(self, path: str) -> tuple[int, bytes]:
        """Status and body of one GET; status 0 when nothing answers."""
        try:
            context = ssl.create_default_context(cafile=self.ca_file)
            host = self.server.removeprefix("https://")
            connection = http.client.HTTPSConnection(host, context=context, timeout=10)
            try:
                connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
                response = connection.getresponse()
                return response.status, response.read()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException):
            return 0, b""

    def kill(self) -> None:
        """End the server and its database as kill -9 does."""
        self.programs.kill()

    def start(self) -> None:
        """Start them again with what they have stored, and return once the server is ready."""
        self.programs.start(self)

    def compact(self) -> None:
        """Have the database forget everything but the present, as it does by itself every few minutes."""
        host = self.etcd.removeprefix("http://")
        key = base64.b64encode(b"/").decode()
        at = int(_post(host, "/v3/kv/range", {"key": key, "limit": "1"})["header"]["revision"])
        _post(host, "/v3/kv/compaction", {"revision": str(at), "physical": True})


def find_assets() -> Path | None:
    """The folder that holds kube-apiserver and etcd, or None; `tools/kube/build` makes one."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    cache = Path(os.environ.get("PACELINE_CACHE") or home / "paceline")
    built = cache / "kube" / f"{KUBERNETES_VERSION}-{ETCD_VERSION}"
    configured = os.environ.get("KUBEBUILDER_ASSETS")
    for folder in (Path(configured), built) if configured else (built,):
        if all(os.access(folder / name, os.X_OK) for name in ("kube-apiserver", "etcd")):
            return folder
    return None


# Nobody beside a lone server makes the default service account, and without it every pod is refused.
ALONE = ("--disable-admission-plugins=ServiceAccount",)


@contextmanager
def real_kube(assets: Path, flags: Sequence[str] = ALONE, *, address: str = _LOOPBACK) -> Iterator[RealKube]:
    """Run a fresh server with the programs of `assets`; it and its files end with the block.

    With another address than loopback, pods reach it by the service `kubernetes`.
    """
    with ExitStack() as stack:
        home = Path(stack.enter_context(TemporaryDirectory(prefix="paceline-kube-")))
        client, peer = (stack.enter_context(_reserved_port(_LOOPBACK)) for _ in range(2))
        secure = stack.enter_context(_reserved_port(address))
        commands = {
            "etcd": (str(assets / "etcd"), *_etcd_flags(home, client=client, peer=peer)),
            "kube-apiserver": (
                str(assets / "kube-apiserver"),
                *_apiserver_flags(home, etcd=client, address=address, port=secure),
                *flags,
            ),
        }
        programs = ServerPrograms(home=home, commands=commands)
        access = _write_access(home, address, secure)
        kube = replace(access, etcd=f"http://{_LOOPBACK}:{client}", programs=programs)
        stack.callback(kube.kill)
        kube.start()
        yield kube


def _post(host: str, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
    connection = http.client.HTTPConnection(host, timeout=10)
    try:
        connection.request("POST", path, json.dumps(body))
        response = connection.getresponse()
        data = response.read()
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise HostError(f"etcd refused {path}: {response.status} {data.decode(errors='replace')}")
    answer: dict[str, Any] = json.loads(data)
    return answer


@contextmanager
def _reserved_port(address: str) -> Iterator[int]:
    """A port that nobody else is given meanwhile.

    A bound socket that never listens keeps the number; the servers share it by SO_REUSEPORT.
    """
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        keeper.bind((address, 0))
        yield keeper.getsockname()[1]


def _write_access(home: Path, address: str, port: int) -> RealKube:
    kube = RealKube(
        server=f"https://{address}:{port}",
        ca_file=home / "apiserver.crt",
        token=secrets.token_urlsafe(24),
        kubeconfig=home / "kubeconfig",
    )
    (home / "tokens.csv").write_text(f"{kube.token},admin,admin,system:masters\n")
    cluster = {"server": kube.server, "certificate-authority": str(kube.ca_file)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "real", "cluster": cluster}],
        "users": [{"name": "admin", "user": {"token": kube.token}}],
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
        "current-context": "real",
    }
    kube.kubeconfig.write_text(json.dumps(config))
    return kube


def _etcd_flags(home: Path, *, client: int, peer: int) -> tuple[str, ...]:
    client_url, peer_url = f"http://{_LOOPBACK}:{client}", f"http://{_LOOPBACK}:{peer}"
    return (
        f"--data-dir={home / 'etcd'}",
        f"--listen-client-urls={client_url}",
        f"--advertise-client-urls={client_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--socket-reuse-port",
        "--unsafe-no-fsync",
    )


def _apiserver_flags(home: Path, *, etcd: int, address: str, port: int) -> tuple[str, ...]:
    return (
        f"--etcd-servers=http://{_LOOPBACK}:{etcd}",
        f"--bind-address={address}",
        f"--advertise-address={address}",
        f"--secure-port={port}",
        "--permit-port-sharing",
        # It writes apiserver.crt (with the authority in it) and apiserver.key there by itself.
        f"--cert-dir={home}",
        f"--token-auth-file={home / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        # As in every cluster that runs jobs; and who says nothing of themselves is nobody.
        "--allow-privileged",
        "--anonymous-auth=false",
        f"--service-account-key-file={home / 'apiserver.crt'}",
        f"--service-account-signing-key-file={home / 'apiserver.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-cluster-ip-range=10.96.0.0/16",
        # Loopback is no address for an endpoint.
        *(("--endpoint-reconciler-type=none",) if address == _LOOPBACK else ()),
    )


@contextmanager
def running(command: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> Iterator[Process]:
    """Run a program until the block ends, with what it says in `log`."""
    # Even a killed test run must not leave servers behind, hence a signal when the parent ends.
    setpriv = shutil.which("setpriv")
    wrapper = (setpriv, "--pdeathsig", "KILL", "--") if setpriv else ()
    with log.open("wb") as out:
        # No environment, because etcd takes ETCD_* variables for flags.
        process = subprocess.Popen(
            (*wrapper, *command), stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env or {}
        )
    try:
        yield process
    finally:
        # Nothing of it is kept, so a graceful end would only cost seconds.
        process.kill()
        process.wait()


def _wait_until_ready(kube: RealKube, processes: Mapping[str, Process], home: Path) -> None:
    """Return once the server is ready and has made the default namespace, which comes later."""
    deadline = time.monotonic() + _START_SECONDS
    awaited = ["/readyz", "/api/v1/namespaces/default"]
    while awaited:
        for name, process in processes.items():
            if process.poll() is not None:
                problem = f"it ended with code {process.returncode}"
                raise HostError(_last_words(home, name, problem))
        if time.monotonic() > deadline:
            problem = f"{awaited[0]} is not there after {_START_SECONDS:.0f} seconds"
            raise HostError(_last_words(home, "kube-apiserver", problem))
        if kube.get(awaited[0])[0] == http.client.OK:
            awaited.pop(0)
        else:
            time.sleep(_POLL_SECONDS)


def _last_words(home: Path, name: str, problem: str) -> str:
    log = (home / f"{name}.log").read_text(errors="replace")
    return f"the real {name} did not start: {problem}; it said:\n{log[-_LAST_WORDS_CHARS:]}"
