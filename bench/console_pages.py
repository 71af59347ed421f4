"""`python -m bench.console_pages`: what a person waits for in the console, measured inside headless Chromium.

    .venv/bin/python -m bench.console_pages [--jobs N] [--lines N] [--rounds N] [--only jobs logs]

Times begin at the navigation or the key press and end with the frame that shows the result. Goals stand beside each
line; the load of the last minute stands at its end. Needs PACELINE_CHROMIUM (`tools/setup chromium`).
"""

import argparse
import contextlib
import json
import os
import tempfile
from pathlib import Path

import uvloop
from playwright.sync_api import sync_playwright

from bench.api import served
from bench.console import Jobs, console_process, flood, show
from paceline.client.http.cluster import HttpCluster
from paceline.client.kubeconfig import load
from paceline.cluster.crd_install import define_kinds
from paceline.host.effects import real_world
from paceline.testing.embedded import embedded

FIRST_PAGE_KB = 450
# Resolves with the milliseconds since the navigation, or since `window.pressed`, at the frame in which `shows` holds.
UNTIL = """(shows) => new Promise((resolve) => {
  const holds = new Function(`return (${shows})`);
  const look = () => (holds() ? resolve(performance.now() - (window.pressed ?? 0)) : requestAnimationFrame(look));
  look();
})"""
NOTE_INPUT = """() => {
  window.pressed = undefined;
  document.addEventListener('input', () => (window.pressed = performance.now()), { once: true, capture: true });
}"""
NOTE_CLICK = """() => document.addEventListener(
  'click', () => (window.pressed = performance.now()), { once: true, capture: true })"""
ROWS = """document.querySelectorAll('.ant-table-row').length > 5
  && document.querySelector('[data-page=jobs] [data-count]')?.dataset.count"""
TOTAL = "Number(document.querySelector('.log-scroller')?.dataset.total)"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=["jobs", "logs"], choices=("jobs", "logs"))
    options = parser.parse_args()
    print("console, in the browser")
    print(f"  {'':58} {'':>14}   {'goal':23}   load")
    if "jobs" in options.only:
        bench_jobs(options)
    if "logs" in options.only:
        bench_log(options)


@contextlib.contextmanager
def browser():
    arguments = ["--no-sandbox", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=os.environ["PACELINE_CHROMIUM"], args=arguments)
        yield running
        running.close()


def timed(page, shows):
    """Return the seconds until an expression holds in the page."""
    return page.evaluate(UNTIL, shows) / 1000


def bench_jobs(options):
    """The list of many jobs: from the navigation to all of them, and from a key to the filtered rows."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as folder:
        home = Path(folder) / "ours"
        with served("ours", home):
            uvloop.run(create_jobs(home / "kubeconfig", options.jobs))
            with console_process(home / "kubeconfig") as (address, code, _), browser() as chromium:
                jobs_page(options, logged_in(chromium, f"{address}/login#code={code}"), address)


async def create_jobs(kubeconfig, count):
    async with HttpCluster(load(kubeconfig, Path.read_bytes), real_world().chance) as cluster:
        await define_kinds(cluster)
        await Jobs(cluster).create(count)


def logged_in(chromium, login):
    """Return a tab of a browser with a session, and with the scripts of the first page in its cache."""
    page = chromium.new_context(viewport={"width": 1280, "height": 800}, locale="en-US").new_page()
    page.set_default_timeout(120_000)
    page.goto(login)
    page.locator("[data-page]:not([data-page=login])").first.wait_for()
    return page


def jobs_page(options, page, address):
    lists, filters = [], []
    for _ in range(options.rounds):
        page.goto("about:blank")
        page.goto(f"{address}/jobs", wait_until="commit")
        lists.append(timed(page, f"{ROWS} === '{options.jobs}'"))
        size = page.evaluate(TRANSFERRED) / 1000
        # Of 10,000 names, 100 have the number 42 in the middle.
        page.locator("[data-page=jobs] input").first.focus()
        page.keyboard.insert_text("train-04")
        page.evaluate(NOTE_INPUT)
        page.keyboard.insert_text("2")
        filters.append(timed(page, f"window.pressed && {ROWS} === '{matching(options.jobs)}'"))
    show(f"{options.jobs} jobs on screen after navigation, s", f"{min(lists):.2f} to {max(lists):.2f}", "≤ 3")
    show("a key in its search to the rows, ms", f"{min(filters) * 1e3:.0f} to {max(filters) * 1e3:.0f}", "≤ 100")
    show("scripts and styles of that page as sent, kB", f"{size:.0f}", f"≤ {FIRST_PAGE_KB}")


TRANSFERRED = """() => performance.getEntriesByType('resource')
  .filter(({ name }) => /[.](js|css)$/.test(name)).reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0)"""


def matching(count):
    """Return how many of the names train-00000, train-00001, … contain train-042."""
    return sum(f"train-{number:05}".startswith("train-042") for number in range(count))


def bench_log(options):
    """A log of many lines: from the navigation to its end, all of it, and a search in it."""
    with embedded() as cluster, browser() as chromium:
        ran = cluster.paceline("run", "-", stdin=json.dumps(flood("flood", options.lines, 0)))
        assert ran.code == 0, ran.err
        login = cluster.paceline("ui", "--no-browser").out.strip()
        page = logged_in(chromium, login)
        address = login.partition("/login")[0]
        opened, loaded, searched = [], [], []
        for _ in range(options.rounds):
            page.goto("about:blank")
            page.goto(f"{address}/jobs/default/GenericJob/flood/logs", wait_until="commit")
            last = f"step {options.lines - 1:07}"
            opened.append(
                timed(
                    page,
                    f"[...document.querySelectorAll('.log-text')].some((row) => row.textContent.includes('{last}'))",
                )
            )
            page.evaluate(NOTE_CLICK)
            page.get_by_role("button", name="Load everything").click()
            loaded.append(timed(page, f"window.pressed && {TOTAL} >= {options.lines}"))
            page.locator(".log-find input").first.focus()
            page.keyboard.insert_text("step 012345")
            page.evaluate(NOTE_INPUT)
            page.keyboard.insert_text("6")
            searched.append(
                timed(page, "window.pressed && /\\b1\\b/.test(document.querySelector('.log-count')?.textContent)")
            )
    show(f"log of {options.lines} lines, its end on screen, s", f"{min(opened):.2f} to {max(opened):.2f}", "≤ 4")
    show("all of it loaded, after a click, s", f"{min(loaded):.2f} to {max(loaded):.2f}", "≤ 4 with the line above")
    show("a key in its search to the count, s", f"{min(searched):.2f} to {max(searched):.2f}", "≤ 0.5")


if __name__ == "__main__":
    main()
