"""Watched jobs: their end is announced once, wherever the person is by then, with permission also by the browser."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.jobs import FAIL, job, submit, wait_for_end

KIND = "PyTorchTrainingJob"
# Waits for a file that the test creates in the pod, so that the test decides when the job ends.
GATE = "/tmp/gate"
GATED = f"import os, time\nwhile not os.path.exists({GATE!r}): time.sleep(0.1)\n{FAIL}"
# A browser that notes what it would show, and whether it was asked for its permission.
RECORDER = """
  window.shown = []; window.asked = 0;
  const permission = '%s';
  class Recorder {
    static permission = permission;
    static async requestPermission() { window.asked += 1; return Recorder.permission = 'granted'; }
    constructor(title, options) { window.shown.push([title, options.body]); }
    close() {}
  }
  window.Notification = Recorder;
"""


class Gate:
    """A job that runs until the test opens its gate, and then fails."""

    def __init__(self, cluster, name):
        self.cluster, self.name, self.is_open = cluster, name, False
        submit(cluster, job(name, GATED))

    def open(self):
        ran = self.cluster.paceline("exec", self.name, "--", "touch", GATE)
        assert ran.code == 0, ran.err
        self.is_open = True
        wait_for_end(self.cluster, self.name)


@pytest.fixture
def gate(cluster, request):
    name = re.sub(r"[\W_]+", "-", request.node.name.removeprefix("test_"))[:40].strip("-")
    running = Gate(cluster, name)
    yield running
    if not running.is_open:
        cluster.paceline("delete", name, "--yes")


def open_job(site, name):
    page = site.open(f"jobs/default/{KIND}/{name}")
    expect(page.locator("[data-page=job] .pl-status[data-phase=Running]").first).to_be_visible()
    return page


def announcement(page):
    return page.locator(".pl-watch-end")


def test_the_browser_is_asked_on_a_click_and_both_say_how_the_job_ended(site, gate):
    site.context.add_init_script(RECORDER % "default")
    page = open_job(site, gate.name)
    assert page.evaluate("window.asked") == 0

    page.locator("[data-action=watch]").click()
    expect(page.locator("[data-action=watch]")).to_have_attribute("aria-pressed", "true")
    assert page.evaluate("window.asked") == 1
    page.locator(".pl-nav a[href='/settings']").click()
    gate.open()

    expect(announcement(page)).to_contain_text(gate.name)
    expect(announcement(page)).to_contain_text({"en": "Failed", "zh": "失败"}[site.look.language])
    # The list and its page have the same sentence.
    expect(announcement(page)).to_contain_text("worker-0: exit code 1: ModuleNotFoundError")
    ((title, body),) = page.evaluate("window.shown")
    assert gate.name in title
    # A browser's notification does not change: the line of the log may come after it.
    assert body.startswith("worker-0: exit code 1")
    announcement(page).locator(".ant-notification-notice-actions button").click()
    page.wait_for_url(f"**/jobs/default/{KIND}/{gate.name}")


def test_a_watch_survives_a_reload_and_an_end_in_between(site, gate):
    page = open_job(site, gate.name)
    page.locator("[data-action=watch]").click()
    expect(page.locator("[data-action=watch]")).to_have_attribute("aria-pressed", "true")
    page.goto("about:blank")
    gate.open()
    page.go_back()

    expect(announcement(page)).to_contain_text(gate.name)
    page.reload()
    expect(page.locator("[data-page=job] .pl-status[data-phase=Failed]").first).to_be_visible()
    expect(announcement(page)).to_have_count(0)


def test_one_of_two_tabs_says_it(site, gate):
    site.context.add_init_script(RECORDER % "granted")
    tabs = [open_job(site, gate.name), site.open("jobs")]
    tabs[0].locator("[data-action=watch]").click()
    expect(tabs[0].locator("[data-action=watch]")).to_have_attribute("aria-pressed", "true")
    gate.open()
    expect(tabs[0].locator("[data-page=job] .pl-status[data-phase=Failed]").first).to_be_visible()
    expect(tabs[1].locator(".pl-status[data-phase=Failed]").first).to_be_visible()
    for tab in tabs:
        tab.wait_for_function("localStorage.getItem('paceline.watches') === '[]'")
        # Locks are granted in the order of requests, so every earlier request has been served.
        tab.evaluate("navigator.locks.request('paceline.watches', () => null)")

    assert sum(len(tab.evaluate("window.shown")) for tab in tabs) == 1


def test_the_menu_of_a_row_begins_and_ends_a_watch(site, gate):
    page = site.open(f"jobs?q={gate.name}")
    for count in (1, 0):
        page.locator(".pl-row-menu").click()
        page.locator(".ant-dropdown-menu-item[data-menu-id$='-watch']").click()
        page.wait_for_function(f"JSON.parse(localStorage.getItem('paceline.watches')).length === {count}")
    gate.open()

    expect(page.locator(".pl-status[data-phase=Failed]").first).to_be_visible()
    expect(announcement(page)).to_have_count(0)


@pytest.mark.parametrize("stored", ["{", '[{"uid": 1}, null]', '"<img src=x onerror=window.ran=1>"'])
def test_watches_that_cannot_be_read_are_none(site, stored):
    site.context.add_init_script(f"localStorage.setItem('paceline.watches', {stored!r})")
    page = site.open("jobs")

    expect(page.locator("[data-page=jobs]")).to_be_visible()
    assert page.evaluate("window.ran ?? null") is None
