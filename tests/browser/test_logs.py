"""Logs in the console: merged, followed, searched, linked; and whole, whatever is killed."""

import os
import re
import signal

import pytest
from playwright.sync_api import expect

from paceline.testing.embedded import wait_until
from tests.browser.jobs import job, submit, wait_for_end

# All lines of a chunk of output have one timestamp, so a cut between two of them must be counted, not timed.
TICK = (
    "import time\n"
    "for number in range(0, 1000000, 5):\n"
    "    print('\\n'.join(f'tick {number + part}' for part in range(5)), flush=True); time.sleep(0.25)"
)
HOSTILE = (
    "print('<img src=x onerror=\"document.title=1\"> \\u202egnp.exe \\x1b[31mred\\x1b[0m \\x07')\n"
    "print('0%\\r50%\\r100%')\n"
    "for number in range(300): print('line', number)\n"
    "import no_such_module"
)
SHOWN = """() => {
  const box = document.querySelector('.log-scroller').getBoundingClientRect();
  return [...document.querySelectorAll('.log-row')]
    .map((row) => ({ row, place: row.getBoundingClientRect() }))
    .filter(({ place }) => place.bottom > box.top && place.top < box.bottom)
    .map(({ row }) => [Number(row.dataset.row), row.querySelector('.log-text').textContent]);
}"""
SCROLL = f"""async () => {{
  const shown = {SHOWN};
  const log = document.querySelector('.log-scroller');
  const lines = new Map();
  const last = Number(log.dataset.total) - 1;
  while (!lines.has(last)) {{
    for (const [row, text] of shown()) lines.set(row, text);
    log.dispatchEvent(new WheelEvent('wheel', {{ deltaY: 400, cancelable: true, bubbles: true }}));
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  }}
  return [...lines];
}}"""


@pytest.fixture(scope="module", autouse=True)
def jobs(cluster):
    submit(cluster, job("ticks", TICK, replicas=2), job("hostile", HOSTILE))
    wait_for_end(cluster, "hostile")


def open_logs(site, name):
    page = site.open(f"jobs/default/PyTorchTrainingJob/{name}/logs")
    page.locator(".log-row").first.wait_for()
    return page


def shown(page):
    """Return the lines on the screen by row."""
    return dict(page.evaluate(SHOWN))


def all_lines(page):
    """Return every line that is there now, by scrolling down from the first one."""
    page.locator(".log-scroller").focus()
    page.keyboard.press("Home")
    wait_until("the first line is shown", lambda: 0 in shown(page))
    return dict(page.evaluate(SCROLL))


def last_tick(page):
    return max((int(text.split()[1]) for text in shown(page).values() if text.startswith("tick ")), default=-1)


def test_lines_of_all_replicas_are_merged_by_time_and_followed(site):
    page = open_logs(site, "ticks")

    expect(page.locator(".log-prefix", has_text="worker-0").first).to_be_visible()
    expect(page.locator(".log-prefix", has_text="worker-1").first).to_be_visible()
    stamps = page.evaluate("[...document.querySelectorAll('.log-row')].map((row) => row.dataset.stamp)")
    assert stamps == sorted(stamps)
    first_seen = last_tick(page)
    wait_until("new lines come", lambda: last_tick(page) > first_seen)


def test_a_failed_job_opens_at_its_traceback(site):
    page = open_logs(site, "hostile")
    page.locator(".log-row.is-target").wait_for()

    expect(page.locator(".log-row.is-target")).to_contain_text("Traceback")
    expect(page.locator(".log-scroller")).to_have_attribute("data-following", "false")


def test_output_is_only_ever_text(site):
    page = open_logs(site, "hostile")
    page.locator(".log-scroller").focus()
    page.keyboard.press("Home")

    expect(page.locator(".log-row").first).to_contain_text("<img src=x")
    expect(page.locator(".log-row").first).to_contain_text("<U+202E>gnp.exe red ^G")
    expect(page.locator(".log-row .log-fg-red")).to_have_text("red")
    expect(page.locator(".log-row").nth(1)).to_contain_text("100%")
    assert page.locator(".log-row img").count() == 0
    page.locator(".log-row").nth(1).locator(".log-mark").click()
    expect(page.locator(".log-state")).to_have_text(["0%", "50%", "100%"])


def test_a_search_counts_filters_and_stands_in_the_address(site):
    page = open_logs(site, "hostile")
    page.keyboard.press("/")
    page.keyboard.type("line 1")
    # Lines 1, 10 to 19 and 100 to 199, and "line 1" of the traceback.
    expect(page.locator(".log-count")).to_contain_text(re.compile(r"\b111\b|\b112\b"))
    page.locator(".log-find .ant-checkbox-input").check()
    wait_until(
        "only matches are shown", lambda: int(page.locator(".log-scroller").get_attribute("data-total")) in {111, 112}
    )
    page.wait_for_url(re.compile("find=line.1.*only=1"))
    page.reload()
    page.locator(".log-row").first.wait_for()
    wait_until(
        "the filter is back", lambda: int(page.locator(".log-scroller").get_attribute("data-total")) in {111, 112}
    )
    assert all("line 1" in text for text in shown(page).values())


def test_a_link_leads_to_its_line(site):
    site.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page = open_logs(site, "hostile")
    page.locator(".log-scroller").focus()
    page.keyboard.press("Home")
    row = page.locator(".log-row", has_text=re.compile("line 7$"))
    row.locator(".log-stamp").click()
    link = wait_until("the link is copied", lambda: page.evaluate("navigator.clipboard.readText()"))
    page.goto(link)
    page.locator(".log-row.is-target").wait_for()

    expect(page.locator(".log-row.is-target .log-text")).to_have_text("line 7")


def test_a_download_is_the_whole_log(site):
    page = open_logs(site, "hostile")
    with page.expect_download() as download:
        page.locator(".log-buttons button").nth(1).click()

    text = download.value.path().read_text(errors="replace")
    assert text.count("line ") >= 300
    assert "no_such_module" in text


def test_no_line_is_lost_or_doubled_over_killed_processes(site, cluster):
    submit(cluster, job("killed", TICK))
    page = open_logs(site, "killed")
    kills = {
        "console": lambda: os.kill(cluster.console_pid, signal.SIGKILL),
        "control process": lambda: os.kill(cluster.control_pid, signal.SIGKILL),
        "agent": lambda: os.kill(cluster.agent_pid, signal.SIGKILL),
    }
    for name, kill in kills.items():
        last_seen = last_tick(page)
        kill()
        wait_until(
            f"lines come again after the {name} was killed",
            lambda last_seen=last_seen: last_tick(page) > last_seen + 40,
        )

    ticks = [int(text.split()[1]) for _, text in sorted(all_lines(page).items())]
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))
