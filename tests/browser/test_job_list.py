"""The job list: search and filters in the address, keyboard, selection, actions on many jobs."""

import pytest
from playwright.sync_api import expect

from tests.browser.jobs import FAIL, SUCCEED, job, submit, wait_for_end

BATCH = [f"batch-{number:02}" for number in range(12)]


@pytest.fixture(scope="module", autouse=True)
def jobs(cluster):
    submit(cluster, job("good", SUCCEED, labels={"team": "vision"}), job("bad", FAIL))
    submit(cluster, *(job(name, SUCCEED, labels={"team": "batch"}) for name in BATCH))
    wait_for_end(cluster, "good", "bad", *BATCH)


def shown(page):
    return page.locator("[data-page=jobs] [data-count]")


def test_search_and_filters_are_in_the_address_and_survive_a_reload(site):
    page = site.open("jobs")
    expect(shown(page)).to_have_attribute("data-count", "14")

    page.keyboard.press("/")
    page.keyboard.type("ba")
    expect(shown(page)).to_have_attribute("data-count", "13")
    page.locator(".pl-chip[data-phase=Failed]").click()
    expect(shown(page)).to_have_attribute("data-count", "1")

    assert "q=ba" in page.url
    assert "phase=Failed" in page.url
    page.reload()
    expect(shown(page)).to_have_attribute("data-count", "1")
    expect(page.locator(".pl-chip[data-phase=Failed]")).to_have_attribute("aria-pressed", "true")


def test_a_failed_job_has_its_error_below_its_row(site):
    page = site.open("jobs?q=bad")

    expect(page.locator(".pl-reason")).to_contain_text("worker-0: exit code 1: ModuleNotFoundError")


def test_jobs_are_chosen_and_opened_by_keyboard(site):
    page = site.open("jobs?sort=name")
    expect(page.locator(".ant-table-row").first).to_contain_text("bad")

    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.locator(".ant-table-row.pl-cursor.pl-selected")).to_contain_text("bad")
    expect(page.locator(".pl-bulk")).to_be_visible()
    page.keyboard.press("Enter")

    page.wait_for_url("**/jobs/default/PyTorchTrainingJob/bad")


def test_many_jobs_are_deleted_only_after_their_number_was_typed(site, cluster):
    page = site.open("jobs?label=team%3Dbatch")
    expect(shown(page)).to_have_attribute("data-count", "12")
    page.locator(".ant-table-thead .ant-checkbox-input").click()

    page.locator(".pl-bulk [data-action=delete]").click()
    dialog = page.locator("[data-action=delete][data-ready=true]")
    expect(dialog.locator(".pl-consequences")).not_to_have_count(0)
    button = page.locator(".ant-modal-footer .ant-btn").last
    expect(button).to_be_disabled()
    dialog.locator("input").fill("12")
    button.click()

    expect(shown(page)).to_have_attribute("data-count", "0")
    assert "batch-00" not in cluster.paceline("get").out


def test_the_chosen_columns_are_kept(site):
    page = site.open("jobs?columns=kind,labels")
    headers = page.locator(".ant-table-thead th[class*=ant-table-cell]")

    expect(headers).to_have_count(6)


def test_rows_are_cards_on_a_phone(site):
    page = site.open("jobs?q=good")
    page.set_viewport_size({"width": 390, "height": 800})

    expect(page.locator(".pl-job-card")).to_have_count(1)
    expect(page.locator(".pl-job-card")).to_contain_text("good")
