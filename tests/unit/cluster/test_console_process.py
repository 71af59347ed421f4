"""When the console's process ends, and where it listens."""

import asyncio
import json
import os
import socket

import pytest

from paceline.cli.commands.cluster.ui import login_url, tunnel_command
from paceline.cluster.console.address import console_address, request_code
from paceline.cluster.console.listener import open_socket
from paceline.cluster.console.server import IDLE_SECONDS, wait_until_idle
from paceline.errors import HostError
from paceline.host.connection_limits import ConnectionLimiter
from paceline.host.listening_sockets import owners_of
from paceline.settings import Settings
from paceline.testing.sim.loop import SimLoop

KUBECONFIG = {
    "clusters": [{"name": "a", "cluster": {"server": "https://127.0.0.1:1"}}],
    "users": [{"name": "a", "user": {"token": "t"}}],
    "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
    "current-context": "a",
}


def test_it_ends_a_quarter_of_an_hour_after_the_last_connection():
    async def main():
        loop, limiter = asyncio.get_running_loop(), ConnectionLimiter()
        slot = limiter.acquire("local")
        async with asyncio.TaskGroup() as group:
            ending = group.create_task(wait_until_idle(limiter, IDLE_SECONDS))
            await asyncio.sleep(10 * IDLE_SECONDS)
            assert not ending.done()
            slot.release()
            idle_since = loop.time()
            await ending
        return loop.time() - idle_since

    with asyncio.Runner(loop_factory=lambda: SimLoop(seed=0)) as runner:
        seconds = runner.run(main())

    assert IDLE_SECONDS == 900
    assert 0.9 * IDLE_SECONDS <= seconds <= 1.1 * IDLE_SECONDS


def test_the_port_stays_the_same(tmp_path):
    settings = Settings(home=tmp_path)
    with open_socket(settings, range(23_000, 23_400)) as first:
        port = first.getsockname()[1]
    with open_socket(settings, range(23_400, 23_499)) as second:
        assert second.getsockname()[1] == port
    assert json.loads(settings.console.read_text()) == {"port": port}
    assert settings.console.stat().st_mode & 0o777 == 0o600
    assert console_address(settings) == f"http://paceline.localhost:{port}"


def test_another_port_is_taken_and_remembered_if_that_one_is_in_use(tmp_path):
    settings = Settings(home=tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings.console.write_text(json.dumps({"port": taken.getsockname()[1]}))
        with open_socket(settings, range(23_000, 23_499)) as other:
            assert other.getsockname()[1] != taken.getsockname()[1]
            assert json.loads(settings.console.read_text()) == {"port": other.getsockname()[1]}


@pytest.mark.parametrize("text", ["", "{", "[]", '{"port": "x"}', '{"port": null}'])
def test_a_damaged_memory_of_the_port_is_replaced(tmp_path, text):
    settings = Settings(home=tmp_path)
    settings.console.write_text(text)
    with open_socket(settings, range(23_000, 23_499)) as sock:
        assert json.loads(settings.console.read_text()) == {"port": sock.getsockname()[1]}


def test_the_owner_of_a_port_is_known():
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port = sock.getsockname()[1]
        assert owners_of(port) == {os.geteuid()}
    assert owners_of(port) == frozenset()


def test_the_token_is_not_sent_where_nobody_of_ours_listens(tmp_path):
    settings = Settings(home=tmp_path)
    settings.kubeconfig.write_text(json.dumps(KUBECONFIG))
    with open_socket(settings, range(23_000, 23_499)):
        pass

    with pytest.raises(HostError, match="does not listen"):
        request_code(settings)


@pytest.mark.parametrize(
    ("page", "url"),
    [
        ("", "http://a:1/login#code=c"),
        ("/", "http://a:1/login#code=c"),
        ("jobs", "http://a:1/login?next=/jobs#code=c"),
        ("/jobs/default/MPIJob/x", "http://a:1/login?next=/jobs/default/MPIJob/x#code=c"),
        ("jobs?phase=Failed&a=b", "http://a:1/login?next=/jobs%3Fphase%3DFailed%26a%3Db#code=c"),
        ("//evil.example", "http://a:1/login?next=/evil.example#code=c"),
    ],
)
def test_the_code_is_in_the_fragment(page, url):
    assert login_url("http://a:1", "c", page) == url


def test_without_a_credential_the_address_has_no_code():
    assert login_url("http://a:1", "") == "http://a:1/login"


@pytest.mark.parametrize(
    ("connection", "user", "command"),
    [
        ("10.0.0.9 5000 10.0.0.5 22", "ada", "ssh -L 16000:127.0.0.1:16000 ada@10.0.0.5"),
        ("10.0.0.9 5000 10.0.0.5 2222", "", "ssh -L 16000:127.0.0.1:16000 -p 2222 10.0.0.5"),
        ("odd", "ada", "ssh -L 16000:127.0.0.1:16000 ada@HOST"),
    ],
)
def test_over_ssh_the_command_that_forwards_the_port_is_printed(monkeypatch, connection, user, command):
    monkeypatch.setenv("SSH_CONNECTION", connection)
    monkeypatch.setenv("USER", user)

    assert tunnel_command(16000) == command
