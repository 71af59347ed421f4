"""The command palette by keyboard: pages, objects by name, and what can be done with the job of the page."""

import pytest
from playwright.sync_api import expect

from tests.browser.hostile_strings import SCRIPTS
from tests.browser.jobs import RUN, SUCCEED, create, job, submit, wait_for_end

KIND = "PyTorchTrainingJob"
# It never starts: it only has to be in the list.
NOTEBOOK = {
    "apiVersion": "tensorstack.dev/v1beta1",
    "kind": "Notebook",
    "metadata": {"name": "scratch", "namespace": "default"},
    "spec": {
        "suspend": True,
        "template": {"spec": {"containers": [{"name": "notebook", "image": "nobody/has-this:1"}]}},
    },
}


@pytest.fixture(scope="module", autouse=True)
def objects(cluster):
    submit(cluster, job("constructor", SUCCEED), job("digits", RUN))
    create(cluster, NOTEBOOK)
    wait_for_end(cluster, "constructor")


def open_palette(page):
    """Press the keys and wait for nothing: what the test types next belongs to the palette."""
    page.keyboard.press("Control+k")
    return page.locator("dialog.pl-palette")


def active(dialog):
    """Return the option that the field names as the active one."""
    expect(dialog.get_by_role("option", selected=True)).to_have_count(1)
    option = dialog.get_by_role("option", selected=True)
    assert dialog.get_by_role("combobox").get_attribute("aria-activedescendant") == option.get_attribute("id")
    return option


def search(page, dialog, text, first):
    page.keyboard.type(text)
    expect(active(dialog)).to_contain_text(first)


def test_a_page_is_reached_by_keyboard_in_either_language(site):
    page = site.open("about")
    dialog = open_palette(page)
    # Its path works in every language.
    search(page, dialog, "/sett", {"en": "Settings", "zh": "设置"}[site.look.language])
    page.keyboard.press("Enter")

    expect(page.locator("[data-page=settings]")).to_be_visible()
    expect(dialog).to_have_count(0)


def test_arrows_choose_and_escape_leaves_the_page_as_it_was(site):
    page = site.open("settings")
    dialog = open_palette(page)
    # They come before the pages as soon as they are read.
    expect(dialog.locator("[data-group=jobs]")).to_be_visible()
    first = active(dialog).inner_text()
    page.keyboard.press("ArrowUp")
    last = active(dialog).inner_text()
    page.keyboard.press("ArrowDown")

    assert first != last
    assert active(dialog).inner_text() == first
    page.keyboard.type("no such thing")
    expect(dialog.get_by_role("listbox")).to_have_count(0)
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(page.locator("[data-page=settings]")).to_be_visible()


def test_jobs_and_notebooks_are_opened_by_name_and_logs_by_a_word(site):
    page = site.open()
    dialog = open_palette(page)
    search(page, dialog, "digi", "digits")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/default/{KIND}/digits")

    dialog = open_palette(page)
    search(page, dialog, "scra", "scratch")
    page.keyboard.press("Escape")

    dialog = open_palette(page)
    search(page, dialog, "construc logs", "constructor")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/default/{KIND}/constructor/logs")


def test_an_action_of_the_pages_job_asks_as_its_button_does(site):
    page = site.open(f"jobs/default/{KIND}/digits")
    expect(page.locator("[data-page=job] .pl-status[data-phase=Running]").first).to_be_visible()
    page.locator("[data-action=palette]").click()
    dialog = page.get_by_role("dialog")
    word = {"en": "Pause", "zh": "暂停"}[site.look.language]
    search(page, dialog, word, word)
    page.keyboard.press("Enter")

    expect(page.locator("[data-action=pause][data-ready=true]")).to_be_visible()
    # A question that waits for its answer keeps the palette away.
    page.keyboard.press("Control+k")
    expect(page.locator("dialog.pl-palette")).to_have_count(0)


def test_an_ended_job_offers_no_action_that_it_refuses(site):
    page = site.open(f"jobs/default/{KIND}/constructor")
    expect(page.locator("[data-page=job] .pl-status[data-phase=Succeeded]").first).to_be_visible()
    dialog = open_palette(page)
    actions = dialog.get_by_role("group", name={"en": "This job", "zh": "当前作业"}[site.look.language])

    expect(actions).to_contain_text({"en": "Rerun", "zh": "再次运行"}[site.look.language])
    expect(actions).not_to_contain_text({"en": "Pause", "zh": "暂停"}[site.look.language])


def test_it_fits_a_phone_and_is_opened_by_its_button(site):
    page = site.open("jobs")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("[data-action=palette]").click()
    dialog = page.get_by_role("dialog")

    expect(dialog.get_by_role("option").first).to_be_visible()
    box = dialog.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390


@pytest.mark.parametrize("text", [SCRIPTS[0], SCRIPTS[5], "__proto__", "(("])
def test_hostile_words_are_only_searched_for(site, text):
    page = site.open("jobs")
    dialog = open_palette(page)
    page.keyboard.type(text)

    expect(dialog.get_by_role("combobox")).to_have_value(text)
    expect(dialog.get_by_role("listbox")).to_have_count(0)
    assert page.evaluate("window.ran ?? null") is None


def test_keys_after_ctrl_k_belong_to_its_field_also_when_nothing_can_be_fetched(site):
    page = site.open("jobs")
    page.route("**", lambda route: route.abort())
    # Before the key press ends: no later key can come first.
    has_focus = """() => {
      window.dispatchEvent(new KeyboardEvent('keydown', {key: 'k', ctrlKey: true, cancelable: true}));
      return document.activeElement.matches('dialog.pl-palette input');
    }"""
    assert page.evaluate(has_focus)
    # The same keys close it, and the page's own keys work again.
    page.keyboard.press("Control+k")
    expect(page.locator("dialog.pl-palette")).to_have_count(0)
    page.keyboard.press("/")
    expect(page.locator(".pl-search input")).to_be_focused()
    page.keyboard.type("g")
    page.keyboard.press("Control+k")
    page.keyboard.type("digits gone")
    page.keyboard.press("Escape")
    page.keyboard.type("o")
    expect(page.locator(".pl-search input")).to_have_value("go")


def test_the_chosen_option_stays_chosen_when_others_come_before_it(site, cluster):
    page = site.open("jobs")
    expect(page.locator(".pl-job-list .pl-job-name").filter(has_text="digits")).to_be_visible()
    dialog = open_palette(page)
    page.keyboard.type("con")
    expect(active(dialog)).to_contain_text("constructor")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    # Newer jobs are above older ones.
    submit(cluster, job("con", SUCCEED))
    expect(dialog.get_by_role("option").first).to_contain_text("con")
    expect(dialog.get_by_role("option")).to_have_count(2)
    expect(active(dialog)).to_contain_text("constructor")
    page.keyboard.press("Enter")

    page.wait_for_url(f"**/jobs/default/{KIND}/constructor")


def test_it_offers_what_the_pages_job_can_do_by_now(site, cluster):
    page = site.open(f"jobs/default/{KIND}/digits")
    dialog = open_palette(page)
    actions = dialog.get_by_role("group", name={"en": "This job", "zh": "当前作业"}[site.look.language])
    expect(actions).to_contain_text({"en": "Pause", "zh": "暂停"}[site.look.language])
    ran = cluster.paceline("pause", "digits")
    assert ran.code == 0, ran.err

    expect(actions).to_contain_text({"en": "Resume", "zh": "恢复"}[site.look.language])
    expect(actions).not_to_contain_text({"en": "Pause", "zh": "暂停"}[site.look.language])
