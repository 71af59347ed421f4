"""Use over time in the browser: charts of a job's replicas while it runs, and of the machine."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.jobs import job, submit

BUSY = "import time\ndata = b'x' * (40 << 20)\nwhile True: time.sleep(0.01)"


@pytest.fixture(scope="module")
def busy(cluster):
    submit(cluster, job("busy", BUSY, replicas=2))


@pytest.mark.usefixtures("busy")
def test_t10_the_resources_of_a_running_job_are_charts_with_a_line_for_each_replica(site):
    page = site.open("jobs/default/PyTorchTrainingJob/busy/resources")

    memory = page.locator("[data-field=memory]")
    expect(memory.locator("canvas")).to_be_visible()
    expect(memory).to_contain_text("worker-0")
    expect(memory).to_contain_text("worker-1")
    expect(page.locator("[data-usage=node]")).to_be_visible()
    expect(page.locator("[data-usage] table tbody tr")).to_have_count(2)
    points = memory.locator("[data-points]")
    expect(points).not_to_have_attribute("data-points", "1")
    page.locator(".ant-segmented-item").nth(1).click()
    expect(page).to_have_url(re.compile("range=15m"))


@pytest.mark.usefixtures("busy")
def test_the_overview_shows_the_machine_over_time(site):
    page = site.open("")

    expect(page.locator("[data-page=overview] [data-field=cpu] canvas")).to_be_visible()
    expect(page.locator("[data-page=overview] [data-field=memory] canvas")).to_be_visible()
