"""Jobs that wait for room: their place in the queue, in the list and on their page."""

import pytest
from playwright.sync_api import expect

from paceline.testing.embedded import embedded, wait_until
from tests.browser.jobs import RUN, job, submit

pytestmark = pytest.mark.slow
GPU = "nvidia.com/gpu"
SECOND = {"en": "2nd of 2 in the queue", "zh": "排队第 2 位"}
FIRST = {"en": "1st of 2 in the queue", "zh": "排队第 1 位"}
ALONE = {"en": "1st of 1 in the queue", "zh": "共 1 个"}
LACKS = {"en": f"needs 1 {GPU}, 0 free", "zh": f"需要 1 {GPU}"}
AFTER = {"en": "after second", "zh": "排在 second 之后"}


@pytest.fixture(scope="module")
def cluster():
    with embedded("--device", f"{GPU}=1") as running:
        for name in ("first", "second", "third"):
            submit(running, job(name, RUN, resources={"limits": {GPU: "1"}}))
        wait_until("two wait", lambda: "2nd of 2" in running.paceline("describe", "third").out)
        yield running


def test_the_list_shows_places_and_what_lacks(site):
    page = site.open("jobs")

    for texts in (SECOND, FIRST, LACKS):
        expect(page.locator("[data-page=jobs]")).to_contain_text(texts[site.look.language])


def test_the_page_of_a_job_shows_its_place_and_who_is_before_it(site):
    page = site.open("jobs/default/PyTorchTrainingJob/third")
    line = page.locator("[data-queue]")

    expect(line).to_have_attribute("data-queue", "2")
    expect(line).to_contain_text(AFTER[site.look.language])
    expect(page.locator("[data-cause=Waiting]")).to_contain_text(GPU)

    assert site.cluster.paceline("delete", "first", "--yes").code == 0
    expect(line).to_contain_text(ALONE[site.look.language])


def test_a_job_that_runs_has_no_place(site):
    page = site.open("jobs/default/PyTorchTrainingJob/second")

    expect(page.locator("[data-page=job]")).to_contain_text("second")
    expect(page.locator("[data-queue]")).to_have_count(0)
