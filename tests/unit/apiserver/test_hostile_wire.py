"""Hostile bytes on a real socket: a clear refusal or a closed connection, and the next client is served."""

import contextlib
import gzip
import http.client
import json
import socket
import ssl
from pathlib import Path

import pytest

from paceline.apiserver.auth.authentication import read_body
from paceline.apiserver.status_errors import StatusError
from tests.differential.servers import ours

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
JSON = "application/json"
MANY = 20_000
MIB = 1024 * 1024
# What patches and deletes are aimed at: a path that leads to nothing would be refused for that alone.
TARGET = json.dumps({"metadata": {"name": "target"}, "data": {"k": "v"}}).encode()
GOOD = json.dumps({"metadata": {"name": "a"}}).encode()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    with ours(tmp_path_factory.mktemp("wire")) as server:
        made = ask(server, "POST", CONFIG_MAPS, body=TARGET, headers={"Content-Type": JSON})
        assert made[0] == 201
        yield server


@pytest.fixture
def dial(place):
    """Open connections that are closed at the end."""
    opened = []

    def connect():
        host, _, port = place.host.partition(":")
        raw = socket.create_connection((host, int(port)), timeout=10)
        opened.append(ssl.create_default_context(cafile=place.ca_file).wrap_socket(raw, server_hostname=host))
        return opened[-1]

    yield connect
    for connection in opened:
        connection.close()


def ask(place, method, path, *, body=None, headers=None):
    context = ssl.create_default_context(cafile=place.ca_file)
    connection = http.client.HTTPSConnection(place.host, context=context, timeout=15)
    try:
        connection.request(
            method, path, body=body, headers={"Authorization": f"Bearer {place.token}", **(headers or {})}
        )
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def head(place, method, path, *lines):
    fixed = (f"{method} {path} HTTP/1.1", f"Host: {place.host}", f"Authorization: Bearer {place.token}")
    return "\r\n".join((*fixed, *lines, "", "")).encode("latin-1")


def answered(connection):
    """The code of an answer, or None where the server hung up."""
    try:
        line = connection.makefile("rb").readline()
    except OSError:
        return None
    return int(line.split()[1]) if line else None


BODIES = {
    "a body that is gzip": (gzip.compress(GOOD), {"Content-Type": JSON, "Content-Encoding": "gzip"}, {400, 415}),
    "a bomb of gzip": (
        gzip.compress(b" " * 50_000_000),
        {"Content-Type": JSON, "Content-Encoding": "gzip"},
        {400, 415},
    ),
    "a charset that is another": (
        GOOD.decode().encode("utf-16"),
        {"Content-Type": f"{JSON}; charset=utf-16"},
        {400, 415},
    ),
    "protobuf that is none": (
        b"k8s\x00" + b"\xff" * 100,
        {"Content-Type": "application/vnd.kubernetes.protobuf"},
        {400, 415},
    ),
    "protobuf of nothing": (b"k8s\x00", {"Content-Type": "application/vnd.kubernetes.protobuf"}, {400, 415, 422}),
    "protobuf with a length that lies": (
        b"k8s\x00\x0a\xff\xff\xff\xff\x0f",
        {"Content-Type": "application/vnd.kubernetes.protobuf"},
        {400, 415},
    ),
    "protobuf nested without end": (
        b"k8s\x00" + b"\x0a\x7f" * 60_000,
        {"Content-Type": "application/vnd.kubernetes.protobuf"},
        {400, 415},
    ),
    "protobuf of another sort": (b"\x0a\x02v1", {"Content-Type": "application/vnd.kubernetes.protobuf"}, {400, 415}),
    "three mebibytes and one byte": (b" " * (3 * 1024 * 1024 + 1), {"Content-Type": JSON}, {413}),
    "three mebibytes of brackets": (b"[" * (3 * 1024 * 1024 - 1), {"Content-Type": JSON}, {400}),
    "three mebibytes of keys": (
        b"{" + b",".join(b'"%d":0' % number for number in range(200_000)) + b"}",
        {"Content-Type": JSON},
        {400, 422},
    ),
    "one key three hundred thousand times": (
        b'{"metadata":{"name":"a"},"x":1' + b',"x":1' * 300_000 + b"}",
        {"Content-Type": JSON},
        {201, 400, 422},
    ),
    "a YAML bomb": (
        b"a0: &a0 [x]\n"
        + b"".join(b"a%d: &a%d [%b]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 12)),
        {"Content-Type": "application/yaml"},
        {400, 413, 415, 422},
    ),
    "YAML that makes objects": (
        b"!!python/object/apply:os.system ['true']",
        {"Content-Type": "application/yaml"},
        {400, 415, 422},
    ),
    "YAML nested deeply": (b"[" * 20_000, {"Content-Type": "application/yaml"}, {400, 413, 415, 422}),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_hostile_body_is_refused_and_nothing_is_kept(place, case):
    body, headers, codes = BODIES[case]

    code, said = ask(place, "POST", f"{CONFIG_MAPS}?dryRun=All", body=body, headers=headers)

    assert code in codes, said[:500]
    assert len(said) < 100_000
    assert ask(place, "GET", f"{CONFIG_MAPS}/a")[0] == 404


def assert_target_is_untouched(place):
    code, said = ask(place, "GET", f"{CONFIG_MAPS}/target")
    assert code == 200
    assert json.loads(said)["data"] == {"k": "v"}


PATCHES = ("application/apply-patch+yaml", "application/merge-patch+json", "application/json-patch+json")


@pytest.mark.parametrize("sort", PATCHES)
@pytest.mark.parametrize("case", [name for name in BODIES if "gzip" not in name and "protobuf" not in name])
def test_a_hostile_patch_changes_nothing(place, case, sort):
    body, _, _ = BODIES[case]

    code, said = ask(
        place, "PATCH", f"{CONFIG_MAPS}/target?fieldManager=m&dryRun=All", body=body, headers={"Content-Type": sort}
    )

    # Fields that a config map does not have are left out with a warning, however many they are.
    assert 400 <= code < 500 or (code == 200 and "keys" in case), said[:500]
    assert len(said) < 100_000
    assert_target_is_untouched(place)


@pytest.mark.parametrize("case", [name for name in BODIES if "one key" not in name and "keys" not in name])
def test_hostile_options_of_a_delete_are_refused(place, case):
    body, headers, _ = BODIES[case]

    code, said = ask(place, "DELETE", f"{CONFIG_MAPS}/target", body=body, headers=headers)

    assert 400 <= code < 500, said[:500]
    assert_target_is_untouched(place)


HEADS = {
    "twenty thousand headers": ([f"X-{number}: {number}" for number in range(MANY)], 431),
    "a hundred and one headers": ([f"X-{number}: {number}" for number in range(99)], 431),
    "a header of a mebibyte": ([f"X-Long: {'a' * 2**20}"], 431),
    "headers of a mebibyte together": ([f"X-{number}: {'a' * 2**14}" for number in range(64)], 431),
    "a length that is no number": (["Content-Length: ten"], 400),
    "a length that is negative": (["Content-Length: -1"], 400),
    "two lengths": (["Content-Length: 5", "Content-Length: 6"], 400),
    "a length and chunks": (["Content-Length: 5", "Transfer-Encoding: chunked"], 400),
    "a length that nobody can hold": (["Content-Length: 99999999999999999999"], 400),
    "a length of a gigabyte": (["Content-Length: 1000000000"], 413),
    "a second host": (["Host: example.com"], 403),
    "a header without a name": ([": nothing"], 400),
    "an accept of ten thousand clauses": ([f"Accept: {','.join(['text/x;a=b'] * 10_000)}"], 431),
}


@pytest.mark.parametrize("case", HEADS)
def test_a_hostile_head_is_refused(place, dial, case):
    lines, code = HEADS[case]
    connection = dial()
    connection.sendall(head(place, "POST", CONFIG_MAPS, *lines))

    assert answered(connection) == code
    assert ask(place, "GET", "/livez")[0] == 200


@pytest.mark.parametrize("piece", [b"X-A: b\r\n" * 1000, b"a" * 8000], ids=["fields", "one field"])
def test_a_head_without_end_takes_no_memory(place, dial, piece):
    connection = dial()
    before = resident()
    with contextlib.suppress(OSError):
        connection.sendall(head(place, "GET", "/api")[:-4] + b"\r\nX-Long: ")
        for _ in range(16 * MIB // len(piece)):
            connection.sendall(piece)

    assert resident() - before < 8 * MIB
    assert ask(place, "GET", "/livez")[0] == 200


def resident():
    """What this process, which the server is part of, holds in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


PATHS = {
    "percent signs that mean nothing": (f"{CONFIG_MAPS}/%zz%", 400),
    "bytes that are not UTF-8": (f"{CONFIG_MAPS}/%ff%fe", 400),
    "a path of a mebibyte": (f"{CONFIG_MAPS}/{'a' * 2**20}", 414),
    "ten thousand parts": (f"/api/v1{'/a' * 10_000}", 400),
    "a query of ten thousand pairs": (f"{CONFIG_MAPS}?{'a=b&' * 10_000}", 400),
    "a query of a mebibyte": (f"{CONFIG_MAPS}?labelSelector={'a' * 2**20}", 414),
    "a selector of ten thousand rules": (f"{CONFIG_MAPS}?labelSelector={','.join(['a'] * 10_000)}", 400),
    "a selector of brackets": (f"{CONFIG_MAPS}?labelSelector={'(' * 5_000}", 400),
    "another server's address": ("http://example.com/api", 200),
}


@pytest.mark.parametrize("case", PATHS)
def test_a_hostile_path_is_answered(place, dial, case):
    path, code = PATHS[case]
    connection = dial()
    connection.sendall(head(place, "GET", path, "Connection: close"))

    assert answered(connection) == code
    assert ask(place, "GET", "/livez")[0] == 200


def test_chunks_without_end_are_cut_off_at_the_limit(place, dial):
    connection = dial()
    connection.sendall(head(place, "POST", CONFIG_MAPS, f"Content-Type: {JSON}", "Transfer-Encoding: chunked"))
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    try:
        for _ in range(80):
            connection.sendall(chunk)
    except OSError:
        return  # Hung up on, which is as good.

    assert answered(connection) == 413


def test_a_client_that_hangs_up_in_the_middle_changes_nothing(place, dial):
    connection = dial()
    connection.sendall(head(place, "POST", CONFIG_MAPS, f"Content-Type: {JSON}", "Content-Length: 1000") + GOOD)
    connection.close()

    assert ask(place, "GET", f"{CONFIG_MAPS}/a")[0] == 404


async def test_a_body_that_does_not_come_is_not_waited_for():
    said = iter([{"type": "http.request", "body": b"{", "more_body": True}])

    async def receive():
        import asyncio

        return next(said, None) or await asyncio.Event().wait()

    with pytest.raises(StatusError) as refused:
        await read_body(receive, seconds=0.01)

    assert refused.value.status.code == 408
