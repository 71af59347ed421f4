"""Both ways over the wire, with and without a loop, behave alike."""

import asyncio
import gc
import socket
import ssl
from contextlib import aclosing, closing
from dataclasses import replace

import orjson
import pytest

from paceline.client.http.cluster import HttpCluster
from paceline.client.http.transport import Unreachable, translate_errors
from paceline.client.interface import PODS, Select
from paceline.client.rest_config import Access
from paceline.client.sync import DirectCluster
from paceline.errors import AlreadyExists, HostError
from tests.unit.client.wire import DROP, OK, Closes, Ignores, Stays, answer, chunked

POD = {"metadata": {"namespace": "team", "name": "a"}}
TAKEN = orjson.dumps({"kind": "Status", "code": 409, "reason": "AlreadyExists", "message": "taken"})
ADDED = b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}}\n'


class WithLoop:
    """Drives HttpCluster like a synchronous one, so that one test holds for both."""

    def __init__(self, access, chance, heard):
        self._cluster = HttpCluster(access, chance, on_warning=heard.append)
        self._runner = asyncio.Runner()

    def __getattr__(self, verb):
        def call(*args, **kwargs):
            return self._runner.run(self._all(getattr(self._cluster, verb)(*args, **kwargs)))

        return call

    async def _all(self, asked):
        if hasattr(asked, "__aiter__"):
            async with aclosing(asked):
                return [each async for each in asked]
        return await asked

    def finish(self):
        self._runner.run(self._cluster.close())
        self._runner.close()


class WithoutLoop:
    def __init__(self, access, _chance, heard):
        self._cluster = DirectCluster(access, on_warning=heard.append)

    def __getattr__(self, verb):
        def call(*args, **kwargs):
            said = getattr(self._cluster, verb)(*args, **kwargs)
            return list(said) if hasattr(said, "send") else said

        return call

    def finish(self):
        self._cluster.close()


@pytest.fixture(params=[WithLoop, WithoutLoop])
def dial(request, chance):
    """Makes a cluster of either kind for an access."""
    made = []

    def make(access, heard=None):
        made.append(request.param(access, chance, [] if heard is None else heard))
        return made[-1]

    yield make
    for each in made:
        each.finish()


@pytest.fixture
def cluster(dial, wire_access):
    return dial(wire_access)


def first_lines(wire):
    return [request.splitlines()[0] for request in wire.requests]


def test_a_request_says_who_asks_and_for_what(cluster, wire):
    wire.answers = [OK]

    assert cluster.get(PODS, "team", "a") == {}

    (request,) = wire.requests
    assert first_lines(wire) == ["GET /api/v1/namespaces/team/pods/a HTTP/1.1"]
    assert "Authorization: Bearer secret" in request
    assert "Accept: application/json" in request
    assert "User-Agent: paceline" in request
    assert "Accept-Encoding: identity" in request


def test_a_write_carries_its_body(cluster, wire):
    wire.answers = [OK]

    cluster.create(PODS, POD)

    head, _, body = wire.requests[0].partition("\r\n\r\n")
    assert "Content-Type: application/json" in head
    assert orjson.loads(body) == POD


def test_a_server_below_a_path_is_asked_below_that_path(dial, wire, wire_access):
    wire.answers = [OK]

    dial(replace(wire_access, server=wire_access.server + "/k8s/c1")).get(PODS, "team", "a")

    assert first_lines(wire) == ["GET /k8s/c1/api/v1/namespaces/team/pods/a HTTP/1.1"]


def test_an_error_is_read(cluster, wire):
    wire.answers = [answer(TAKEN, status="409 Conflict")]

    with pytest.raises(AlreadyExists, match="taken"):
        cluster.create(PODS, POD)


def test_one_connection_serves_several_requests(cluster, wire):
    wire.answers = [OK] * 3

    for _ in range(3):
        cluster.get(PODS, "team", "a")

    assert wire.connections == 1


def test_warnings_reach_the_person(dial, wire, wire_access):
    heard = []
    wire.answers = [answer(b"{}", headers=['Warning: 299 - "old shape"', 'Warning: 299 - "soon gone"'])]

    dial(wire_access, heard).create(PODS, POD)

    assert heard == ["old shape", "soon gone"]


def test_reading_survives_a_connection_that_was_closed_meanwhile(cluster, wire):
    wire.answers = [OK, DROP, OK]
    cluster.get(PODS, "team", "a")

    assert cluster.get(PODS, "team", "a") == {}


def test_a_write_without_an_answer_is_not_sent_twice(cluster, wire):
    """It may have been carried out: only who wrote it can find out."""
    wire.answers = [DROP, OK]

    with pytest.raises(Unreachable):
        cluster.create(PODS, POD)
    assert len(wire.requests) == 1


def test_a_patch_without_an_answer_on_a_kept_connection_is_not_sent_twice(cluster, wire):
    wire.answers = [OK, DROP, OK]
    cluster.get(PODS, "team", "a")

    with pytest.raises(Unreachable):
        cluster.patch(PODS, ("team", "a"), {})
    assert len(wire.requests) == 2


def test_a_write_after_the_server_said_goodbye_goes_out_on_a_new_connection(cluster, wire):
    wire.answers = [answer(b"{}", headers=["Connection: close"]), OK]
    cluster.get(PODS, "team", "a")

    assert cluster.create(PODS, POD) == {}
    assert wire.connections == 2


def test_a_write_after_a_silent_goodbye_goes_out_on_a_new_connection(wire, wire_access):
    """Without a loop nobody notices the goodbye when it comes, so it is looked for before each request."""
    wire.answers = [Closes(OK), OK]
    with DirectCluster(wire_access) as cluster:
        cluster.get(PODS, "team", "a")
        assert wire.closed.get(timeout=30)

        assert cluster.create(PODS, POD) == {}
    assert wire.connections == 2


def test_nothing_there_is_said_so(dial):
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]

    with pytest.raises(Unreachable, match=f"http://127.0.0.1:{port} does not answer"):
        dial(Access(server=f"http://127.0.0.1:{port}")).get(PODS, "team", "a")


def test_a_list_is_read_page_by_page(cluster, wire):
    def page(name, after):
        items = [{"metadata": {"name": name}}]
        meta = {"resourceVersion": "5", "continue": after}
        return answer(orjson.dumps({"kind": "PodList", "apiVersion": "v1", "metadata": meta, "items": items}))

    wire.answers = [page("a", "more"), page("b", "")]

    found = cluster.list(PODS, Select(namespace="team"), limit=1)

    assert [item["metadata"]["name"] for item in found.items] == ["a", "b"]
    assert (found.revision, found.next) == ("5", "")
    assert first_lines(wire) == [
        "GET /api/v1/namespaces/team/pods?limit=1 HTTP/1.1",
        "GET /api/v1/namespaces/team/pods?limit=1&continue=more HTTP/1.1",
    ]


def test_a_watch_is_read_event_by_event(cluster, wire):
    wire.answers = [chunked(ADDED[:20], ADDED[20:] + ADDED, b"\n")]

    events = cluster.watch(PODS, Select(), since="5")

    assert [(event.change, event.object["metadata"]["resourceVersion"]) for event in events] == [("ADDED", "7")] * 2


def test_a_stream_that_breaks_off_is_not_taken_for_one_that_ended(cluster, wire):
    wire.answers = [chunked(b"line\n", ends=False)]

    with pytest.raises(Unreachable):
        cluster.stream("/log", {"follow": "true"})


def test_an_error_in_place_of_a_stream_is_read(cluster, wire):
    wire.answers = [answer(TAKEN, status="409 Conflict")]

    with pytest.raises(AlreadyExists):
        cluster.stream("/log", {})


def test_a_stream_has_the_bytes_as_they_are(cluster, wire):
    wire.answers = [chunked(b"\xff\x00", b"two")]

    assert b"".join(cluster.stream("/log", {"follow": "true"})) == b"\xff\x00two"
    assert first_lines(wire) == ["GET /log?follow=true HTTP/1.1"]


def test_a_server_that_stays_silent_for_too_long_counts_as_gone(cluster, wire, monkeypatch):
    monkeypatch.setattr("paceline.client.requests.SPARE_SECONDS", 0.05)
    wire.answers = [Stays()]

    with pytest.raises(Unreachable, match="in time"):
        cluster.watch(PODS, Select(), since="5", timeout_seconds=0)
    assert wire.hung_up.get(timeout=30)


@pytest.fixture
def secure(wires, tls_files, identities):
    """A server that is named `api.test`, whatever its address, and the access to it."""
    wire = wires(socket.create_server(("127.0.0.1", 0)), tls_files)
    server = f"https://127.0.0.1:{wire.listener.getsockname()[1]}"
    return wire, Access(server=server, ca=identities.authority, tls_server_name="api.test")


def test_a_server_is_known_by_its_authority_and_name(dial, secure):
    wire, access = secure
    wire.answers = [OK]

    assert dial(access).get(PODS, "team", "a") == {}


def test_a_connection_that_is_cut_under_tls_is_no_reason_for_distrust():
    """Cuts are tried again, distrust is not. OpenSSL has such a word of its own when it writes to a cut connection."""
    incoming = ssl.MemoryBIO()
    incoming.write_eof()
    tls = ssl.create_default_context().wrap_bio(incoming, ssl.MemoryBIO(), server_hostname="api.test")

    with pytest.raises(Unreachable, match="hung up"), translate_errors("https://api.test"):
        tls.do_handshake()


def test_a_client_is_known_by_its_certificate(dial, secure, tls_files, identities):
    wire, access = secure
    tls_files.verify_mode = ssl.CERT_REQUIRED
    wire.answers = [OK]
    known = replace(access, client_certificate=identities.client, client_key=identities.client_key)

    assert dial(known).get(PODS, "team", "a") == {}


def test_hanging_up_leaves_nothing_behind_even_if_the_server_does_not_notice(secure, chance):
    """A polite end of TLS waits for an answer; one that is still waited for when the loop ends is a leak."""
    wire, access = secure
    wire.answers = [Ignores(chunked(ADDED, ends=False))]

    async def main():
        async with (
            HttpCluster(access, chance) as cluster,
            aclosing(cluster.watch(PODS, Select(), since="5")) as events,
        ):
            await anext(events)

    asyncio.run(main())
    # The leak would be a warning here, and warnings are errors.
    gc.collect()


STRANGERS = {
    "another name than the certificate's": {"tls_server_name": ""},
    "no authority of ours": {"ca": b""},
}


@pytest.mark.parametrize("change", STRANGERS.values(), ids=STRANGERS)
def test_a_server_that_cannot_prove_itself_gets_no_token(dial, secure, change):
    wire, access = secure

    with pytest.raises(HostError, match="cannot be trusted"):
        dial(replace(access, token="secret", **change)).get(PODS, "team", "a")
    assert wire.requests == []


def test_only_who_asks_for_it_goes_without_proof(dial, secure):
    wire, access = secure
    wire.answers = [OK]

    assert dial(replace(access, ca=b"", tls_server_name="", is_insecure=True)).get(PODS, "team", "a") == {}


def test_a_key_that_does_not_fit_its_certificate_is_said_so(dial, secure, identities):
    _, access = secure

    with pytest.raises(HostError, match="do not fit"):
        dial(replace(access, client_certificate=identities.client, client_key=identities.server_key))


def test_an_authority_that_is_none_is_said_so(dial, secure):
    _, access = secure

    with pytest.raises(HostError, match="not PEM"):
        dial(replace(access, ca=b"hello"))
