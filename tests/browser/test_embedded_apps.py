"""A real browser, a real TensorBoard, a real JupyterLab, and a hostile page in a pod's place, on a real cluster."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import pytest
from playwright.sync_api import Browser, Frame, Locator, Page, expect

from paceline.testing.embedded import Embedded, embedded, wait_until
from tests.browser.conftest import LOOKS, WAIT_MILLISECONDS, Site
from tests.e2e.support.frameworks import environment, folder_of
from tests.e2e.support.manifests import claim, pytorch
from tests.e2e.support.shell_pods import create, show

HOSTILE = (Path(__file__).parent / "hostile_app.py").read_text()
MOUNTS = [{"name": "work", "mountPath": "/t9k/mnt"}]
VOLUMES = [{"name": "work", "persistentVolumeClaim": {"claimName": "work"}}]


def notebook(name: str, **container: Any) -> dict[str, Any]:
    main = {"name": "notebook", "image": "jupyter/minimal-notebook", "volumeMounts": MOUNTS, **container}
    spec = {"type": "jupyter", "template": {"spec": {"containers": [main], "volumes": VOLUMES}}}
    return {"apiVersion": "tensorstack.dev/v1beta1", "kind": "Notebook", "metadata": {"name": name}, "spec": spec}


def tensorboard(name: str, **spec: Any) -> dict[str, Any]:
    logs = {"pvc": [{"name": "work", "subPath": ["log"]}]}
    body = {"image": "tensorboard:test", "logDir": logs, **spec}
    return {"apiVersion": "tensorstack.dev/v1beta1", "kind": "TensorBoard", "metadata": {"name": name}, "spec": body}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    images = {"jupyter/*": environment("jupyter"), "tensorboard": environment("tensorboard")}
    with embedded(*(word for name, place in images.items() for word in ("--image", f"{name}={place}"))) as running:
        command = ["python3", "-c", HOSTILE]
        create(running, claim("work"), tensorboard("mnist"), tensorboard("sleepy", suspend=True), notebook("desk"))
        create(running, notebook("evil", image="python:3.11", command=command))
        yield running


@pytest.fixture(scope="module")
def console(browser: Browser, cluster: Embedded) -> Iterator[Page]:
    """One browser for all tests: it has the cookies of all apps, as that of a person has."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en-US")
    page = Site(cluster=cluster, context=context, look=LOOKS[0]).open()
    page.wait_for_selector("[data-page]:not([data-page=login])")
    yield page
    context.close()


def visit(page: Page, path: str) -> None:
    """Go to a page of the console."""
    page.goto(urljoin(page.url, path))


def is_of_app(url: str) -> bool:
    """Return whether a page is the app's own, and not ours on its host."""
    return "/.paceline/" not in url


def open_app(page: Page, path: str) -> Frame:
    """Open an app in the console, and return the frame that shows it."""
    visit(page, path)
    page.wait_for_selector('[data-app-state="open"]', timeout=WAIT_MILLISECONDS)
    handle = page.wait_for_selector("iframe.pl-app-frame")
    frame = handle.content_frame() if handle else None
    assert frame is not None
    frame.wait_for_url(is_of_app, timeout=WAIT_MILLISECONDS)
    frame.wait_for_load_state("domcontentloaded")
    return frame


def test_tensorboard_opens_inside_the_console(console: Page) -> None:
    frame = open_app(console, "/tensorboards/default/mnist")

    expect(frame.get_by_text("TensorBoard").first).to_be_visible(timeout=WAIT_MILLISECONDS)
    assert frame.url.startswith("http://tb-mnist-")
    assert frame.evaluate("fetch('data/environment').then((answer) => answer.json())")["data_location"]


def test_a_sleeping_tensorboard_wakes_when_it_is_opened(console: Page, cluster: Embedded) -> None:
    frame = open_app(console, "/tensorboards/default/sleepy")

    expect(frame.get_by_text("TensorBoard").first).to_be_visible(timeout=WAIT_MILLISECONDS)
    board = show(cluster, "tensorboard", "sleepy")
    assert board["spec"]["suspend"] is False
    assert board["metadata"]["annotations"]["paceline.dev/opened-at"]


def test_jupyterlab_runs_a_terminal_and_a_kernel_in_the_frame(console: Page, cluster: Embedded) -> None:
    frame = open_app(console, "/notebooks/default/desk")
    launcher = frame.locator(".jp-LauncherCard")
    launcher.first.wait_for(timeout=WAIT_MILLISECONDS)

    launcher.filter(has_text="Terminal").click()
    frame.locator(".jp-Terminal .xterm-helper-textarea").wait_for(state="attached", timeout=WAIT_MILLISECONDS)
    frame.locator(".jp-Terminal").click()
    console.keyboard.type("echo typed > from-terminal\n")
    folder = folder_of(cluster, "work")
    wait_until("the terminal has written", (folder / "from-terminal").exists)
    printed = frame.evaluate(KERNEL, "print(6 * 7)")
    assert printed == "42\n"


# Starts a kernel and runs code in it over its WebSocket, as JupyterLab itself does.
KERNEL = """async (code) => {
  const base = location.pathname.replace(/\\/lab.*$/, '');
  const xsrf = /_xsrf=([^;]*)/.exec(document.cookie)?.[1] ?? '';
  const headers = {'X-XSRFToken': xsrf, 'Content-Type': 'application/json'};
  const started = await fetch(`${base}/api/kernels`, {method: 'POST', headers, body: '{"name": "python3"}'});
  const kernel = await started.json();
  const socket = new WebSocket(`ws://${location.host}${base}/api/kernels/${kernel.id}/channels`);
  await new Promise((resolve, reject) => { socket.onopen = resolve; socket.onerror = reject; });
  const header = {msg_id: '1', session: 's', username: '', msg_type: 'execute_request', version: '5.3'};
  const content = {code, silent: false, store_history: false, allow_stdin: false};
  socket.send(JSON.stringify({header, parent_header: {}, metadata: {}, content, channel: 'shell'}));
  return new Promise((resolve) => {
    let printed = '';
    socket.onmessage = ({data}) => {
      const message = JSON.parse(data);
      if (message.parent_header?.msg_id !== '1') return;
      if (message.msg_type === 'stream') printed += message.content.text;
      // On the channel of the output, and so after it; the reply comes on another one.
      if (message.msg_type === 'status' && message.content.execution_state === 'idle') resolve(printed);
    };
  });
}"""


def test_an_app_opens_in_a_tab_of_its_own(console: Page) -> None:
    open_app(console, "/tensorboards/default/mnist")

    with console.context.expect_page() as opened:
        console.locator(".pl-app-bar a[target=_blank]").click()
    tab = opened.value

    expect(tab.get_by_text("TensorBoard").first).to_be_visible(timeout=WAIT_MILLISECONDS)
    assert tab.evaluate("window.opener") is None


def test_a_browser_that_does_not_resolve_the_name_gets_a_command(console: Page) -> None:
    console.route("**/.paceline/ping", lambda route: route.abort())

    visit(console, "/tensorboards/default/mnist")

    console.wait_for_selector('[data-app-state="unreachable"]', timeout=WAIT_MILLISECONDS)
    expect(console.get_by_text("paceline tensorboard mnist -n default")).to_be_visible()
    console.unroute_all()


def test_at_another_address_of_the_console_an_app_opens_in_a_tab(browser: Browser, cluster: Embedded) -> None:
    """There it is another site, to whose frames the browser sends no cookie."""
    context = browser.new_context(locale="en-US")
    page = context.new_page()
    login = Site(cluster=cluster, context=context, look=LOOKS[0]).login_url("tensorboards/default/mnist")
    page.goto(login.replace("paceline.localhost", "127.0.0.1"))
    page.wait_for_selector('[data-app-state="elsewhere"]', timeout=WAIT_MILLISECONDS)

    with context.expect_page() as opened:
        page.get_by_role("button", name="New tab").last.click()

    expect(opened.value.get_by_text("TensorBoard").first).to_be_visible(timeout=WAIT_MILLISECONDS)
    assert opened.value.evaluate("window.opener") is None
    context.close()


def card(console: Page, name: str) -> Locator:
    return console.locator(f'[data-name="{name}"]')


def test_cards_show_what_an_app_is_for_and_how_it_is(console: Page, cluster: Embedded) -> None:
    huge = {"limits": {"nvidia.com/gpu": "9"}}
    create(cluster, tensorboard("huge", resources=huge))

    visit(console, "/tensorboards")

    expect(card(console, "huge")).to_contain_text("work/log")
    expect(card(console, "huge")).to_contain_text(re.compile(r"9 . nvidia\.com/gpu"))
    expect(card(console, "huge").locator(".pl-app-waiting")).to_contain_text("nvidia.com/gpu")
    visit(console, "/tensorboards/default/huge")
    expect(console.locator(".pl-app-opening")).to_contain_text("nvidia.com/gpu")
    assert cluster.kubectl("delete", "tensorboard", "huge").code == 0


def test_an_app_is_paused_opened_again_and_deleted_from_its_card(console: Page, cluster: Embedded) -> None:
    create(cluster, tensorboard("short-lived"))
    visit(console, "/tensorboards")
    board = card(console, "short-lived")
    expect(board).to_have_attribute("data-phase", "Running", timeout=WAIT_MILLISECONDS)

    board.get_by_role("button", name="Pause").click()
    console.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(board).to_have_attribute("data-phase", "Paused")
    board.get_by_role("button", name="Wake and open").click()
    console.wait_for_selector('[data-app-state="open"]')
    console.get_by_role("button", name="Back to the TensorBoards").click()
    expect(board).to_have_attribute("data-phase", "Running")
    board.get_by_role("button", name="Delete").click()
    console.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(board).to_have_count(0)
    assert "short-lived" not in cluster.kubectl("get", "tensorboards").out


def test_a_shell_in_a_replica_follows_the_size_of_its_window(console: Page, cluster: Embedded) -> None:
    create(cluster, pytorch("shell", command=["sleep", "3600"], workers=1))
    visit(console, "/jobs/default/PyTorchTrainingJob/shell/terminal")
    console.wait_for_selector('[data-terminal="connected"]')
    screen = console.locator(".pl-terminal-screen .xterm-rows")

    sizes = []
    for width in (1280, 900):
        console.set_viewport_size({"width": width, "height": 800})
        console.keyboard.type(f"clear; stty size | sed 's/^/{width}: /'\n")
        expect(screen).to_contain_text(re.compile(rf"{width}: \d+ \d+"))
        sizes.append(re.search(rf"{width}: (\d+) (\d+)", screen.inner_text()))
    columns = [int(size[2]) for size in sizes if size]
    assert columns[0] > columns[1]
    console.keyboard.type("exit 7\n")
    expect(console.locator(".pl-terminal-bar")).to_contain_text("exit code 7")
    console.set_viewport_size({"width": 1280, "height": 800})


# A hostile page: what its scripts try. Each returns what it has got, or raises.


@pytest.fixture
def evil(console: Page) -> Frame:
    frame = open_app(console, "/notebooks/default/evil")
    # Its scripts run, whether the browser draws the frame or saves itself the trouble.
    frame.wait_for_selector("#hostile", state="attached")
    return frame


def caught(script: str) -> str:
    """Return a script that gives its value, or the name of its error."""
    return f"(() => {{ try {{ return ({script}) }} catch (error) {{ return error.name }} }})()"


@pytest.mark.parametrize(
    "script",
    [
        "parent.document.body.innerHTML",
        "parent.location.href",
        "parent.localStorage.length",
        "parent.document.cookie",
        "parent.frames[0].frameElement.src",
        "top.document.querySelector('iframe').src",
        "frameElement.src",
        "parent.fetch('/api/me')",
        "parent.eval('1')",
        "parent.history.length",
    ],
)
def test_the_page_reads_nothing_of_the_console(evil: Frame, script: str) -> None:
    got = evil.evaluate(caught(script))

    assert got in ("SecurityError", "TypeError")


@pytest.mark.parametrize(
    "call",
    [
        "fetch(CONSOLE + '/api/me', {credentials: 'include'})",
        "fetch(CONSOLE + '/k8s/api/v1/secrets', {credentials: 'include'})",
        "fetch(CONSOLE + '/', {credentials: 'include'})",
        "fetch(CONSOLE + '/api/embed', {method: 'POST', headers: {'X-Paceline': '1'}, credentials: 'include'})",
        "fetch(OTHER + '/', {credentials: 'include'})",
        "import(CONSOLE + '/api/me')",
        "navigator.serviceWorker.register(location.pathname.replace(/lab.*/, 'sw.js'))",
        "navigator.serviceWorker.register('/.paceline/sw.js')",
    ],
)
def test_the_page_fetches_nothing(evil: Frame, console: Page, call: str) -> None:
    got = evil.evaluate(f"({with_names(console, call)}).then(() => 'got it', (error) => error.name)")

    assert got in ("TypeError", "SecurityError")


def with_names(console: Page, call: str) -> str:
    origin = console.evaluate("location.origin")
    other = other_app(console)
    return call.replace("CONSOLE", json.dumps(origin)).replace("OTHER", json.dumps(other))


def other_app(console: Page) -> str:
    """Return the origin of the real JupyterLab, for which this browser has a cookie."""
    if not any("nb-desk-" in cookie["domain"] for cookie in console.context.cookies()):
        tab = console.context.new_page()
        tab.goto(console.url)
        open_app(tab, "/notebooks/default/desk")
        tab.close()
    domain = next(cookie["domain"] for cookie in console.context.cookies() if "nb-desk-" in cookie["domain"])
    port = console.evaluate("location.port")
    return f"http://{domain}:{port}"


@pytest.mark.parametrize(
    ("path", "protocol"),
    [
        ("CONSOLE/api/live", ""),
        ("CONSOLE/k8s/api/v1/namespaces/default/pods/x/exec?command=sh&stdin=true&tty=true", "v5.channel.k8s.io"),
        ("OTHER/t9k/notebooks/projects/default/name/desk/terminals/websocket/1", ""),
        ("OTHER/t9k/notebooks/projects/default/name/desk/api/events/subscribe", ""),
    ],
)
def test_the_page_opens_no_websocket_elsewhere(evil: Frame, console: Page, path: str, protocol: str) -> None:
    url = path.replace("CONSOLE", console.evaluate("location.origin")).replace("OTHER", other_app(console))
    script = """([url, protocol]) => new Promise((resolve) => {
      const socket = protocol ? new WebSocket(url, protocol) : new WebSocket(url);
      socket.onopen = () => resolve('open');
      socket.onerror = () => resolve('refused');
    })"""

    assert evil.evaluate(script, [url.replace("http", "ws", 1), protocol]) == "refused"


@pytest.mark.parametrize("target", ["_blank", "inner"])
@pytest.mark.parametrize("path", ["/api/logout", "/api/actions", "/k8s/api/v1/namespaces/default/pods"])
def test_a_form_changes_nothing(evil: Frame, console: Page, path: str, target: str) -> None:
    script = """([url, target]) => new Promise((resolve) => {
      const inner = document.createElement('iframe');
      inner.name = 'inner';
      inner.onload = () => setTimeout(resolve, 0);
      document.body.append(inner);
      const form = document.createElement('form');
      Object.assign(form, {method: 'POST', action: url, target, enctype: 'text/plain'});
      document.body.append(form);
      form.submit();
      if (target === '_blank') resolve();
    })"""
    with console.context.expect_event("response", lambda answer: answer.url.endswith(path)) as answered:
        evil.evaluate(script, [console.evaluate("location.origin") + path, target])

    assert answered.value.status == 403
    assert is_logged_in(console)


def is_logged_in(console: Page) -> bool:
    return bool(console.evaluate("fetch('/api/me').then((answer) => answer.ok)"))


def test_the_page_sets_no_cookie_of_the_console(evil: Frame, console: Page) -> None:
    port = console.evaluate("location.port")
    cookies = own_cookies(console)
    for name in (f"__Host-paceline-{port}", f"paceline-{port}", f"__Host-paceline-app-{port}", ""):
        for end in ("Domain=paceline.localhost; Path=/", "Domain=paceline.localhost; Path=/; Secure", "Path=/; Secure"):
            evil.evaluate(f"document.cookie = '{name}=evil; {end}'")
            evil.evaluate(f"document.cookie = '=__Host-paceline-{port}=evil; {end}'")

    assert own_cookies(console) == cookies
    assert is_logged_in(console)
    console.reload()
    console.wait_for_selector('[data-app-state="open"]', timeout=WAIT_MILLISECONDS)


def own_cookies(console: Page) -> set[tuple[str, str, str]]:
    """Return the session of the console and the access to apps; no page can read or write these."""
    cookies = [cookie for cookie in console.context.cookies() if cookie["name"].startswith("__Host-paceline")]
    return {(cookie["name"], cookie["domain"], cookie["value"]) for cookie in cookies if cookie["httpOnly"]}


def test_headers_of_the_pod_leave_the_console_alone(evil: Frame, console: Page) -> None:
    """It clears the site's data and sets a cookie for the whole domain with every answer."""
    assert is_logged_in(console)
    wide = [cookie for cookie in console.context.cookies() if cookie["name"] == "wide"]
    assert [cookie["domain"] for cookie in wide] == [evil.evaluate("location.hostname")]


def test_the_page_reads_neither_its_cookie_nor_its_ticket(evil: Frame) -> None:
    assert "__Host-paceline-app" not in evil.evaluate("document.cookie")
    traces = "[location.href, document.referrer, window.name, ...performance.getEntries().map((entry) => entry.name)]"
    assert not [trace for trace in evil.evaluate(traces) if "#" in trace or "/.paceline" in trace]


def test_a_ticket_that_was_seen_is_worth_nothing(console: Page, evil: Frame) -> None:
    src = console.get_attribute("iframe.pl-app-frame", "src") or ""
    ticket = src.partition("#")[2]
    assert ticket

    replay = """(ticket) => fetch('/.paceline/open', {method: 'POST', headers: {'X-Paceline': '1'}, body: ticket})
      .then((answer) => answer.status)"""
    assert evil.evaluate(replay, ticket) == 403


@pytest.mark.parametrize("path", ["/", "/jobs", "/api/me", "/k8s/api/v1/secrets", "OTHER"])
def test_the_page_shows_neither_console_nor_another_app_in_a_frame(evil: Frame, console: Page, path: str) -> None:
    url = other_app(console) + "/" if path == "OTHER" else console.evaluate("location.origin") + path
    script = """(url) => new Promise((resolve) => {
      const inner = document.createElement('iframe');
      inner.onload = () => resolve(null);
      inner.src = url;
      document.body.append(inner);
    })"""
    evil.evaluate(script, url)

    (inner,) = evil.child_frames
    # The browser shows an error page of its own in place of what may not be framed.
    assert inner.evaluate("location.protocol") == "chrome-error:"


@pytest.mark.parametrize(
    "script",
    [
        "top.location = 'http://evil.example/'",
        "parent.location.replace('about:blank')",
        "window.open('http://evil.example/', '_top')",
        "Object.assign(document.createElement('a'), {href: 'http://evil.example/', target: '_top'}).click()",
        "document.domain = 'paceline.localhost'",
        "alert('log in again')",
    ],
)
def test_the_page_stays_in_its_frame(evil: Frame, console: Page, script: str) -> None:
    url, dialogs = console.url, []
    console.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))

    evil.evaluate(caught(script))

    assert evil.evaluate(caught("parent.document.title")) == "SecurityError"
    assert (console.url, dialogs) == (url, [])


def test_a_window_of_the_console_is_out_of_reach(evil: Frame, console: Page) -> None:
    with console.context.expect_page() as opened:
        evil.evaluate("url => { window.handle = window.open(url) }", console.evaluate("location.origin"))
    opened.value.wait_for_load_state()

    assert evil.evaluate("window.handle === null || handle.closed")
    opened.value.close()


def test_a_redirect_of_the_pod_stays_on_its_host(evil: Frame) -> None:
    answer = evil.evaluate(
        "fetch(location.pathname.replace(/lab.*/, 'leave'), {redirect: 'follow'}).then((answer) => answer.url)"
    )

    assert answer == evil.evaluate("location.origin + '/gone'")


@pytest.mark.usefixtures("evil")
def test_forged_messages_do_not_make_the_console_loop(console: Page) -> None:
    requests: list[str] = []
    console.on("request", lambda request: requests.append(request.url) if request.url.endswith("/api/embed") else None)

    for _ in range(5):
        current = open_frame(console)
        current.evaluate("parent.postMessage({type: 'paceline.embedded-app', state: 'refused'}, '*')")
        console.wait_for_selector('[data-app-state="open"]', timeout=WAIT_MILLISECONDS)
        open_frame(console)

    assert len(requests) <= 2


def open_frame(console: Page) -> Frame:
    handle = console.wait_for_selector("iframe.pl-app-frame")
    frame = handle.content_frame() if handle else None
    assert frame is not None
    frame.wait_for_selector("#hostile", state="attached", timeout=WAIT_MILLISECONDS)
    return frame
