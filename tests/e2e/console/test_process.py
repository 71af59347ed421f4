"""The console's process: it starts with the first connection, comes back after a crash, and leaves nothing behind."""

import json
import os
import signal
from pathlib import Path
from urllib.parse import urlencode, urlsplit

import pytest

from paceline.testing.embedded import Embedded, embedded, leftovers, wait_until
from tests.e2e.console.browser import Browser
from tests.e2e.support.manifests import pod


def address_of(cluster: Embedded) -> str:
    """Return an address that logs in, as `paceline ui` prints it."""
    ran = cluster.paceline("ui", "--no-browser")
    assert ran.code == 0, ran.err
    return ran.out.strip()


@pytest.fixture
def browser(cluster: Embedded) -> Browser:
    """A browser that has logged in at the cluster of this module."""
    url = address_of(cluster)
    opened = Browser(host=urlsplit(url).netloc)
    opened.open(url)
    return opened


def environ_and_arguments(pid: int) -> bytes:
    return b"".join(Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ"))


def test_the_process_runs_only_while_somebody_looks_and_down_leaves_nothing() -> None:
    with embedded() as cluster:
        port = json.loads(cluster.settings.console.read_text())["port"]
        browser = Browser(host=f"paceline.localhost:{port}")
        assert cluster.console_pid is None

        code, body = browser.send("GET", "/")
        first = cluster.console_pid
        assert code in (200, 503), body
        assert first is not None

        browser.open(address_of(cluster))
        os.kill(first, signal.SIGKILL)
        assert browser.json("GET", "/api/me")["name"] == "admin"
        assert cluster.console_pid not in (None, first)

        assert cluster.paceline("down").code == 0
        assert cluster.console_pid is None
        assert not leftovers(cluster.home)
        with pytest.raises(ConnectionRefusedError):
            browser.send("GET", "/")


def test_a_person_logs_in_by_the_printed_address(cluster: Embedded) -> None:
    url = address_of(cluster)
    browser = Browser(host=urlsplit(url).netloc)
    assert url.startswith("http://paceline.localhost:")
    assert browser.send("GET", "/api/me")[0] == 401

    browser.open(url)

    me = browser.json("GET", "/api/me")
    assert me["name"] == "admin"
    assert "default" in me["namespaces"]
    assert me["cluster"]["embedded"] is True
    assert browser.json("GET", "/k8s/api/v1/nodes")["items"][0]["metadata"]["name"]
    with pytest.raises(AssertionError, match="used already"):
        Browser(host=browser.host).open(url)


def test_a_terminal_reaches_a_container(browser: Browser) -> None:
    body = pod("box", {"name": "main", "command": ["sleep", "600"]})
    browser.json("POST", "/k8s/api/v1/namespaces/default/pods", body)
    path = "/api/v1/namespaces/default/pods/box"
    wait_until("it runs", lambda: browser.json("GET", f"/k8s{path}")["status"]["phase"] == "Running")
    command = urlencode([("command", word) for word in ("sh", "-c", 'read word; echo "got $word"; exit 3')])

    protocol = "v5.channel.k8s.io"
    with browser.socket(f"/k8s{path}/exec?{command}&stdin=true&stdout=true&stderr=true", protocol) as terminal:
        terminal.send(b"\0hello\n")
        frames = [bytes(frame) for frame in terminal if not isinstance(frame, str)]

    assert b"".join(frame[1:] for frame in frames if frame[0] == 1) == b"got hello\n"
    (status,) = (json.loads(frame[1:]) for frame in frames if frame[0] == 3)
    assert status["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]


def test_the_port_and_the_session_outlive_the_control_process(cluster: Embedded, browser: Browser) -> None:
    control, console = cluster.control_pid, cluster.console_pid
    assert control is not None
    os.kill(control, signal.SIGKILL)
    wait_until("another control process runs", lambda: cluster.control_pid not in (None, control))

    def answer() -> str:
        try:
            return str(browser.json("GET", "/api/me")["name"])
        except (OSError, AssertionError):
            return ""

    assert wait_until("the console answers again", answer) == "admin"
    assert cluster.console_pid != console


def test_no_secret_is_in_the_log_or_among_the_arguments(cluster: Embedded, browser: Browser) -> None:
    token = json.loads(cluster.kubeconfig.read_text())["users"][0]["user"]["token"]
    url = address_of(cluster)
    pid = cluster.console_pid
    assert pid is not None

    assert token.encode() not in environ_and_arguments(pid)
    log = cluster.settings.log.read_text()
    for secret in (token, urlsplit(url).fragment.removeprefix("code="), *browser.cookies.values()):
        assert not secret or secret not in log
    assert cluster.settings.console_key.stat().st_mode & 0o777 == 0o600


def test_the_command_names_the_console(cluster: Embedded) -> None:
    port = json.loads(cluster.settings.console.read_text())["port"]

    assert f"http://paceline.localhost:{port}" in cluster.paceline("cluster", "status").out
    assert f"http://paceline.localhost:{port}" in cluster.paceline("up", "-d").err
