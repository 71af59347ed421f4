"""A real git server over HTTP: git's own http-backend, with repositories that are public or ask for a password."""

import base64
import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PRIVATE = "private"


@dataclass(frozen=True, slots=True, kw_only=True)
class GitServer:
    """Serves every repository below a folder; those in `private/` only to whoever knows the password."""

    root: Path
    address: str
    user: str
    password: str
    # What was asked for, so that a test can tell who came.
    requests: list[str] = field(default_factory=list)
    # While it is not set, whoever was let in waits for the answer.
    gate: threading.Event = field(default_factory=threading.Event)

    def url(self, name: str) -> str:
        """Give the address of a repository."""
        return f"{self.address}/{name}.git"

    def commit(self, name: str, files: dict[str, str], *, branch: str = "main", tag: str = "") -> str:
        """Put files into a repository as one commit on a branch, and give the commit."""
        bare, work = self.root / f"{name}.git", self.root / "work" / name
        if not bare.exists():
            _git(self.root, "init", "--quiet", "--bare", f"--initial-branch={branch}", str(bare))
            _git(self.root, "init", "--quiet", f"--initial-branch={branch}", str(work))
        for path, text in files.items():
            (work / path).parent.mkdir(parents=True, exist_ok=True)
            (work / path).write_text(text)
        _git(work, "checkout", "--quiet", "-B", branch)
        _git(work, "add", "--all")
        _git(work, "commit", "--quiet", "--allow-empty", "--message", "files")
        if tag:
            _git(work, "tag", "--annotate", "--message", tag, tag)
        _git(work, "push", "--quiet", "--force", "--follow-tags", str(bare), branch)
        return _git(work, "rev-parse", "HEAD").strip()


@contextlib.contextmanager
def git_server(root: Path, *, host: str = "127.0.0.1", password: str = "correct-horse-battery") -> Iterator[GitServer]:  # noqa: S107 - of a server that lives as long as a test
    """Serve a folder of repositories until the end of the block."""
    servers: list[GitServer] = []
    handler = _handler(servers)
    with ThreadingHTTPServer((host, 0), handler) as server:
        address = f"http://{host}:{server.server_address[1]}"
        servers.append(GitServer(root=root, address=address, user="reader", password=password))
        servers[0].gate.set()
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield servers[0]
        finally:
            server.shutdown()
            thread.join()


def _handler(servers: list[GitServer]) -> type[BaseHTTPRequestHandler]:
    class GitHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve()

        def do_POST(self) -> None:
            self._serve()

        def log_message(self, *_args: object) -> None:
            """Say nothing: the test reads `asked`."""

        def _serve(self) -> None:
            server = servers[0]
            server.requests.append(self.path)
            path, _, query = self.path.partition("?")
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if path.startswith(f"/{PRIVATE}/") and not self._is_known(server):
                self._answer(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"who are you?")
                return
            server.gate.wait()
            env = {
                **_backend(server.root),
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            }
            done = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True, check=False)  # noqa: S607 - Debian's git
            head, _, content = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
            self._answer(int(headers.pop("Status", "200").split()[0]), headers, content)

        def _is_known(self, server: GitServer) -> bool:
            credentials = base64.b64encode(f"{server.user}:{server.password}".encode()).decode()
            return self.headers.get("Authorization") == f"Basic {credentials}"

        def _answer(self, code: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response(code)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

    return GitHandler


def _backend(root: Path) -> dict[str, str]:
    """Give what git's http-backend is told for every request."""
    return {
        "PATH": os.environ["PATH"],
        "GIT_PROJECT_ROOT": str(root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }


def _git(folder: Path, *arguments: str) -> str:
    identity = {
        f"GIT_{part}_{fact}": "test@example.org" for part in ("AUTHOR", "COMMITTER") for fact in ("NAME", "EMAIL")
    }
    env = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        ["git", *arguments],  # noqa: S607 - Debian's git
        cwd=folder,
        env=env,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
