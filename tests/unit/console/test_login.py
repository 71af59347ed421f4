"""How a session begins and ends: codes, tokens, cookies."""

import asyncio
import base64
import json
import logging

import pytest

from paceline.client.interface import NAMESPACES
from paceline.client.rest_config import Access
from paceline.cluster.console.seal import AesSeal, seal_of
from paceline.console.people import access_with
from paceline.console.sessions import CODE_SECONDS, MAX_CODES, Login, OneTimeCodes, expiry_of
from paceline.errors import Forbidden, ServiceUnavailable
from paceline.host.effects import real_world
from tests.unit.console.console_site import ADA, OWN, MovedClock, Recorder, console_site, real_cluster_site

DAY = 24 * 3600


@pytest.fixture
async def site(tmp_path):
    async with real_cluster_site(tmp_path, is_embedded=True, cluster_name="paceline") as console:
        yield console


def cookies_of(answer):
    """Return the cookies that a browser keeps after an answer."""
    pairs = [cookie.partition(";")[0].partition("=") for cookie in answer.all("set-cookie")]
    return "; ".join(f"{name}={text}" for name, _, text in pairs if text)


async def me(site, cookies):
    return await site.ask("GET", "/api/me", {"Host": site.host, "Cookie": cookies})


async def test_a_code_for_the_kubeconfigs_token_begins_a_session_with_the_consoles_own_credential(site):
    code = (await site.code(OWN)).json["code"]

    answer = await site.log_in(code=code)

    assert answer.code == 200
    assert answer.json["name"] == "admin"
    person = (await me(site, cookies_of(answer))).json
    assert person["name"] == "admin"
    assert person["cluster"]["embedded"] is True
    assert person["cluster"]["version"].endswith("+paceline")
    assert person["rights"]["resourceRules"]
    assert person["features"]["embeddedApps"] is True


async def test_a_code_for_another_token_gives_that_persons_rights_and_no_others(site):
    """A pod on the machine's network reaches the port, and has a token: it must not become an administrator."""
    code = (await site.code(ADA)).json["code"]

    answer = await site.log_in(code=code)

    assert (await me(site, cookies_of(answer))).json["name"] == "ada"
    session = site.gate.runtime.sessions.read(dict([cookies_of(answer).split("=", 1)]), site.host)
    assert session.login.token == ADA


async def test_a_session_acts_in_the_cluster_as_its_person(site):
    cookies = cookies_of(await site.log_in(token=ADA))
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    headers = {**site.page, "Cookie": cookies, "Content-Type": "application/json"}

    answer = await site.ask(
        "POST", "/k8s/apis/authentication.k8s.io/v1/selfsubjectreviews", headers, json.dumps(review).encode()
    )

    assert answer.json["status"]["userInfo"]["username"] == "ada"


async def test_me_lists_namespaces(site):
    for name in ("team-b", "team-a"):
        manifest = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        created = await site.as_page("POST", f"/k8s{NAMESPACES.path()}", manifest, Content_Type="application/json")
        assert created.code == 201

    answer = await site.as_page("GET", "/api/me?namespace=team-a")

    assert answer.json["namespaces"] == ["team-a", "team-b"]
    assert answer.json["namespace"] == "team-a"


async def test_me_says_when_namespaces_may_not_be_listed(tmp_path):
    status = {"kind": "Status", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "no"}
    recorder = Recorder(code=403, pieces=[json.dumps(status).encode()])
    async with console_site(tmp_path, recorder) as site:
        answer = await site.as_page("GET", "/api/me")

        assert (answer.code, answer.json["reason"]) == (403, "Forbidden")
    only_namespaces = OnlyNamespacesForbidden()
    async with console_site(tmp_path, only_namespaces) as site:
        answer = await site.as_page("GET", "/api/me")

        assert answer.json["namespaces"] is None


class OnlyNamespacesForbidden(Recorder):
    async def __call__(self, scope, receive, send):
        status = {"kind": "Status", "reason": "Forbidden", "code": 403, "message": "no"}
        is_list = scope["path"] == "/api/v1/namespaces"
        self.code, self.pieces = (403, [json.dumps(status).encode()]) if is_list else (200, [b"{}"])
        await super().__call__(scope, receive, send)


async def test_a_code_is_used_once(site):
    code = (await site.code()).json["code"]
    assert (await site.log_in(code=code)).code == 200

    again = await site.log_in(code=code)

    assert again.code == 403
    assert "used already" in again.json["message"]
    assert not again.all("set-cookie")


async def test_two_browsers_with_one_code_at_once_get_one_session(site):
    code = (await site.code()).json["code"]

    answers = await asyncio.gather(*(site.log_in(code=code) for _ in range(8)))

    assert sorted(answer.code for answer in answers) == [200] + [403] * 7


async def test_a_late_code_is_refused(site):
    code = (await site.code()).json["code"]
    site.clock.seconds = CODE_SECONDS

    answer = await site.log_in(code=code)

    assert answer.code == 403
    assert "older than 60 seconds" in answer.json["message"]


@pytest.mark.parametrize("body", [{"code": "guess"}, {"code": "x" * 10_000}])
async def test_a_guessed_code_is_refused(site, body):
    assert (await site.log_in(**body)).code == 403


@pytest.mark.parametrize("body", [{}, {"code": ""}, {"code": 1}, {"token": None}, {"token": " "}])
async def test_a_login_without_a_credential_is_refused(site, body):
    assert (await site.log_in(**body)).code == 400


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"code"', b"\xff"])
async def test_a_login_that_cannot_be_read_is_refused(site, body):
    assert (await site.ask("POST", "/api/login", site.page, body)).code == 400


async def test_a_code_has_256_bits():
    world = real_world()
    codes = OneTimeCodes(world.clock, world.ids)

    texts = {codes.create(Login(name="ada")) for _ in range(100)}

    assert len(texts) == 100
    assert all(len(base64.urlsafe_b64decode(f"{text}=")) == 32 for text in texts)


def test_codes_do_not_pile_up():
    world = real_world()
    clock = MovedClock(world.clock)
    codes = OneTimeCodes(clock, world.ids)
    for _ in range(MAX_CODES):
        first = codes.create(Login(name="ada"))
    with pytest.raises(ServiceUnavailable):
        codes.create(Login(name="ada"))
    clock.seconds = 2 * CODE_SECONDS

    assert codes.redeem(codes.create(Login(name="ada"))).name == "ada"
    with pytest.raises(Forbidden, match="not valid"):
        codes.redeem(first)


@pytest.mark.parametrize(
    "extra", [{"Origin": "http://127.0.0.1"}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}]
)
async def test_no_page_gets_a_code(site, extra):
    headers = {"Host": site.host, "Authorization": f"Bearer {OWN}", **extra}

    assert (await site.ask("POST", "/api/codes", headers)).code == 403


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer ", "Bearer wrong", f"Basic {OWN}", OWN])
async def test_no_code_without_a_token_that_the_cluster_accepts(site, authorization):
    headers = {"Host": site.host, **({"Authorization": authorization} if authorization else {})}

    assert (await site.ask("POST", "/api/codes", headers)).code == 401


async def test_a_token_that_the_cluster_does_not_accept_is_refused(site):
    answer = await site.log_in(token="wrong")

    assert answer.code == 401
    assert "does not accept this token" in answer.json["message"]


async def test_a_cookie_is_out_of_reach_of_scripts_other_sites_and_other_hosts(site):
    answer = await site.log_in(token=ADA)

    for cookie in answer.all("set-cookie"):
        name, *attributes = cookie.split("; ")
        assert name.startswith(f"__Host-paceline-{site.port}")
        assert {"Path=/", "HttpOnly", "SameSite=Strict", "Secure"} <= set(attributes)
        assert "Domain" not in cookie


async def test_a_browser_that_refuses_secure_cookies_at_plain_http_uses_localhost(site):
    origin = {**site.page, "Host": f"localhost:{site.port}", "Origin": f"http://localhost:{site.port}"}

    answer = await site.ask("POST", "/api/login", origin, json.dumps({"token": ADA}).encode())

    assert answer.all("set-cookie")[0].startswith(f"paceline-{site.port}=")
    assert "Secure" not in answer.all("set-cookie")[0]


async def test_a_cookie_that_a_page_below_the_host_name_can_set_is_no_session(site):
    """A TensorBoard at a name below can set cookies for paceline.localhost, but none whose name begins with __Host-."""
    planted = site.cookie(host=f"localhost:{site.port}")

    assert (await me(site, planted)).code == 401


async def test_the_token_is_sealed_in_the_cookie(site):
    answer = await site.log_in(token=ADA)

    text = cookies_of(answer)
    assert ADA not in text
    assert ADA.encode() not in base64.urlsafe_b64decode(text.partition(".")[2] + "===")
    assert ADA not in answer.body.decode()


@pytest.mark.parametrize("size", [10, 2_000, 6_000, 9_000])
async def test_a_long_token_is_kept_in_several_cookies(site, size):
    token = "t" * size
    cookies = site.cookie("ada", token)

    assert all(len(cookie) < 4096 for cookie in cookies.split("; "))
    read = site.gate.runtime.sessions.read(dict(cookie.split("=", 1) for cookie in cookies.split("; ")), site.host)
    assert read.login.token == token


async def test_a_token_that_is_too_long_is_refused(tmp_path):
    async with console_site(tmp_path, Recorder()) as site:
        answer = await site.log_in(token="t" * 20_000)

    assert answer.code == 413


async def test_a_shorter_session_removes_the_rest_of_a_longer_one(site):
    answer = await site.log_in(token=ADA)

    emptied = [cookie for cookie in answer.all("set-cookie") if "Max-Age=0" in cookie]
    assert [cookie.partition("=")[0][-2:] for cookie in emptied] == ["-1", "-2", "-3"]


@pytest.mark.parametrize("change", ["cut", "flip", "count", "empty", "other key", "other purpose"])
async def test_a_changed_cookie_is_refused(site, change):
    name, _, text = site.cookie().partition("=")
    forged = {
        "cut": text[:-5],
        "flip": f"{text[:40]}{'A' if text[40] != 'A' else 'B'}{text[41:]}",
        "count": f"{'9' * 5000}.{text}",
        "empty": "1.",
        "other key": "1." + base64.urlsafe_b64encode(AesSeal(b"other").seal(b"[]", b"session")).decode(),
        "other purpose": "1." + base64.urlsafe_b64encode(AesSeal(b"key").seal(b"[]", b"ticket")).decode(),
    }[change]

    assert (await me(site, f"{name}={forged}")).code == 401


async def test_a_session_ends_after_30_days(site):
    cookies = cookies_of(await site.log_in(token=ADA))
    site.clock.seconds = 30 * DAY - 5
    assert (await me(site, cookies)).code == 200
    site.clock.seconds = 30 * DAY + 5

    answer = await me(site, cookies)

    assert answer.code == 401
    assert "has expired" in answer.json["message"]


def jwt(**claims):
    return f"e30.{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip('=')}.sig"


@pytest.mark.parametrize(
    "token", ["", "opaque", "a.b", "a.b.c", "a.!!.c", "a.W10.c", jwt(), jwt(exp="soon"), jwt(exp=[])]
)
def test_a_token_without_a_date_does_not_end_a_session(token):
    assert expiry_of(token) == float("inf")


def test_a_session_ends_with_its_token():
    assert expiry_of(jwt(exp=1893456000)) == 1893456000


async def test_a_session_is_no_longer_than_its_token(site):
    soon = site.clock.now().timestamp() + 100

    session = site.gate.runtime.sessions.begin(Login(name="ada", token=jwt(exp=soon)))

    assert session.expires == soon


async def test_an_open_stream_ends_with_its_session(tmp_path):
    async with console_site(tmp_path, Recorder(), session_seconds=0.5) as site:
        path = "/k8s/api/v1/namespaces/default/pods/x/exec"
        async with site.socket(path, origin=site.origin, Cookie=site.cookie()) as terminal:
            await asyncio.wait_for(terminal.wait_closed(), 20)


async def test_a_logout_removes_all_cookies(site):
    answer = await site.ask("POST", "/api/logout", {**site.page, "Cookie": site.cookie()})

    assert answer.code == 200
    assert cookies_of(answer) == ""
    assert len(answer.all("set-cookie")) == 4


async def test_the_owner_of_the_kubeconfig_ends_all_sessions(site):
    sessions = [site.cookie(), site.cookie("ada", ADA)]
    everywhere = json.dumps({"everywhere": True}).encode()

    by_ada = await site.ask("POST", "/api/logout", {**site.page, "Cookie": sessions[1]}, everywhere)
    by_nobody = await site.ask("POST", "/api/logout", site.page, everywhere)

    assert (by_ada.code, by_nobody.code) == (403, 401)
    assert [(await me(site, cookie)).code for cookie in sessions] == [200, 200]

    by_owner = await site.ask("POST", "/api/logout", {**site.page, "Cookie": sessions[0]}, everywhere)

    assert by_owner.code == 200
    assert [(await me(site, cookie)).code for cookie in sessions] == [401, 401]
    assert (await me(site, site.cookie())).code == 200


async def test_neither_tokens_nor_codes_are_logged(site, caplog):
    caplog.set_level(logging.DEBUG)
    code = (await site.code(OWN)).json["code"]
    await site.log_in(code=code)
    await site.log_in(code=code)
    await site.log_in(token=ADA)
    await site.log_in(token="wrong-secret")

    for secret in (OWN, ADA, code, "wrong-secret"):
        assert secret not in caplog.text


def test_another_person_never_uses_the_consoles_certificate():
    console_access = Access(server="https://127.0.0.1", token="a", client_certificate=b"c", client_key=b"k")

    other = access_with(console_access, "b")

    assert (other.token, other.client_certificate, other.client_key) == ("b", b"", b"")
    assert access_with(console_access, "") is console_access


def test_the_key_is_made_once_and_is_the_owners_only(tmp_path):
    path, world = tmp_path / "keys" / "console.key", real_world()

    sealed = seal_of(path, world).seal(b"data", b"session")

    assert path.stat().st_mode & 0o777 == 0o600
    assert seal_of(path, world).open(sealed, b"session") == b"data"
    assert seal_of(path, world).open(sealed, b"ticket") is None
    seal_of(path, world).renew()
    assert path.stat().st_mode & 0o777 == 0o600
    assert seal_of(path, world).open(sealed, b"session") is None
