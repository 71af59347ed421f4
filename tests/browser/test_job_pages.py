"""The job list and the page of a job: what they show."""

import pytest
from playwright.sync_api import expect

from tests.browser.jobs import FAIL, SUCCEED, job, submit, wait_for_end

pytestmark = pytest.mark.usefixtures("finished")


@pytest.fixture(scope="module")
def finished(cluster):
    submit(cluster, job("good", SUCCEED, replicas=2), job("bad", FAIL))
    wait_for_end(cluster, "good", "bad")


def test_the_list_shows_every_job_with_its_phase(site):
    page = site.open("jobs")

    expect(page.get_by_role("link", name="good")).to_be_visible()
    expect(page.get_by_role("link", name="bad")).to_be_visible()
    expect(page.locator("[data-page=jobs]")).to_contain_text("No module named 'torchvision'")


def test_the_page_of_a_failed_job_names_the_cause_first(site):
    page = site.open("jobs/default/PyTorchTrainingJob/bad")

    expect(page.locator("[data-page=job]")).to_contain_text("No module named 'torchvision'")
