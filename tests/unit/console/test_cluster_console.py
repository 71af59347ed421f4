"""The console as a Deployment (`paceline kube console`): tokens of people, trusted proxies, probes, addresses."""

import asyncio
from ipaddress import ip_network
from pathlib import Path

import pytest

from paceline.client.rest_config import Access
from paceline.cluster.console.in_cluster import (
    ClusterConsole,
    access_of,
    config_of,
    parse_address,
    parse_apps_host,
    parse_proxy,
    parse_url,
    read_key,
)
from paceline.cluster.console.seal import AesSeal
from paceline.console.sessions import Login, Sessions
from paceline.console.token_login import REVIEW_SECONDS
from paceline.errors import HostError, Unauthorized
from paceline.host.effects import real_world
from tests.unit.console.console_site import ADA, real_cluster_site
from tests.unit.console.test_login import cookies_of, me

ALL = "0.0.0.0"
NO_CREDENTIAL = {"token": ""}


@pytest.fixture
async def site(tmp_path):
    """A console without a credential, which trusts a proxy on this machine."""
    async with real_cluster_site(tmp_path, access=NO_CREDENTIAL, cluster_name="lab") as console:
        yield console


async def test_a_console_without_a_credential_says_before_the_login_that_it_wants_a_token_and_for_which_cluster(site):
    options = await site.ask("GET", "/api/login", {"Host": site.host})

    assert options.json["codes"] is False
    assert options.json["cluster"] == "lab"
    assert options.json["server"].startswith("http://127.0.0.1:")


async def test_a_token_is_all_the_right_there_is(site):
    anonymous = await site.ask("GET", "/k8s/api/v1/namespaces", {"Host": site.host})
    logged_in = await site.log_in(token=ADA)
    person = await me(site, cookies_of(logged_in))
    refused = await site.log_in(token="unknown")

    assert anonymous.code == 401
    assert "log in with a token" in anonymous.json["message"]
    assert person.json["name"] == "ada"
    assert refused.code == 401
    assert not refused.all("set-cookie")


async def test_nobody_can_end_the_sessions_of_everybody_where_all_have_tokens(site):
    cookies = cookies_of(await site.log_in(token=ADA))

    answer = await site.ask("POST", "/api/logout", {**site.page, "Cookie": cookies}, b'{"everywhere": true}')

    assert answer.code == 403
    assert (await me(site, cookies)).code == 200


async def test_probes_are_answered_without_a_session_under_any_host_name(site):
    """A kubelet asks by the pod's address."""
    for host in (site.host, "10.1.2.3:8080", "anything"):
        answer = await site.ask("GET", "/healthz", {"Host": host})
        assert (answer.code, answer.body) == (200, b"ok")
    assert (await site.ask("POST", "/healthz", {**site.page, "Host": "10.1.2.3:8080"})).code == 403
    assert (await site.ask("GET", "/healthz/x", {"Host": "10.1.2.3:8080"})).code == 403
    # The path belongs to the app where an app is at home.
    assert (await site.ask("GET", "/healthz", {"Host": f"tb-x.{site.host}"})).code == 401


async def test_a_trusted_proxy_hands_over_the_person_and_others_cannot(tmp_path):
    header = {"Authorization": f"Bearer {ADA}"}
    async with real_cluster_site(tmp_path, access=NO_CREDENTIAL) as site:
        stranger = await site.ask("GET", "/api/me", {"Host": site.host, **header})
    proxies = (ip_network("127.0.0.1/32"),)
    async with real_cluster_site(tmp_path, access=NO_CREDENTIAL, trusted_proxies=proxies) as site:
        person = await site.ask("GET", "/api/me", {"Host": site.host, **header})
        refused = await site.ask("GET", "/api/me", {"Host": site.host, "Authorization": "Bearer wrong"})
        other_site = await site.ask(
            "POST", "/k8s/api/v1/namespaces", {"Host": site.host, "Origin": "https://evil.example", **header}, b"{}"
        )

    assert stranger.code == 401
    assert person.json["name"] == "ada"
    assert refused.code == 401
    assert other_site.code == 403


async def test_the_cluster_is_asked_again_whether_it_still_accepts_the_token_of_a_proxy(tmp_path):
    proxies, header = (ip_network("127.0.0.0/8"),), {"Authorization": f"Bearer {ADA}"}
    async with real_cluster_site(tmp_path, access=NO_CREDENTIAL, trusted_proxies=proxies) as site:
        sessions = site.gate.runtime.proxied_sessions
        first, second = await sessions.of(ADA), await sessions.of(ADA)
        site.clock.seconds += REVIEW_SECONDS + 1
        third = await sessions.of(ADA)
        listed = await site.ask("GET", "/k8s/api/v1/namespaces", {"Host": site.host, **header})

    assert first is second
    assert third is not first
    assert listed.code == 200


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("0.0.0.0:8080", ("0.0.0.0", 8080)),
        ("8080", ("0.0.0.0", 8080)),
        (":8081", ("0.0.0.0", 8081)),
        ("[::]:443", ("::", 443)),
    ],
)
def test_an_address_to_listen_on_is_read(text, address):
    assert parse_address(text) == address


@pytest.mark.parametrize("text", ["0.0.0.0", "0.0.0.0:0", "0.0.0.0:99999", "0.0.0.0:http", ""])
def test_an_address_without_a_port_is_refused(text):
    with pytest.raises(HostError, match="is not an address to listen on"):
        parse_address(text)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_url, "console.example.com"),
        (parse_url, "https://console.example.com/path"),
        (parse_url, "ftp://console.example.com"),
        (parse_apps_host, "console.example.com"),
        (parse_apps_host, "*.*.example.com"),
        (parse_apps_host, "*."),
        (parse_proxy, "proxy"),
        (parse_proxy, "10.0.0.1/8"),
    ],
)
def test_what_is_no_address_is_refused_with_an_example(parse, text):
    with pytest.raises(HostError, match=r"write for example|is not an address or a network"):
        parse(text)


def config(**changes):
    changes = {"key": b"the key of all replicas", **changes}
    choice = ClusterConsole(access=Access(server="https://10.0.0.1"), listen=(ALL, 8080), **changes)
    return config_of(choice, real_world(), seal=AesSeal(choice.key), tasks=asyncio.TaskGroup())


def test_without_an_address_the_console_is_where_port_forwarding_puts_it():
    assert config().hosts == {"paceline.localhost:8080", "localhost:8080", "127.0.0.1:8080"}
    assert config().apps_host == "paceline.localhost:8080"
    assert config().has_own_credential is False


def test_behind_an_ingress_only_the_public_names_are_the_consoles():
    public = config(urls=(parse_url("https://Console.example.com:443"),), apps_host="console.example.com")

    assert (public.scheme, public.hosts) == ("https", {"console.example.com"})
    assert public.apps_host == "console.example.com"
    assert config(urls=("https://console.example.com",)).apps_host == ""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"urls": ("http://a.example", "https://b.example")}, "all addresses"),
        ({"apps_host": "console.example.com"}, "needs the address of the console"),
        ({"urls": ("http://a.example",), "apps_host": "a.example"}, "only with https"),
    ],
)
def test_addresses_that_do_not_fit_together_are_refused(changes, message):
    with pytest.raises(HostError, match=message):
        config(**changes)


def test_a_short_key_and_a_missing_one_are_refused(tmp_path):
    (tmp_path / "short").write_bytes(b"abc")
    for name in ("short", "missing"):
        with pytest.raises(HostError):
            read_key(tmp_path / name, Path.read_bytes)


def test_outside_of_a_pod_the_api_server_must_be_named(tmp_path):
    (tmp_path / "ca.crt").write_text("certificate")

    with pytest.raises(HostError, match="--server"):
        access_of("", None, {})
    access = access_of("", tmp_path / "ca.crt", {"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    assert access.server == "https://10.0.0.1:443"
    assert (access.ca, access.token, access.client_certificate) == (b"certificate", "", b"")


def test_two_replicas_with_one_key_share_the_sessions():
    first, second, stranger = Sessions(config()), Sessions(config()), Sessions(config(key=b"another key"))
    session = first.begin(Login(name="ada", token=ADA))
    cookies = dict(cookie.partition(";")[0].split("=", 1) for cookie in first.cookies(session, "localhost:8080"))

    assert second.read(cookies, "localhost:8080") == session
    with pytest.raises(Unauthorized):
        stranger.read(cookies, "localhost:8080")
