"""Revisions of an application in the browser: change values, look at the difference, run it, and go back."""

import json
import re

import pytest
from playwright.sync_api import expect

from tests.browser.editor import paste
from tests.browser.jobs import SUCCEED, application, create, job, submit, wait_for_end

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]
LEARNING_RATE = "hyperparams.learningrate"
WORDS = {
    "en": {
        "question": "Run revision 2 of {name}?",
        "waits": "The application is stopped: the new revision starts when you resume it.",
        "kept": "Logs, results and records of the earlier revisions are kept",
        "back": "Roll {name} back to revision 1?",
        "conflict": "{name} was changed meanwhile, by admin. Your change was not made.",
    },
    "zh": {
        "question": "运行 {name} 的版本 2",
        "waits": "新版本才会启动",
        "kept": "之前各版本的日志、结果和记录都会保留",
        "back": "将 {name} 回滚到版本 1",
        "conflict": "{name} 刚刚被 admin 修改。你的修改没有生效。",
    },
}


def install(cluster, name, **hyperparams):
    """Make an application that is stopped: its revisions are recorded, and nothing runs."""
    values = {"worker": {"gpuCount": 0, "memory": "64Mi"}, "hyperparams": {"epochs": 1, **hyperparams}}
    create(cluster, application(name, "tensorflow-training", values, is_suspended=True))


def upgrade(cluster, name, **hyperparams):
    """Change values from the command line, as a second person does."""
    settings = ",".join(f"hyperparams.{key}={value}" for key, value in hyperparams.items())
    ran = cluster.paceline("app", "upgrade", name, "--set", settings)
    assert ran.code == 0, ran.err


def hyperparams(cluster, name):
    app = json.loads(cluster.kubectl("get", "app", name, "-o", "json").out)
    return app["spec"]["values"]["hyperparams"]


def dialog(page):
    """Return the dialog as soon as it shows what would change."""
    expect(page.locator("[data-upgrade=ready]")).to_be_visible()
    return page.locator(".ant-modal:visible")


def shown_paths(shown, part):
    return [entry.get_attribute("data-path") for entry in shown.locator(f"[data-diff={part}] [data-path]").all()]


def has_revision(page, number):
    expect(page.locator(f"[data-revision-number='{number}']")).to_be_visible()


def test_values_are_changed_in_the_form_or_as_text_and_run_after_a_look_at_the_difference(site):
    install(site.cluster, "rates")
    labels = WORDS[site.look.language]
    page = site.open("apps/default/rates")
    has_revision(page, 1)
    page.locator("[data-action=change]").click()

    page.locator(f'[data-field="{LEARNING_RATE}"] input').fill("0.05")
    editor = page.locator("[data-yaml=values] .cm-content")
    expect(editor).to_contain_text('learningrate: "0.05"')
    paste(page, "worker: [")
    expect(page.locator("[data-yaml=fault]")).to_be_visible()
    expect(page.locator("form[data-ready=false] [data-action=create]")).to_be_disabled()
    paste(page, "worker: {gpuCount: 0, memory: 64Mi}\nhyperparams: {epochs: 1, learningrate: 0.25}\n")
    expect(page.locator(f'[data-field="{LEARNING_RATE}"] input')).to_have_value("0.25")
    expect(page.locator("form[data-ready=true]")).to_be_visible()
    page.locator("[data-action=create]").click()

    shown = dialog(page)
    expect(shown).to_contain_text(labels["question"].format(name="rates"))
    for sentence in ("waits", "kept"):
        expect(shown).to_contain_text(labels[sentence])
    assert shown_paths(shown, "values") == [LEARNING_RATE]
    expect(shown.locator("[data-diff=values] ins")).to_contain_text("0.25")
    assert shown_paths(shown, "job") == ["spec.hyperparameters.values.learningrate"]
    assert "learningrate" not in hyperparams(site.cluster, "rates"), "looking changes nothing"
    shown.locator("[data-action=upgrade]").click()

    page.wait_for_url("**/apps/default/rates")
    has_revision(page, 2)
    assert hyperparams(site.cluster, "rates") == {"epochs": 1, "learningrate": 0.25}
    page.locator('[data-node-key="revisions"]').click()
    revision = page.locator("[data-revision-row='2']")
    expect(revision).to_contain_text(re.compile("learningrate.*0.25"))
    expect(revision).to_contain_text("admin")


def test_values_that_follow_an_earlier_state_are_refused_and_change_nothing(site):
    install(site.cluster, "contested")
    labels = WORDS[site.look.language]
    page = site.open("train?app=default/contested")
    page.locator(f'[data-field="{LEARNING_RATE}"] input').fill("0.05")
    expect(page.locator("form[data-ready=true]")).to_be_visible()
    page.locator("[data-action=create]").click()
    shown = dialog(page)

    upgrade(site.cluster, "contested", batchsize=64)
    shown.locator("[data-action=upgrade]").click()

    expect(shown.locator("[data-conflict]")).to_contain_text(labels["conflict"].format(name="contested"))
    expect(shown.locator("[data-action=upgrade]")).to_be_disabled()
    values = hyperparams(site.cluster, "contested")
    assert str(values["batchsize"]) == "64"
    assert "learningrate" not in values
    shown.locator("[data-action=reload]").click()
    expect(page.locator('[data-field="hyperparams.batchsize"] input')).to_have_value("64")
    expect(page.locator(f'[data-field="{LEARNING_RATE}"] input')).not_to_have_value("0.05")


def test_a_rollback_shows_the_difference_and_after_a_conflict_asks_again(site):
    install(site.cluster, "returning", learningrate="0.1")
    labels = WORDS[site.look.language]
    page = site.open("apps/default/returning/revisions")
    has_revision(page, 1)
    upgrade(site.cluster, "returning", learningrate="0.2")
    has_revision(page, 2)
    expect(page.locator("[data-revision-row='2'] [data-action=rollback]")).to_have_count(0)
    page.locator("[data-revision-row='1'] [data-action=rollback]").click()
    shown = dialog(page)
    expect(shown).to_contain_text(labels["back"].format(name="returning"))
    expect(shown.locator("[data-diff=values] del")).to_contain_text("0.2")
    expect(shown.locator("[data-diff=values] ins")).to_contain_text("0.1")

    upgrade(site.cluster, "returning", learningrate="0.3")
    has_revision(page, 3)
    shown.locator("[data-action=upgrade]").click()

    expect(shown.locator("[data-conflict]")).to_contain_text(labels["conflict"].format(name="returning"))
    assert hyperparams(site.cluster, "returning")["learningrate"] == "0.3", "nothing was changed"
    expect(shown.locator("[data-diff=values] del")).to_contain_text("0.3")
    shown.locator("[data-action=upgrade]").click()
    has_revision(page, 4)
    assert hyperparams(site.cluster, "returning")["learningrate"] == "0.1"


def test_a_job_of_the_past_is_cloned_with_changes(site):
    submit(site.cluster, job("bygone", SUCCEED))
    wait_for_end(site.cluster, "bygone")
    ran = site.cluster.paceline("delete", "bygone", "--yes")
    assert ran.code == 0, ran.err
    page = site.open("history?find=bygone")
    page.locator("[data-record] a").first.click()

    page.locator("[data-action=clone]").click()

    expect(page.locator("[data-page=create] .cm-content")).to_contain_text("name: bygone-2")
    expect(page.locator("[data-page=create] .cm-content")).to_contain_text("kind: PyTorchTrainingJob")
