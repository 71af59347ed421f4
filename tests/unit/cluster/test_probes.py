"""The probes of `paceline kube controller` answer over HTTP, and a wrong address is refused with a sentence."""

import asyncio
import socket

import pytest

from paceline.cluster.monitoring.probe_server import Probes, probe_socket, serve_probes
from paceline.cluster.monitoring.process_metrics import process_metrics
from paceline.errors import HostError, Invalid


async def ask(sock, path, method="GET"):
    reader, writer = await asyncio.open_connection("127.0.0.1", sock.getsockname()[1])
    writer.write(f"{method} {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return int(head.split()[1]), body.decode()


@pytest.fixture
def free_port():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


@pytest.mark.parametrize("host", ["", "127.0.0.1"])
async def test_probes_and_metrics_are_answered(host, free_port):
    probes = Probes()
    probes.registry.put("process", *process_metrics())
    sock = probe_socket(f"{host}:{free_port}")
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(serve_probes(group, sock, probes))
        await serving
        assert await ask(sock, "/healthz") == (200, "ok\n")
        assert await ask(sock, "/readyz") == (503, "not ready: the cluster is being checked\n")
        probes.unready = str
        assert await ask(sock, "/readyz") == (200, "ok\n")
        code, text = await ask(sock, "/metrics")
        assert (code, text.count("\npaceline_build_info{version=")) == (200, 1)
        assert (await ask(sock, "/secret"))[0] == 404
        assert (await ask(sock, "/metrics", "POST"))[0] == 405
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()


def test_a_port_that_is_taken_is_one_clear_line(free_port):
    with socket.create_server(("127.0.0.1", free_port)), pytest.raises(HostError) as error:
        probe_socket(f"127.0.0.1:{free_port}")
    assert str(error.value) == (
        f"--metrics-bind-address 127.0.0.1:{free_port}: cannot listen there: Address already in use; choose another"
    )


@pytest.mark.parametrize("address", ["8080", "127.0.0.1", ":http", ":0", ":65536", "::1:"])
def test_an_address_that_cannot_be_read_says_what_to_write(address):
    with pytest.raises(Invalid, match="write ADDRESS:PORT"):
        probe_socket(address)


@pytest.mark.parametrize("address", ["", "0"])
def test_it_can_be_switched_off(address):
    assert probe_socket(address) is None


def test_memory_and_time_of_the_process_are_measured():
    values = {family.name: family.samples[0][2] for source in process_metrics() for family in source.collect()}
    assert values["process_resident_memory_bytes"] > 1 << 20
    assert values["process_open_fds"] > 2
    assert values["process_start_time_seconds"] > 1.6e9
