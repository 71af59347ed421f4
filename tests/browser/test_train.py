"""Applications in the browser: the form of the model training, by clicking only, and the pages of what it makes."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from paceline.testing.embedded import embedded, wait_until
from paceline.testing.git_server import git_server
from tests.browser.jobs import application, create
from tests.e2e.support.data_jobs import beside_pods
from tests.e2e.support.frameworks import environment

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]
expect.set_options(timeout=60_000)
TRAINER = Path(__file__).parents[2] / "src" / "paceline" / "trainers" / "parameter_server.py"
LOG_DIR = "/output/training_logs"
COMMAND = f"python3 train.py --epochs=3 --logdir={LOG_DIR}"
HOSTILE = "<img src=x onerror=alert(1)>"
WORDS = {
    "en": {
        "Python": "Python",
        "PyTorch": "PyTorch",
        "image": "Custom image",
        "Running": "Running",
        "Succeeded": "Succeeded",
        "claim": "Create claim",
        "uninstall": "Uninstall",
        "rerun": "Rerun",
        "stop": "Stop",
        "resume": "Resume",
        "ssh": "ssh is not supported. Try https://example.org/team/code.git",
        "name": "Only lower-case letters, digits and hyphens. Try tf-train",
        "taken": "An application of this name exists already.",
        "empty": "Fill this in.",
        "path": "It must lie below /output",
    },
    "zh": {
        "Python": "Python",
        "PyTorch": "PyTorch",
        "image": "自定义镜像",
        "Running": "运行中",
        "Succeeded": "成功",
        "claim": "创建存储卷",
        "uninstall": "卸载",
        "rerun": "再次运行",
        "stop": "停止",
        "resume": "恢复",
        "ssh": "不支持 SSH 协议。可以用 https://example.org/team/code.git",
        "name": "只能使用小写字母、数字和连字符。可以用 tf-train",
        "taken": "已有同名应用。",
        "empty": "请填写此项。",
        "path": "必须位于 /output 之下",
    },
}


@pytest.fixture(scope="module")
def cluster():
    with embedded("--image", f"tensorboard={environment('tensorboard')}") as running:
        yield running


@pytest.fixture(scope="module")
def repositories(cluster, tmp_path_factory):
    """A git server that pods reach, with the trainer in a repository that asks for a password."""
    with git_server(tmp_path_factory.mktemp("git"), host=beside_pods(cluster)) as server:
        server.commit("private/code", {"train.py": TRAINER.read_text(), "requirements.txt": ""})
        server.commit("code", {"train.py": TRAINER.read_text()})
        server.commit("slow", {"train.py": "import time\nprint('I wait', flush=True)\ntime.sleep(600)\n"})
        yield server


class Trainer:
    """The form of the model training, in either language."""

    def __init__(self, site, page):
        self.words = WORDS[site.look.language]
        self.page = page
        expect(page.locator("[data-page=train] form")).to_be_visible()

    def field(self, name):
        return self.page.locator(f'[data-field="{name}"]')

    def fill(self, **texts):
        for name, text in texts.items():
            self.field(name).locator("input, textarea").first.fill(text)

    def choose(self, name, option):
        self.field(name).locator(".ant-select").click()
        self.page.locator(".ant-select-dropdown:visible .ant-select-item-option").filter(has_text=option).first.click()

    def switch(self, name):
        self.field(name).get_by_role("switch").click()

    def open_more(self):
        self.page.locator("[data-panel=more] button[aria-expanded]").click()

    def previewed(self):
        """Return the objects that will be made, as the preview lists them."""
        expect(self.page.locator("[data-preview=ready]")).to_be_visible()
        entries = self.page.locator("[data-preview=ready] li[data-kind]").all()
        return {(entry.get_attribute("data-kind"), entry.get_attribute("data-name")) for entry in entries}

    def create(self):
        expect(self.page.locator("form[data-ready=true]")).to_be_visible()
        self.page.locator("[data-action=create]").click()


def object_of(cluster, kind, name):
    ran = cluster.kubectl("get", kind, name, "-o", "json")
    return json.loads(ran.out) if ran.code == 0 else None


def tab(page, name):
    """Open a tab of the application's page by a click."""
    page.locator(f'[data-node-key="{name}"]').click()
    expect(page.locator(f"[data-tab={name}]")).to_be_visible()
    return page.locator(f"[data-tab={name}]")


def comes_to(page, phase):
    expect(page.locator(f'[data-page=app] [data-tab][data-phase="{phase}"]')).to_be_visible(timeout=180_000)


def install(cluster, repositories, name, repository="code", *, is_suspended=False, **values):
    """Make an application without the browser."""
    git = {"url": repositories.url(repository)}
    spec = {"git": git, "command": "python3 train.py --epochs=1", "framework": "python", "memory": "64Mi", **values}
    create(cluster, application(name, "model-training", spec, is_suspended=is_suspended))


def test_the_tutorial_of_the_model_training_service_by_clicking_only(site, repositories):
    """S-16, S-23, S-35, S-36, S-37, S-38, S-39, S-40, S-41, S-42, S-45, H-54"""
    page = site.open("apps")
    page.locator("[data-template=model-training]").click()

    trainer = Trainer(site, page)
    trainer.fill(name="tf-train-distributed")
    trainer.choose("framework", "Python")
    trainer.switch("distributed")
    trainer.fill(ps="1", workers="2", gpus="0")
    make_volume(trainer, "tfoss")
    trainer.fill(git=repositories.url("private/code"))
    trainer.switch("isPrivate")
    trainer.fill(user=repositories.user, password=repositories.password, command=COMMAND)
    trainer.switch("isMonitored")
    trainer.fill(logDir=LOG_DIR)
    trainer.open_more()
    trainer.fill(memory="64Mi")
    assert trainer.previewed() == {
        ("TrainingApp", "tf-train-distributed"),
        ("Secret", "tf-train-distributed-git"),
        ("TensorFlowTrainingJob", "tf-train-distributed-1"),
        ("TensorBoard", "tf-train-distributed"),
        ("TensorBoard", "tf-train-distributed-tensorboard0"),
        ("TensorBoard", "tf-train-distributed-tensorboard1"),
    }
    trainer.create()

    page.wait_for_url("**/apps/default/tf-train-distributed")
    comes_to(page, "Succeeded")
    check_services(page)
    check_containers(page)
    check_logs(site, page)
    check_routes(page)
    check_that_the_password_is_only_in_its_secret(site, page, repositories)


def make_volume(trainer, name):
    """Make a volume on the way, which the form then uses."""
    trainer.field("data").get_by_role("button").last.click()
    dialog = trainer.page.locator(".ant-modal:visible")
    dialog.locator("input").first.fill(name)
    dialog.get_by_role("button", name=trainer.words["claim"]).click()
    expect(dialog).to_be_hidden()
    expect(trainer.field("data").locator(".ant-select")).to_contain_text(name)


def check_services(page):
    shown = tab(page, "services")
    rows = {row.get_attribute("data-service") for row in shown.locator("[data-service]").all()}
    assert rows == {"ps-0", "worker-0", "worker-1", "tensorboard", "tensorboard0", "tensorboard1"}
    for worker in ("worker-0", "worker-1"):
        expect(shown.locator(f"[data-service={worker}][data-state=Succeeded]")).to_be_visible()
    expect(shown.locator("[data-finished]")).to_be_visible()


def check_containers(page):
    shown = tab(page, "containers")
    row = shown.locator("[data-service=worker-1]").first
    expect(row).to_contain_text("python:3.11")
    expect(row).to_contain_text(re.compile(r"\d+\.\d+\.\d+\.\d+"))
    expect(shown.locator("[data-container=paceline-clone]")).to_have_count(0)
    shown.get_by_role("checkbox").check()
    expect(shown.locator("[data-container=paceline-clone]").first).to_be_visible()


def check_logs(site, page):
    tab(page, "services").locator("[data-service=worker-1] a", has_text=re.compile("Log|日志")).click()
    log = page.locator("[data-tab=logs] [role=log]").first
    expect(log).to_contain_text("worker-1 trains on shard 1 of 2")
    expect(log).not_to_contain_text("worker-0 trains on shard")
    with page.expect_download() as download:
        page.locator("[data-tab=logs] .log-toolbar").get_by_role("button", name=re.compile("Download|下载")).click()
        menu = page.locator(".ant-dropdown:visible .ant-dropdown-menu-item")
        if menu.count():
            menu.first.click()
    written = Path(download.value.path()).read_text()
    stored = site.cluster.paceline("logs", "tf-train-distributed", "--role", "worker", "--index", "1").out
    assert [line for line in stored.splitlines() if line not in written] == []


def check_routes(page):
    shown = tab(page, "routes")
    assert shown.locator("[data-route]").count() == 3
    for index in (0, 1):
        tab(page, "routes").locator(f"[data-route=tensorboard{index}] a").first.click()
        page.wait_for_selector('[data-app-state="open"]')
        frame = page.wait_for_selector("iframe.pl-app-frame").content_frame()
        frame.wait_for_url(lambda url: "/.paceline/" not in url)
        runs = wait_until(
            "its curves are read",
            lambda frame=frame: frame.evaluate("fetch('data/runs').then((answer) => answer.json())"),
        )
        assert runs == [f"worker-{index}"], "each shows its own worker alone"
        page.locator(".pl-app-bar button").first.click()
        expect(page.locator("[data-tab=routes]")).to_be_visible()


def check_that_the_password_is_only_in_its_secret(site, page, repositories):
    shown = tab(page, "values")
    expect(shown.locator('[data-value="git.secret"]')).to_contain_text("tf-train-distributed-git")
    assert repositories.password not in page.content()
    app = object_of(site.cluster, "trainingapp", "tf-train-distributed")
    assert repositories.password not in json.dumps(app)
    assert app["spec"]["values"]["data"] == {"claim": "tfoss"}
    secret = object_of(site.cluster, "secret", "tf-train-distributed-git")
    assert [owner["name"] for owner in secret["metadata"]["ownerReferences"]] == ["tf-train-distributed"]


def test_each_field_says_what_is_wrong_with_it_while_one_types(site, repositories):
    install(site.cluster, repositories, "taken", is_suspended=True)
    trainer = Trainer(site, site.open("train"))
    labels = trainer.words

    for name, text, problem in (
        ("name", "TF_Train", labels["name"]),
        ("name", "taken", labels["taken"]),
        ("git", "git@example.org:team/code.git", labels["ssh"]),
        ("command", " ", labels["empty"]),
    ):
        trainer.fill(**{name: text})
        expect(trainer.field(name).get_by_role("alert")).to_contain_text(problem)
    trainer.switch("isMonitored")
    trainer.fill(logDir="/tmp/logs")
    expect(trainer.field("logDir").get_by_role("alert")).to_contain_text(labels["path"])
    trainer.choose("framework", labels["image"])
    trainer.fill(image=HOSTILE)
    expect(trainer.field("image").get_by_role("alert")).to_be_visible()

    trainer.page.locator("[data-action=create]").click()
    expect(trainer.field("name").locator("input")).to_be_focused()
    assert object_of(site.cluster, "app", "tf-train") is None
    trainer.fill(name="tf-train")
    expect(trainer.field("name").get_by_role("alert")).to_have_count(0)


def test_a_refusal_leaves_the_form_as_it_is_and_no_secret_behind(site, repositories):
    site.cluster.kubectl("create", "secret", "generic", "mine-git", "--from-literal=username=other")
    trainer = Trainer(site, site.open("train"))
    trainer.fill(name="mine", git=repositories.url("code"), command="python3 train.py")
    trainer.switch("isPrivate")
    trainer.fill(user="me", password="correct-horse")

    trainer.create()

    expect(trainer.page.locator(".ant-alert-error")).to_contain_text("mine-git")
    expect(trainer.field("git").locator("input")).to_have_value(repositories.url("code"))
    assert object_of(site.cluster, "app", "mine") is None
    assert "correct-horse" not in trainer.page.inner_text("body")


def test_an_application_is_stopped_resumed_run_again_and_uninstalled(site, repositories):
    install(site.cluster, repositories, "slow", "slow")
    labels = WORDS[site.look.language]
    page = site.open("apps")
    page.locator("[data-app=slow] a").first.click()
    comes_to(page, "Running")

    for action, phase in (("stop", "Stopped"), ("resume", "Running"), ("rerun", "Running")):
        page.locator(f"[data-action={action}]").first.click()
        page.locator(f".ant-modal:visible [data-action={action}][data-ready=true]").wait_for()
        page.locator(".ant-modal:visible").get_by_role("button", name=labels[action], exact=True).click()
        expect(page.locator(".ant-modal:visible")).to_have_count(0)
        comes_to(page, phase)
    expect(page.locator("[data-revision-number='2']")).to_be_visible()
    comes_to(page, "Running")
    revisions = tab(page, "revisions")
    expect(revisions.locator("[data-revision-row='2'] [data-phase=Running]")).to_be_visible()
    expect(revisions.locator("[data-revision-row='1']")).to_be_visible()

    page.locator("[data-action=more]").click()
    page.get_by_role("menuitem", name=re.compile(labels["uninstall"])).click()
    page.locator(".ant-modal:visible").get_by_role("button", name=labels["uninstall"], exact=True).click()
    page.wait_for_url("**/apps")
    expect(page.locator("[data-app=slow]")).to_have_count(0)


def test_a_template_has_a_form_with_its_defaults_and_only_changes_are_written(site):
    """H-31: what is changed holds, the rest is as the template has it."""
    page = site.open("apps")
    page.locator("[data-action=new]").click()
    page.get_by_role("menuitem").filter(has_text="TensorFlow").click()
    trainer = Trainer(site, page)
    expect(trainer.field("hyperparams.epochs").locator("input")).to_have_value("100")
    trainer.fill(name="mnist", **{"worker.gpuCount": "0", "hyperparams.epochs": "2", "worker.memory": "64Mi"})
    trainer.fill(**{"ps.memory": "64Mi", "ps.number": "1"})
    trainer.fill(**{"persistence.mountPath": "relative"})
    expect(page.locator("[data-preview=faults]")).to_be_visible()
    trainer.fill(**{"persistence.mountPath": ""})
    trainer.create()

    page.wait_for_url("**/apps/default/mnist")
    values = object_of(site.cluster, "app", "mnist")["spec"]["values"]
    assert values == {
        "worker": {"gpuCount": 0, "memory": "64Mi"},
        "hyperparams": {"epochs": "2"},
        "ps": {"memory": "64Mi", "number": 1},
    }
    shown = tab(page, "values")
    expect(shown.locator('[data-value="hyperparams.batchsize"]')).to_contain_text("20")
    comes_to(page, "Succeeded")

    page.locator("[data-action=change]").click()
    trainer = Trainer(site, page)
    trainer.fill(**{"hyperparams.learningrate": "0.05"})
    trainer.create()
    expect(page.locator("[data-upgrade=ready]")).to_be_visible()
    page.locator("[data-action=upgrade]").click()
    page.wait_for_url("**/apps/default/mnist")
    expect(page.locator("[data-revision-number='2']")).to_be_visible()
    expect(tab(page, "revisions").locator("[data-revision-row='2']")).to_contain_text("0.05")


def test_hostile_words_are_shown_as_text(site, repositories):
    values = {"command": f"echo '{HOSTILE}'; echo '{HOSTILE}' >&2", "hyperparameters": {}, "logDir": "/output/x"}
    install(site.cluster, repositories, "hostile", **values)
    page = site.open("apps/default/hostile")
    comes_to(page, "Succeeded")

    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    tab(page, "logs")
    expect(page.locator("[role=log]").first).to_contain_text(HOSTILE)
    tab(page, "values")
    expect(page.locator('[data-value="command"]')).to_contain_text(HOSTILE)
    assert page.locator("img[src=x]").count() == 0
