"""The frame of the console: login, session, menu, keyboard, and what it does when a part of it is missing."""

import os
import re
import signal

import pytest
from playwright.sync_api import expect

from tests.browser.jobs import SUCCEED, job, submit

CONNECTION = "[data-connection=live]"


def wait_for_page(tab, name):
    expect(tab.locator(f"[data-page={name}]")).to_be_visible()


def test_a_link_logs_in_once_and_leaves_no_code_in_the_history(site):
    url = site.login_url("settings")
    tab = site.context.new_page()
    tab.goto(url)
    wait_for_page(tab, "settings")

    assert "code" not in tab.url
    tab.go_back()
    assert "code" not in tab.url

    site.context.clear_cookies()
    tab.goto("about:blank")
    tab.goto(url)
    wait_for_page(tab, "login")
    expect(tab.get_by_role("alert")).to_be_visible()
    assert "code" not in tab.url


def test_who_is_not_logged_in_sees_the_command_and_returns_to_the_same_page(site):
    tab = site.context.new_page()
    tab.goto(f"{site.address}/about")
    wait_for_page(tab, "login")
    expect(tab.get_by_text("paceline ui", exact=True)).to_be_visible()

    other = site.open()
    wait_for_page(other, "overview")
    tab.evaluate("window.dispatchEvent(new Event('focus'))")
    wait_for_page(tab, "about")


def test_a_token_that_the_cluster_refuses_is_said_so(site):
    tab = site.context.new_page()
    tab.goto(f"{site.address}/jobs")
    wait_for_page(tab, "login")
    tab.locator("summary").click()
    tab.locator("input[type=password]").fill("not-a-token")
    tab.locator("button[type=submit]").click()

    expect(tab.get_by_role("alert")).to_be_visible()
    wait_for_page(tab, "login")


def test_a_session_that_ends_keeps_the_page(site):
    tab = site.open("settings")
    wait_for_page(tab, "settings")
    site.context.clear_cookies()
    tab.evaluate("window.kept = true")
    tab.locator("a[href='/jobs']").click()
    tab.keyboard.press("c")
    expect(tab.locator(".pl-login-over")).to_be_visible()

    other = site.open()
    wait_for_page(other, "overview")
    tab.evaluate("window.dispatchEvent(new Event('focus'))")
    expect(tab.locator(".pl-login-over")).to_have_count(0)
    wait_for_page(tab, "create")
    assert tab.evaluate("window.kept")


def test_language_and_theme_are_changed_and_kept(site, look):
    tab = site.open("settings")
    wait_for_page(tab, "settings")
    language = {"en": "中文", "zh": "English"}[look.language]
    tab.get_by_text(language, exact=True).first.click()
    expect(tab.locator("html")).to_have_attribute("lang", {"en": "zh-CN", "zh": "en"}[look.language])
    theme = {"light": "深色", "dark": "Light"}[look.theme]
    tab.locator(".ant-segmented").get_by_text(theme, exact=True).click()
    expect(tab.locator("html")).to_have_attribute("data-theme", {"light": "dark", "dark": "light"}[look.theme])

    tab.reload()
    wait_for_page(tab, "settings")
    expect(tab.locator("html")).to_have_attribute("lang", {"en": "zh-CN", "zh": "en"}[look.language])
    expect(tab.locator("html")).to_have_attribute("data-theme", {"light": "dark", "dark": "light"}[look.theme])


def test_the_keyboard_reaches_the_pages_and_lists_what_it_does(site):
    tab = site.open()
    wait_for_page(tab, "overview")
    tab.keyboard.press("?")
    expect(tab.get_by_role("dialog")).to_be_visible()
    expect(tab.get_by_role("dialog").locator("kbd").first).to_have_text("?")
    tab.keyboard.press("Escape")
    expect(tab.get_by_role("dialog")).to_have_count(0)
    # The second key must come within a second, which a busy machine does not promise for two real ones.
    tab.evaluate(
        "for (const key of 'gs') document.body.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}))"
    )
    wait_for_page(tab, "settings")
    tab.reload()
    wait_for_page(tab, "settings")
    tab.keyboard.press("Tab")
    expect(tab.locator(".pl-skip")).to_be_focused()
    expect(tab.locator(".pl-skip")).to_be_in_viewport()


def test_shortcuts_of_a_page_are_listed_after_those_of_every_page(site, cluster):
    submit(cluster, job("listed", SUCCEED))
    tab = site.open("jobs")
    expect(tab.locator(".pl-search")).to_be_visible()
    tab.keyboard.press("?")
    keys = tab.get_by_role("dialog").locator(".pl-keys")
    expect(keys.first).to_have_text("?")
    names = keys.all_inner_texts()

    assert names.index("c") < names.index("Ctrl+K") < names.index("/")


def test_the_menu_is_a_drawer_on_a_narrow_screen(site):
    tab = site.open()
    wait_for_page(tab, "overview")
    tab.set_viewport_size({"width": 390, "height": 844})
    expect(tab.locator(".pl-side")).to_have_count(0)
    tab.locator(".pl-bar button[aria-expanded]").click()
    tab.get_by_role("dialog").locator("a[href='/about']").click()
    wait_for_page(tab, "about")
    expect(tab.get_by_role("dialog")).to_have_count(0)


def test_a_namespace_that_is_typed_is_kept(site):
    tab = site.open("jobs")
    wait_for_page(tab, "jobs")
    picker = tab.locator(".pl-namespace input")
    picker.fill("team-z")
    picker.press("Enter")
    expect(tab.locator(".pl-namespace")).to_contain_text("team-z")
    tab.reload()
    expect(tab.locator(".pl-namespace")).to_contain_text("team-z")


def test_a_console_that_is_killed_is_found_again_without_a_reload(site, cluster):
    tab = site.open("jobs")
    expect(tab.locator(CONNECTION)).to_be_visible()
    tab.evaluate("window.kept = true")
    os.kill(cluster.console_pid, signal.SIGKILL)
    submit(cluster, job("after-the-kill", SUCCEED))

    expect(tab.get_by_text("after-the-kill").first).to_be_visible()
    expect(tab.locator(CONNECTION)).to_be_visible()
    assert tab.evaluate("window.kept")


@pytest.mark.parametrize("failures", [1, 2])
@pytest.mark.parametrize("name", ["start", "main"])
def test_the_console_starts_although_a_file_fails_at_first(site, name, failures):
    fetched = []

    def fail_at_first(route):
        fetched.append(route.request.url)
        if len(fetched) <= failures:
            route.abort()
        else:
            route.continue_()

    site.context.route(re.compile(rf"/assets/{name}-\w+\.js"), fail_at_first)
    tab = site.open()
    wait_for_page(tab, "overview")

    assert len(fetched) > failures


def test_a_page_whose_file_is_gone_asks_for_a_reload_and_leaves_the_menu(site):
    site.context.route(re.compile(r"/assets/about-\w+\.js"), lambda route: route.abort())
    tab = site.open()
    wait_for_page(tab, "overview")
    tab.locator("a[href='/about']").click()
    wait_for_page(tab, "crash")
    assert all("about-" in complaint for complaint in site.complaints)
    site.complaints.clear()
    tab.locator("a[href='/jobs']").click()
    wait_for_page(tab, "jobs")


def test_an_address_that_is_no_page_says_so(site):
    tab = site.open("nowhere")
    wait_for_page(tab, "notFound")


def test_all_sessions_end_after_a_question(site):
    tab = site.open("settings")
    other = site.open("about")
    tab.locator("[data-action=logout-everywhere]").click()
    tab.get_by_role("dialog").locator(".ant-btn-dangerous").click()

    wait_for_page(tab, "login")
    other.reload()
    wait_for_page(other, "login")
