"""`make demo KEEP=1` ends with an address; a browser opens it and sees the finished job."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import expect

from paceline.testing.embedded import end_all

pytestmark = pytest.mark.timeout(900)

ROOT = Path(__file__).parents[2]
ADDRESS = re.compile(r"http://paceline\.localhost:\d+/login\?next=\S+#code=\S+")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The last address that the demo prints; its cluster lives in a folder of its own."""
    home = tmp_path_factory.mktemp("demo")
    ran = subprocess.run(
        ["tools/demo"],
        cwd=ROOT,
        env={**os.environ, "KEEP": "1", "PACELINE_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        assert ran.returncode == 0, ran.stdout + ran.stderr
        yield ADDRESS.findall(ran.stdout)[-1]
    finally:
        end_all(home)


def test_the_demo_leaves_a_page_where_the_finished_job_is_seen(browser, address):
    page = browser.new_page()
    page.goto(address)

    expect(page.locator("[data-page=job]").get_by_role("heading", name="digits")).to_be_visible()
    expect(page.locator(".pl-job-heading [data-phase]")).to_have_attribute("data-phase", "Succeeded")
