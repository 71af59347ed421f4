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


def test_a_link_shows_the_same_list_to_somebody_who_looks_at_another_project(site):
    page = site.open("jobs")
    page.locator(".pl-chip[data-phase=Failed]").click()
    page.get_by_role("columnheader").filter(has_text={"en": "Name", "zh": "名称"}[site.look.language]).click()
    expect(shown(page)).to_have_attribute("data-count", "1")
    page.wait_for_url("**sort=name**")

    assert "namespace=default" in page.url
    link = page.url
    page.close()
    other = site.open("settings")
    other.evaluate("localStorage.setItem('paceline.preferences', JSON.stringify({namespace: 'kube-system'}))")
    other.goto(link)
    expect(shown(other)).to_have_attribute("data-count", "1")
    expect(other.locator(".pl-namespace")).to_contain_text("default")


@pytest.mark.parametrize(
    "query",
    [
        "sort=__proto__&columns=__proto__&phase=__proto__&kind=constructor",
        "sort=-&columns=,&label=<img src=x onerror=window.ran=1>&namespace=../../x&queue=,,",
        "q=%E4%&phase=%",
    ],
)
def test_bad_values_in_the_address_are_ignored(site, query):
    page = site.open("settings")
    page.goto(f"{page.evaluate('location.origin')}/jobs?{query}")

    expect(page.locator("[data-page=jobs] h1")).to_be_visible()
    expect(page.locator(".pl-filters")).to_be_visible()
    assert page.evaluate("window.ran ?? null") is None


def test_a_view_is_kept_under_a_name_found_in_the_palette_and_removed(site):
    name = "<img src=x onerror=window.ran=1>"
    page = site.open("jobs?phase=Failed&sort=name&columns=kind")
    page.locator("[data-action=views]").click()
    page.locator(".pl-views input").fill(name)
    page.keyboard.press("Enter")
    expect(page.locator(f".pl-views [data-view='{name}'] a")).to_have_attribute("aria-current", "true")

    page.goto(page.url.partition("?")[0])
    page.reload()
    expect(page.locator(".pl-chip[data-phase=Failed]")).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("Control+k")
    page.keyboard.type("onerror")
    expect(page.get_by_role("option")).to_have_text(name)
    page.keyboard.press("Enter")
    expect(page.locator(".pl-chip[data-phase=Failed]")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".ant-table-thead th[class*=ant-table-cell]")).to_have_count(5)

    page.locator("[data-action=views]").click()
    page.locator(".pl-views li button").click()
    expect(page.locator(".pl-views li")).to_have_count(0)
    assert page.evaluate("window.ran ?? null") is None
