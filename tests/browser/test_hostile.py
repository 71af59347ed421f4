"""Texts that others write are shown as text: no script runs, no policy is violated, nothing else is asked for."""

import json
import re

import pytest
import yaml
from playwright.sync_api import expect

from tests.browser.editor import paste
from tests.browser.hostile_strings import CHARACTERS, hostile_strings
from tests.browser.jobs import create, job, wait_for_end
from tests.e2e.support.shell_pods import show

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

STRINGS = hostile_strings()
WATCH = """
  window.reports = [];
  document.addEventListener('securitypolicyviolation', event => {
    window.reports.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
  });
"""
PRINT = (
    "import os\nfor name in sorted(os.environ):\n    if name.startswith('HOSTILE'): print(os.environ[name], flush=True)"
)
RAISE = "import os\nraise ValueError(os.environ['HOSTILE_0'] + os.environ['HOSTILE_5'])"
HOSTILE = "jobs/default/PyTorchTrainingJob/constructor"
# Aliases of aliases: nine to the power of nine words.
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(9 * [f'*{alias}'])}]\n" for alias, name in zip("abcdefgh", "bcdefghi", strict=True)
)
FIVE_MEGABYTES = "apiVersion: v1\nkind: ConfigMap\ndata:\n" + "".join(
    f"  key{number}: {'x' * 90}\n" for number in range(50_000)
)


@pytest.fixture(scope="module", autouse=True)
def hostile_jobs(cluster):
    create(cluster, hostile_job("constructor", PRINT), hostile_job("prototype", RAISE))
    wait_for_end(cluster, "constructor", "prototype")
    uid = show(cluster, "pytorchtrainingjob", "constructor")["metadata"]["uid"]
    create(cluster, *(hostile_event(number, text, uid) for number, text in enumerate(STRINGS)))


def hostile_job(name, program):
    manifest = job(name, program, labels={"constructor": "proto", "onerror": "javascript"})
    notes = {f"hostile.example/{number}": text for number, text in enumerate(STRINGS)}
    manifest["metadata"]["annotations"] = notes
    container = manifest["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": f"HOSTILE_{number}", "value": text} for number, text in enumerate(STRINGS)]
    return manifest


def hostile_event(number, text, uid):
    reference = {"apiVersion": "batch.tensorstack.dev/v1beta1", "kind": "PyTorchTrainingJob", "namespace": "default"}
    stamp = "2030-01-01T00:00:00Z"
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"hostile-{number}", "namespace": "default"},
        "involvedObject": {**reference, "name": "constructor", "uid": uid},
        "reason": text[:100],
        "message": text[:1000],
        "type": "Warning",
        "source": {"component": text[:50]},
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
    }


@pytest.fixture
def watched(site):
    """The site, which fails its test where a script ran, the policy was violated, or another host was asked."""
    site.context.add_init_script(WATCH)
    strangers = []
    site.context.on("request", lambda request: strangers.append(request.url) if "evil" in request.url else None)
    site.context.on("dialog", lambda dialog: (strangers.append(dialog.message), dialog.dismiss()))
    yield site
    for page in site.context.pages:
        assert page.evaluate("[window.ran ?? null, Object.prototype.ran ?? null, window.reports]") == [None, None, []]
    assert strangers == []


def open_tall(site, path):
    """Open a page in a window that is high enough for everything that is shown only when it is scrolled to."""
    page = site.open(path)
    page.set_viewport_size({"width": 1280, "height": 9000})
    return page


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("", "prototype"),
        ("jobs", "ValueError"),
        (f"{HOSTILE}/summary", "javascript"),
        ("jobs/default/PyTorchTrainingJob/prototype/summary", "<script>window.ran=1</script>"),
        (f"{HOSTILE}/replicas", "worker-0"),
        (f"{HOSTILE}/events", "<script>window.ran=1</script>"),
        (f"{HOSTILE}/yaml", "window.ran=1"),
        ("create/PyTorchTrainingJob?from=default/PyTorchTrainingJob/constructor", "window.ran=1"),
    ],
    ids=["overview", "list", "summary", "failed", "replicas", "events", "yaml", "copy"],
)
def test_a_page_shows_them_as_text(watched, path, text):
    page = open_tall(watched, path)

    expect(page.locator("[data-page]").first).to_contain_text(text)
    page.wait_for_load_state("networkidle")


def test_a_log_shows_them_as_text(watched):
    page = open_tall(watched, f"{HOSTILE}/logs")

    expect(page.locator(".log-row").filter(has_text="<script>window.ran=1</script>").first).to_be_visible()
    expect(page.locator(".log-row").filter(has_text="__proto__").first).to_be_visible()
    assert page.locator(".log-row a").count() == 0


def test_the_editor_takes_them_as_text(watched):
    page = open_tall(watched, "create/PyTorchTrainingJob")

    for text in STRINGS[:: len(STRINGS) // 12] + list(CHARACTERS[:4]):
        paste(page, f"apiVersion: v1\nkind: {text}\nmetadata:\n  name: {text}\n")
        expect(page.locator(".pc-foot")).to_have_attribute("data-checking", "false")
    paste(page, yaml.safe_dump(hostile_job("copied", PRINT)))
    expect(page.locator(".pc-foot")).to_have_attribute("data-faults", "0")
    expect(page.locator("[data-panel=replica-worker]")).to_contain_text("worker")


@pytest.mark.parametrize("name", ["constructor", "__proto__", "<img src=x>"])
def test_an_address_with_such_a_name_is_answered(watched, name):
    page = watched.open("tensorboards")
    for path in (
        f"/tensorboards/default/{name}",
        f"/jobs/default/{name}/{name}",
        f"/create/{name}",
        f"/{name}?{name}=1",
    ):
        page.goto(page.evaluate("location.origin") + path)
        expect(page.locator("[data-page]").first).to_be_visible()


@pytest.mark.parametrize(("text", "line"), [(BOMB, 4), (FIVE_MEGABYTES, 10291)], ids=["bomb", "five megabytes"])
def test_yaml_that_grows_is_an_error_at_its_line_and_the_page_stays_usable(watched, text, line):
    page = watched.open("create/PyTorchTrainingJob")

    paste(page, text)

    foot = page.locator(".pc-foot")
    expect(foot).to_have_attribute("data-faults", "1")
    foot.locator(".pc-count").click()
    expect(foot.locator(".pc-place")).to_contain_text(re.compile(rf"\b{line}\b"))
    paste(page, json.dumps(job("small", "pass")))
    expect(foot).to_have_attribute("data-faults", "0")
    expect(page.locator("[data-path='metadata.name'] input")).to_have_value("small")
