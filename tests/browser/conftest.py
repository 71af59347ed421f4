"""Fixtures of the browser tests: one browser, one cluster per module, and a logged-in page.

A page that logs an error fails its test.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from paceline.testing.embedded import Embedded, embedded

CHROMIUM = os.environ.get("PACELINE_CHROMIUM", "")
# `tools/setup test-all` installs the browser and Playwright, and names the browser. Others have neither.
collect_ignore_glob = [] if CHROMIUM else ["test_*.py"]
if CHROMIUM:
    from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

# Where a failed test leaves a picture and a trace of its page.
FAILURES = Path(os.environ.get("PACELINE_BROWSER_FAILURES", "")) if "PACELINE_BROWSER_FAILURES" in os.environ else None
WAIT_MILLISECONDS = 60_000
if CHROMIUM:
    # Five seconds otherwise, which a busy machine needs now and then.
    expect.set_options(timeout=WAIT_MILLISECONDS)
# What Chromium says when a server is gone, which some tests want.
EXPECTED = re.compile(r"net::ERR_|WebSocket connection to|status of (401|403|404|409|422|502|503)")


@dataclass(frozen=True, kw_only=True)
class Look:
    """How a page is shown: language and theme."""

    language: str
    theme: str

    @property
    def locale(self) -> str:
        return "zh-CN" if self.language == "zh" else "en-US"


LOOKS = (Look(language="en", theme="light"), Look(language="zh", theme="dark"))


@dataclass
class Site:
    """The console of one cluster, as one browser sees it."""

    cluster: Embedded
    context: "BrowserContext"
    look: Look
    # What pages reported that none may: exceptions, and violations of the content security policy.
    complaints: list[str] = field(default_factory=list)

    def login_url(self, page: str = "") -> str:
        """Return an address that logs in once."""
        ran = self.cluster.paceline("ui", *([page] if page else []), "--no-browser")
        assert ran.code == 0, ran.err
        return ran.out.strip().splitlines()[-1]

    @property
    def address(self) -> str:
        return self.login_url().partition("/login")[0]

    def open(self, page: str = "") -> "Page":
        """Open a page of the console, logged in."""
        tab = self.context.new_page()
        tab.set_default_timeout(WAIT_MILLISECONDS)
        tab.on("pageerror", lambda error: self.complaints.append(f"exception: {error}"))
        tab.on("console", self._listen)
        tab.goto(self.login_url(page))
        tab.locator("[data-page]:not([data-page=login])").first.wait_for()
        return tab

    def _listen(self, message) -> None:
        if message.type == "error" and not EXPECTED.search(message.text):
            self.complaints.append(message.text)


# Scope is the package, not the session: Playwright's event loop counts as running in this thread until it stops,
# and the worker goes on to other tests.
@pytest.fixture(scope="package")
def browser() -> Iterator["Browser"]:
    expect.set_options(timeout=WAIT_MILLISECONDS)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Embedded]:
    with embedded() as running:
        yield running


@pytest.fixture
def look(request) -> Look:
    """By turns, so that each module is seen in both: the place of the test in its file decides."""
    names = [item.name for item in request.session.items if item.path == request.node.path]
    return LOOKS[sorted(names).index(request.node.name) % len(LOOKS)]


@pytest.fixture
def site(request, browser, cluster, look) -> Iterator[Site]:
    """The console in a browser of its own, 1280 pixels wide."""
    context = browser.new_context(
        locale=look.locale, color_scheme=look.theme, viewport={"width": 1280, "height": 800}, accept_downloads=True
    )
    if FAILURES:
        context.tracing.start(screenshots=True, snapshots=True)
    running = Site(cluster=cluster, context=context, look=look)
    try:
        yield running
        if FAILURES and getattr(request.node, "has_failed", False):
            keep(request.node.name, running)
    finally:
        context.close()
    assert not running.complaints


def keep(name: str, site: Site) -> None:
    FAILURES.mkdir(parents=True, exist_ok=True)
    for number, page in enumerate(site.context.pages):
        page.screenshot(path=FAILURES / f"{name}-{number}.png", full_page=True)
    site.context.tracing.stop(path=FAILURES / f"{name}.zip")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    report = yield
    if report.when == "call":
        item.has_failed = report.failed
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """Run the tests of a file in their order: they share a cluster, and later ones change what it holds."""
    here = Path(__file__).parent
    ours = [item for item in items if item.path.parent == here]
    ours.sort(key=lambda item: (str(item.path), item.function.__code__.co_firstlineno))
    items[:] = [*(item for item in items if item.path.parent != here), *ours]
