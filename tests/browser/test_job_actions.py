"""Actions on jobs by clicking: each says what will happen, and then happens."""

import pytest
from playwright.sync_api import expect

from tests.browser.jobs import FAIL, RUN, SUCCEED, job, submit, wait_for_end

KIND = "PyTorchTrainingJob"


@pytest.fixture(scope="module", autouse=True)
def jobs(cluster):
    submit(cluster, job("long", RUN, replicas=2), job("bad", FAIL), job("old", SUCCEED))
    wait_for_end(cluster, "bad", "old")


def open_job(site, name, tab=""):
    page = site.open(f"jobs/default/{KIND}/{name}{'/' + tab if tab else ''}")
    expect(page.locator("[data-page=job] .pl-status[data-phase]").first).to_be_visible()
    return page


def phase(page):
    return page.locator("[data-page=job] .pl-page-header .pl-status")


def click(page, action):
    """Click a button in the header, or in its menu."""
    button = page.locator(f".pl-action-buttons [data-action={action}]")
    if button.count():
        button.click()
        return
    page.locator(".pl-action-buttons [data-action=more]").click()
    page.locator(f".ant-dropdown-menu-item[data-menu-id$='-{action}']").click()


def confirm(page, action):
    dialog = page.locator(f"[data-action={action}][data-ready=true]")
    expect(dialog).to_be_visible()
    sentences = dialog.locator(".pl-consequences li").all_inner_texts()
    page.locator(".ant-modal-footer .ant-btn").last.click()
    expect(dialog).to_have_count(0)
    return sentences


def test_a_job_is_paused_and_resumed_and_the_page_says_who_did_it(site):
    page = open_job(site, "long")
    expect(phase(page)).to_have_attribute("data-phase", "Running")

    click(page, "pause")
    sentences = confirm(page, "pause")

    assert "2" in sentences[0]
    expect(phase(page)).to_have_attribute("data-phase", "Paused")
    expect(page.locator("[data-page=job] .pl-dots")).to_contain_text("admin")

    click(page, "resume")
    confirm(page, "resume")
    expect(phase(page)).to_have_attribute("data-phase", "Running")


def test_a_failed_job_runs_again_as_a_new_job_whose_page_opens(site):
    page = open_job(site, "bad")
    expect(page.locator("[data-cause=Failed][data-advice=ModuleNotFound]")).to_be_visible()

    click(page, "rerun")
    confirm(page, "rerun")

    page.wait_for_url(f"**/jobs/default/{KIND}/bad-2")
    expect(page.locator("h1")).to_have_text("bad-2")


def test_an_action_that_is_not_possible_is_a_disabled_button(site):
    page = open_job(site, "old")

    page.locator(".pl-action-buttons [data-action=more]").click()

    item = page.locator(".ant-dropdown-menu-item[data-menu-id$='-pause']")
    expect(item).to_have_attribute("aria-disabled", "true")


def test_a_page_whose_job_is_deleted_elsewhere_says_so(site, cluster):
    submit(cluster, job("doomed", SUCCEED))
    wait_for_end(cluster, "doomed")
    page = open_job(site, "doomed")

    assert cluster.paceline("delete", "doomed").code == 0

    expect(page.locator("[data-deleted]")).to_be_visible()
    expect(page.locator("h1")).to_have_text("doomed")


def test_deleting_a_job_says_what_goes_and_leads_back_to_the_list(site, cluster):
    submit(cluster, job("waste", SUCCEED))
    wait_for_end(cluster, "waste")
    page = open_job(site, "waste")

    click(page, "delete")
    assert confirm(page, "delete")

    page.wait_for_url("**/jobs")
    expect(page.get_by_role("link", name="waste")).to_have_count(0)
