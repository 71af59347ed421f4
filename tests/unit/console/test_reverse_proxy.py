"""`/k8s/…`: what reaches the API server, and what comes back into the console's origin."""

import asyncio
from http.client import IncompleteRead

import pytest
from websockets.exceptions import InvalidStatus

from tests.unit.client.identities import make_identities
from tests.unit.console.console_site import ADA, OWN, Recorder, console_site

EXEC = "/k8s/api/v1/namespaces/default/pods/worker-0/exec?command=sh&stdin=true&tty=true"


@pytest.fixture
def cluster():
    return Recorder()


@pytest.fixture
async def site(tmp_path, cluster):
    async with console_site(tmp_path, cluster) as console:
        yield console


async def test_a_request_arrives_as_it_was_sent_with_the_persons_credential(site, cluster):
    cookie = site.cookie("ada", ADA)
    path = "/k8s/apis/batch.tensorstack.dev/v1beta1/namespaces/a/pytorchtrainingjobs/x?dryRun=All&labelSelector=a%3Db"
    headers = {"Cookie": cookie, "Content_Type": "application/merge-patch+json", "Accept": "application/json"}

    answer = await site.as_page("PATCH", path, b'{"a": 1}', **headers)

    assert answer.code == 200
    [head] = cluster.heads
    assert (head["method"], head["path"]) == ("PATCH", path.removeprefix("/k8s").partition("?")[0])
    assert head["query"] == "dryRun=All&labelSelector=a%3Db"
    assert head["headers"]["authorization"] == f"Bearer {ADA}"
    assert head["headers"]["content-type"] == "application/merge-patch+json"
    assert cluster.body == b'{"a": 1}'


async def test_only_the_headers_that_the_api_needs_are_passed_on(site, cluster):
    await site.as_page(
        "GET",
        "/k8s/api/v1/pods",
        Accept="application/json;as=Table",
        Authorization=f"Bearer {ADA}",
        Impersonate_User="system:admin",
        Impersonate_Group="system:masters",
        X_Remote_User="system:admin",
        X_Forwarded_For="10.0.0.1",
        Referer=f"{site.origin}/jobs",
        User_Agent="Mozilla/5.0",
        Accept_Language="zh",
        Upgrade="h2c",
        Connection="Authorization",
    )

    [head] = cluster.heads
    assert head["headers"] == {
        "host": head["headers"]["host"],
        "authorization": f"Bearer {OWN}",
        "accept": "application/json;as=Table",
        "connection": "close",
    }
    assert head["headers"]["host"].startswith("127.0.0.1:")


async def test_only_the_headers_that_the_page_needs_come_back(site, cluster):
    cluster.headers = [
        *((b"content-type", b"application/json"), (b"warning", b'299 - "old field"'), (b"audit-id", b"1")),
        *((b"set-cookie", b"a=b"), (b"location", b"http://evil.example"), (b"access-control-allow-origin", b"*")),
        *((b"content-security-policy", b"script-src *"), (b"refresh", b"0;url=http://evil.example")),
        *((b"clear-site-data", b'"*"'), (b"service-worker-allowed", b"/"), (b"link", b"</x.js>; rel=preload")),
    ]

    answer = await site.as_page("GET", "/k8s/api/v1/pods")

    names = {name.lower() for name, _ in answer.headers}
    assert {"content-type", "warning", "audit-id"} <= names
    assert not names & {"set-cookie", "location", "access-control-allow-origin", "refresh", "clear-site-data", "link"}
    assert not names & {"service-worker-allowed"}
    assert answer.one("content-security-policy") == "default-src 'none'; frame-ancestors 'none'; sandbox"


@pytest.mark.parametrize(
    "media_type",
    ["text/html", "text/javascript", "application/javascript", "image/svg+xml", "text/css", "text/xml", "", "json"],
)
async def test_what_a_browser_could_run_is_a_download(site, cluster, media_type):
    """A pod behind a service proxy answers with what it likes."""
    cluster.headers = [(b"content-type", media_type.encode())] if media_type else []

    answer = await site.as_page("GET", "/k8s/api/v1/namespaces/a/services/evil:http/proxy/evil.js")

    assert answer.one("content-type") == "application/octet-stream"
    assert answer.one("content-disposition") == "attachment"
    assert answer.one("x-content-type-options") == "nosniff"


@pytest.mark.parametrize(
    "media_type", ["application/json", "application/json;stream=watch", "text/plain; charset=utf-8", "application/yaml"]
)
async def test_data_keeps_its_media_type(site, cluster, media_type):
    cluster.headers = [(b"content-type", media_type.encode())]

    answer = await site.as_page("GET", "/k8s/api/v1/pods")

    assert answer.one("content-type") == media_type


async def test_two_media_types_are_none(site, cluster):
    cluster.headers = [(b"content-type", b"application/json"), (b"content-type", b"text/html")]

    answer = await site.as_page("GET", "/k8s/api/v1/pods")

    assert answer.all("content-type") == ["application/octet-stream"]


async def test_an_address_that_a_person_opens_is_not_shown(site):
    cookie = {"Host": site.host, "Cookie": site.cookie(), "Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}

    answer = await site.ask("GET", "/k8s/api/v1/pods", cookie)

    assert answer.code == 403
    assert "kubectl get --raw" in answer.json["message"]


@pytest.mark.parametrize(
    "path",
    [
        "/k8s/../api/v1/pods",
        "/k8s/api/../../etc",
        "/k8s/api/v1/%2e%2e/secrets",
        "/k8s/api/v1/%2E%2E/secrets",
        "/k8s/api/v1/.%2e/secrets",
        "/k8s/api/v1/./pods",
        "/k8s/api/v1/namespaces/a%2fb/pods",
        "/k8s/api/v1/namespaces/a%2Fb/pods",
        "/k8s/api/v1/namespaces/a%252fb/pods",
        "/k8s/api/v1/namespaces/a%5cb/pods",
        "/k8s/api/v1\\pods",
        "/k8s/api//v1/pods",
        "/k8s//evil.example/api/v1/pods",
        "/k8s/api/v1/pods/..",
        "/k8s/api/v1/pods;a=b",
        "/k8s/api/v1/po%00ds",
        "/k8s/api/v1/po%0d%0aHost:evil",
        "/k8s/apix/v1",
        "/k8s/logs/",
        "/k8s/healthz",
        "/k8s/.well-known/openid-configuration",
        "/k8s/",
        "/k8s",
        "/k8s@evil.example/",
        "/k8shttp://evil.example/api",
    ],
)
async def test_a_path_that_could_be_read_as_another_one_reaches_nobody(site, cluster, path):
    answer = await site.as_page("GET", path)

    assert answer.code in (400, 404)
    assert cluster.heads == []


async def test_a_large_body_is_streamed_both_ways(site, cluster):
    cluster.pieces = [b"x" * 65536] * 64
    cluster.headers = [(b"content-type", b"text/plain")]

    answer = await site.as_page("POST", "/k8s/api/v1/namespaces/a/configmaps", b"y" * (2 << 20))

    assert len(answer.body) == 64 * 65536
    assert len(cluster.body) == 2 << 20


async def test_a_body_in_chunks_is_passed_on(site, cluster):
    headers = {**site.page, "Cookie": site.cookie(), "Transfer-Encoding": "chunked"}

    answer = await site.ask("POST", "/k8s/api/v1/namespaces", headers, b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")

    assert answer.code == 200
    assert cluster.body == b"abcde"


async def test_an_answer_that_breaks_off_is_not_taken_for_a_whole_one(tmp_path):
    async def broken(scope, receive, send):
        await receive()
        length = [(b"content-type", b"text/plain"), (b"content-length", b"100")]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        scope["state"]["abort"]()

    async with console_site(tmp_path, broken) as site:
        with pytest.raises((ConnectionError, IncompleteRead)):
            await site.as_page("GET", "/k8s/api/v1/pods")


async def test_a_cluster_that_does_not_answer_is_said(tmp_path):
    async with console_site(tmp_path, Recorder(), access={"server": "http://127.0.0.1:1"}) as site:
        answer = await site.as_page("GET", "/k8s/api/v1/pods")

    assert (answer.code, answer.json["reason"]) == (503, "ServiceUnavailable")


async def test_a_prefix_of_the_servers_url_precedes_every_path(tmp_path, cluster):
    async with console_site(tmp_path, cluster) as plain:
        server = plain.gate.runtime.config.access.server
        async with console_site(tmp_path, Recorder(), access={"server": f"{server}/clusters/a"}) as site:
            await site.as_page("GET", "/k8s/version")

    assert cluster.heads[0]["path"] == "/clusters/a/version"


@pytest.fixture(scope="module")
def identities():
    return make_identities()


@pytest.fixture
def server_files(tmp_path, identities):
    certificate, key = tmp_path / "server.crt", tmp_path / "server.key"
    certificate.write_bytes(identities.server)
    key.write_bytes(identities.server_key)
    return certificate, key


async def test_the_kubeconfigs_authority_is_asked_for_the_servers_certificate(
    tmp_path, cluster, identities, server_files
):
    good = {"ca": identities.authority, "tls_server_name": "api.test"}
    async with console_site(tmp_path, cluster, tls=server_files, access=good) as site:
        assert (await site.as_page("GET", "/k8s/version")).code == 200
        async with site.socket(EXEC, origin=site.origin, Cookie=site.cookie()) as terminal:
            await terminal.send(b"\0ls")
            assert await terminal.recv() == b"pod:\0ls"


@pytest.mark.parametrize("fault", ["other authority", "other name"])
async def test_a_server_that_the_kubeconfig_does_not_vouch_for_gets_no_credential(
    tmp_path, cluster, identities, server_files, fault
):
    access = {
        "other authority": {"ca": make_identities().authority, "tls_server_name": "api.test"},
        "other name": {"ca": identities.authority, "tls_server_name": "other.test"},
    }[fault]
    async with console_site(tmp_path, cluster, tls=server_files, access=access) as site:
        assert (await site.as_page("GET", "/k8s/version")).code in (500, 503)
        with pytest.raises(InvalidStatus):
            await open_and_close(site)

    assert cluster.heads == []


async def open_and_close(site):
    async with site.socket(EXEC, origin=site.origin, Cookie=site.cookie()):
        pass


async def test_a_terminal_is_passed_on_with_its_protocol(site, cluster):
    async with site.socket(EXEC, origin=site.origin, Cookie=site.cookie("ada", ADA)) as terminal:
        assert terminal.subprotocol == "v5.channel.k8s.io"
        await terminal.send(b"\0ls\n")
        assert await terminal.recv() == b"pod:\0ls\n"

    [head] = cluster.heads
    assert head["path"] == "/api/v1/namespaces/default/pods/worker-0/exec"
    assert head["query"] == "command=sh&stdin=true&tty=true"
    assert head["protocols"] == ["v5.channel.k8s.io"]
    assert head["headers"]["authorization"] == f"Bearer {ADA}"
    assert not {"cookie", "origin"} & set(head["headers"])


@pytest.mark.parametrize(
    ("path", "protocols", "code"),
    [
        ("/k8s/api/v1/namespaces/a/services/x:http/proxy/", ["v5.channel.k8s.io"], 403),
        ("/k8s/api/v1/namespaces/a/pods/x/portforward", ["v5.channel.k8s.io"], 403),
        ("/k8s/api/v1/namespaces/a/pods/x/proxy/exec", ["v5.channel.k8s.io"], 403),
        ("/k8s/api/v1/namespaces/a/pods?watch=true", ["v5.channel.k8s.io"], 403),
        ("/k8s/api/v1/namespaces/a/pods/../x/exec", ["v5.channel.k8s.io"], 400),
        (EXEC, ["base64url.bearer.authorization.k8s.io.b3du"], 400),
        (EXEC, None, 400),
    ],
)
async def test_no_other_websocket_is_passed_on(site, cluster, path, protocols, code):
    with pytest.raises(InvalidStatus) as refused:
        async with site.socket(path, origin=site.origin, protocols=protocols, Cookie=site.cookie()):
            pass

    assert refused.value.response.status_code == code
    assert cluster.heads == []


async def test_a_terminal_that_the_cluster_refuses_says_why(tmp_path):
    async def refusing(_scope, receive, send):
        await receive()
        await send({"type": "websocket.http.response.start", "status": 403, "headers": []})
        await send({"type": "websocket.http.response.body", "body": b"no exec for you"})

    async with console_site(tmp_path, refusing) as site:
        with pytest.raises(InvalidStatus) as refused:
            await open_and_close(site)

    assert refused.value.response.status_code == 403
    assert b"no exec for you" in refused.value.response.body


async def test_many_requests_at_once_are_answered(site):
    answers = await asyncio.gather(*(site.as_page("GET", "/k8s/version") for _ in range(40)))

    assert {answer.code for answer in answers} == {200}
