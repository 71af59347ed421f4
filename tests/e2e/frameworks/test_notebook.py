"""A real JupyterLab behind the API server: it writes a script, runs a kernel over a WebSocket, and a job runs it."""

import contextlib
import json
import os
import re
import subprocess
from base64 import b64decode
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from paceline.testing.embedded import Embedded, embedded, paceline_command, wait_until
from tests.e2e.support.api_caller import SECONDS, Door, WebSocketClient
from tests.e2e.support.frameworks import condition, environment, folder_of, reaches, status
from tests.e2e.support.kubectl_folder import kubectl_folder
from tests.e2e.support.manifests import claim, pytorch
from tests.e2e.support.shell_pods import create, show

pytestmark = pytest.mark.slow

MOUNT = [{"name": "work", "mountPath": "/t9k/mnt"}]
VOLUMES = [{"name": "work", "persistentVolumeClaim": {"claimName": "work"}}]
BASE = "/t9k/notebooks/projects/default/name/desk"
PROXY = "http://127.0.0.1:8001"
SCRIPT = "import os\nprint('rank', os.environ['RANK'], 'runs what the notebook wrote')\n"


def notebook(name: str, *, mounts: list[Any] = MOUNT, volumes: list[Any] = VOLUMES, **spec: Any) -> dict[str, Any]:
    container = {"name": "notebook", "image": "jupyter/minimal-notebook", "volumeMounts": mounts}
    return {
        "apiVersion": "tensorstack.dev/v1beta1",
        "kind": "Notebook",
        "metadata": {"name": name},
        "spec": {
            "type": "jupyter",
            "template": {"spec": {"containers": [container], "volumes": volumes}},
            **spec,
        },
    }


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded("--image", f"jupyter/*={environment('jupyter')}") as running:
        create(running, claim("work"))
        yield running


@pytest.fixture(scope="module")
def desk(cluster: Embedded) -> "Desk":
    """A notebook that answers, with kubectl in it."""
    mounts = [*MOUNT, {"name": "kube", "mountPath": "/kube"}]
    volumes = [*VOLUMES, {"name": "kube", "hostPath": {"path": str(kubectl_folder())}}]
    create(cluster, notebook("desk", mounts=mounts, volumes=volumes))
    found = reaches(cluster, "notebook", "desk", "Running")
    assert found["url"] == f"{BASE}/lab"
    return Desk(cluster, found["tokenSecret"])


class Desk:
    """A person at a notebook: the cluster's token in the header, the notebook's own in the path."""

    def __init__(self, cluster: Embedded, secret: str) -> None:
        self.door = Door(cluster)
        self.token = b64decode(show(cluster, "secret", secret)["data"]["token"]).decode()

    @contextlib.contextmanager
    def ask(self, method: str, path: str, body: Any = None) -> Iterator[HTTPResponse]:
        sent = None if body is None else json.dumps(body).encode()
        with self.door.ask(method, f"{BASE}{path}?token={self.token}", sent) as answer:
            yield answer

    def run(self, code: str) -> str:
        """Run code in a new kernel, over a WebSocket, and give what it printed."""
        with self.ask("POST", "/api/kernels", {"name": "python3"}) as answer:
            kernel = json.loads(answer.read())["id"]
        content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False}
        header = {"msg_id": "1", "session": "test", "username": "", "msg_type": "execute_request", "version": "5.3"}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        printed, awaited = "", {"execute_reply", "idle"}
        with self.door.line(f"{BASE}/api/kernels/{kernel}/channels?token={self.token}") as line:
            line.send(json.dumps(message))
            while awaited:
                told = json.loads(line.recv(SECONDS))
                if told["parent_header"].get("msg_id") == "1":
                    awaited -= {told["msg_type"], told["content"].get("execution_state")}
                    printed += told["content"]["text"] if told["msg_type"] == "stream" else ""
        with self.ask("DELETE", f"/api/kernels/{kernel}") as answer:
            assert answer.status == 204
        return printed


def test_the_page_is_there_for_those_who_have_the_token(desk: Desk) -> None:
    with desk.ask("GET", "/lab") as answer:
        page = answer.read()
        assert (answer.status, b"JupyterLab" in page) == (200, True)
        # Nobody is asked for leave to fetch news from outside.
        assert re.search(rb'"disabledExtensions": \[[^]]*"@jupyterlab/apputils-extension:announcements"', page)
    with desk.door.ask("GET", f"{BASE}/api/contents") as answer:
        assert answer.status == 403
    with desk.door.ask("GET", f"{BASE}/lab") as answer:
        assert answer.status == 302
        assert answer.headers["Location"].startswith(f"{BASE}/login?next=")


def test_a_page_behind_kubectl_proxy_reaches_its_program_and_nothing_else(desk: Desk) -> None:
    """As `kubectl proxy` does: the page's address is the proxy's, and the token of the cluster is in the header."""
    with desk.ask("GET", "/lab") as answer:
        page, told = answer.read().decode(), answer.headers.get_all("Set-Cookie") or []
    assert desk.token not in page
    cookies = dict(each.partition(";")[0].split("=", 1) for each in told)
    from_page = {
        "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items()),
        "Origin": PROXY,
        "Referer": f"{PROXY}{BASE}/lab",
        "Sec-Fetch-Site": "same-origin",
        "X-XSRFToken": cookies["_xsrf"],
    }

    with desk.door.ask("POST", f"{BASE}/api/terminals", b"{}", **from_page) as answer:
        assert answer.status == 200, answer.read()
        name = json.loads(answer.read())["name"]
    with pytest.raises(InvalidStatus) as refused, desk.door.line(f"{BASE}/terminals/websocket/{name}", **from_page):
        pass
    assert refused.value.response.status_code == 403
    with desk.door.ask("DELETE", f"{BASE}/api/terminals/{name}", **from_page) as answer:
        assert answer.status == 204
    others = ("/api/v1/secrets", "/api/v1/nodes", "/t9k/notebooks/projects/default/name/other/lab", "/readyz")
    for path in others:
        with desk.door.ask("GET", path, **from_page) as answer:
            assert answer.status == 403, path


class Browser:
    """A browser at the address that `paceline notebook` has printed, with a browser's own headers."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self._cookie = parts.netloc, ""
        with self.ask("GET", f"{parts.path}?{parts.query}", site="none") as answer:
            assert answer.status == 302, answer.read()
            self.front = answer.headers["Location"]
            self._cookie = answer.headers["Set-Cookie"].partition(";")[0]

    def headers(self, site: str) -> dict[str, str]:
        page = {"Origin": f"http://{self.host}", "Referer": f"http://{self.host}{BASE}/lab"}
        marks = {"Cookie": self._cookie, "Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}
        return marks if site == "none" else {**page, **marks}

    @contextlib.contextmanager
    def ask(
        self, method: str, path: str, body: bytes | None = None, *, site: str = "same-origin"
    ) -> Iterator[HTTPResponse]:
        connection = HTTPConnection(self.host, timeout=SECONDS)
        with contextlib.closing(connection):
            connection.request(method, path, body, self.headers(site))
            with connection.getresponse() as answer:
                yield answer

    def line(self, path: str) -> WebSocketClient:
        headers = {name: text for name, text in self.headers("same-origin").items() if name != "Origin"}
        origin = Origin(f"http://{self.host}")
        return WebSocketClient(f"ws://{self.host}{path}", origin=origin, additional_headers=headers)


@contextlib.contextmanager
def opened(cluster: Embedded) -> Iterator[str]:
    """Run `paceline notebook` for the length of a block; give what it says to open."""
    command = [paceline_command(), "notebook", "desk", "--port", "0"]
    with subprocess.Popen(command, env=cluster.environment(), stdout=subprocess.PIPE, text=True) as front:
        try:
            assert front.stdout is not None
            yield front.stdout.readline().strip()
        finally:
            front.terminate()


def test_paceline_notebook_opens_it_in_a_browser_and_its_kernels_run(cluster: Embedded, desk: Desk) -> None:
    with opened(cluster) as url:
        browser = Browser(url)
        assert browser.front == f"{BASE}/lab"
        with browser.ask("GET", browser.front, site="none") as answer:
            page = answer.read()
            assert (answer.status, b"JupyterLab" in page) == (200, True)
        assert desk.token.encode() not in page
        assert desk.token not in url

        assert At(browser).run("print(6 * 7)") == "42\n"

        for path in ("/api/v1/secrets", "/t9k/notebooks/projects/default/name/other/lab"):
            with browser.ask("GET", path) as answer:
                assert answer.status == 404, path
        with asked_by_a_stranger(browser.host, f"{BASE}/lab") as answer:
            assert answer.status == 401


class At(Desk):
    """A person at a notebook, by way of a browser: no token is typed."""

    def __init__(self, browser: Browser) -> None:
        self.door = browser
        self.token = ""


@contextlib.contextmanager
def asked_by_a_stranger(host: str, path: str) -> Iterator[HTTPResponse]:
    connection = HTTPConnection(host, timeout=SECONDS)
    with contextlib.closing(connection):
        connection.request("GET", path)
        with connection.getresponse() as answer:
            yield answer


def test_a_script_that_is_written_in_the_notebook_is_what_the_next_job_runs(cluster: Embedded, desk: Desk) -> None:
    with desk.ask("PUT", "/api/contents/train.py", {"type": "file", "format": "text", "content": SCRIPT}) as answer:
        assert answer.status == 201, answer.read()
    assert (folder_of(cluster, "work") / "train.py").read_text() == SCRIPT

    mounts = [{"name": "work", "mountPath": "/claim"}]
    create(cluster, pytorch("next", command=["python", "/claim/train.py"], volumeMounts=mounts, volumes=VOLUMES))
    reaches(cluster, "pj", "next", "Succeeded")
    said = cluster.paceline("logs", "next", "--all").out
    assert all(f"rank {rank} runs what the notebook wrote" in said for rank in (0, 1))


def test_a_kernel_works_on_the_claim_over_a_websocket(cluster: Embedded, desk: Desk) -> None:
    said = desk.run("import os\nopen('made', 'w').write('here')\nprint(os.getcwd(), os.environ['NB_PREFIX'])")

    assert said == f"/t9k/mnt {BASE}\n"
    assert (folder_of(cluster, "work") / "made").read_text() == "here"


def test_kubectl_works_in_the_notebook(desk: Desk) -> None:
    said = desk.run("import subprocess\nsubprocess.run(['/kube/kubectl', 'get', 'notebooks', '-o', 'name'])")

    assert said == "notebook.tensorstack.dev/desk\n"


def test_a_terminal_is_a_shell_on_the_claim(desk: Desk) -> None:
    with desk.ask("POST", "/api/terminals") as answer:
        name = json.loads(answer.read())["name"]
    with desk.door.line(f"{BASE}/terminals/websocket/{name}?token={desk.token}") as line:
        line.send(json.dumps(["stdin", "echo $((6*7)) in $PWD\r"]))
        shown = ""
        while "42 in /t9k/mnt" not in shown:
            kind, *rest = json.loads(line.recv(SECONDS))
            shown += rest[0] if kind == "stdout" else ""
    with desk.ask("DELETE", f"/api/terminals/{name}") as answer:
        assert answer.status == 204


def test_the_token_is_in_its_secret_and_nowhere_else(cluster: Embedded, desk: Desk) -> None:
    kinds = cluster.kubectl("api-resources", "--verbs=list", "--namespaced", "-o", "name").out.split()
    others = ",".join(kind for kind in kinds if kind != "secrets")
    everything = cluster.kubectl("get", others, "-o", "json")
    assert "desk" in everything.out
    said = cluster.kubectl("logs", "-l", "tensorstack.dev/owner-name=desk", "--tail=-1").out
    assert "Jupyter Server" in said
    told = (cluster.home / "paceline.log").read_text()

    for text in (everything.out, everything.err, said, told, *_processes()):
        assert desk.token not in text
    # Whoever else mounts the claim does not find it there.
    assert not [content for content in _contents(folder_of(cluster, "work")) if desk.token.encode() in content]


def _processes() -> Iterator[str]:
    """Give the arguments and the variables of everything that runs."""
    for entry in Path("/proc").iterdir():
        for name in ("cmdline", "environ") if entry.name.isdigit() else ():
            with contextlib.suppress(OSError):
                yield (entry / name).read_text(errors="replace")


def _contents(folder: Path) -> Iterator[bytes]:
    """Give what is in the files of a folder; the notebook may remove some meanwhile."""
    for place, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                yield Path(place, name).read_bytes()


def test_one_that_is_shut_down_rests_until_it_is_resumed(cluster: Embedded, desk: Desk) -> None:
    before = status(cluster, "notebook", "desk")
    (folder_of(cluster, "work") / "kept").write_text("still here")
    with desk.ask("POST", "/api/shutdown") as answer:
        assert answer.status == 200

    rest = reaches(cluster, "notebook", "desk", "Paused")
    assert condition(rest, "Suspended")["reason"] == "Ended"
    wait_until("its pod is gone", lambda: "desk" not in cluster.kubectl("get", "pods", "-o", "name").out)
    assert cluster.paceline("resume", "notebook/desk").code == 0
    after = reaches(cluster, "notebook", "desk", "Running")
    assert after["pod"] != before["pod"]
    with desk.ask("GET", "/api/contents/kept") as answer:
        assert json.loads(answer.read())["content"] == "still here"


@pytest.mark.soak
def test_one_that_nobody_uses_ends_by_itself(cluster: Embedded) -> None:
    create(cluster, notebook("sleepy", idleSeconds=1))

    reaches(cluster, "notebook", "sleepy", "Running")
    rest = wait_until("it rests", lambda: _if_paused(cluster), 150)
    assert condition(rest, "Suspended")["reason"] == "Ended"


def _if_paused(cluster: Embedded) -> dict[str, Any]:
    found = status(cluster, "notebook", "sleepy")
    return found if found.get("phase") == "Paused" else {}
