"""Every page in both languages, themes and widths: nothing is cut off, nothing is untranslated, axe finds nothing.

`make screenshots` runs these tests with PACELINE_SCREENSHOTS, a folder for one picture of each.
"""

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import LOOKS, Look
from tests.browser.jobs import FAIL, RUN, SUCCEED, job, submit, wait_for_end

PICTURES = os.environ.get("PACELINE_SCREENSHOTS", "")
AXE = Path(__file__).parents[2] / "console" / "node_modules" / "axe-core" / "axe.min.js"
ALL_LOOKS = (*LOOKS, Look(language="en", theme="dark"), Look(language="zh", theme="light"))
WIDTHS = (1280, 390)
FAILED = "jobs/default/PyTorchTrainingJob/mnist"
APP = "apps/default/points"
SMALL = "worker.gpuCount=0,worker.memory=64Mi,ps.memory=64Mi,hyperparams.epochs=1,tensorboard.image=nobody/has-this:1"
PAGES = {
    "overview": "",
    "jobs": "jobs",
    "job-summary": FAILED,
    "job-replicas": f"{FAILED}/replicas",
    "job-logs": f"{FAILED}/logs",
    "job-events": f"{FAILED}/events",
    "job-yaml": f"{FAILED}/yaml",
    "job-running": "jobs/default/PyTorchTrainingJob/digits",
    "job-waiting": "jobs/default/PyTorchTrainingJob/bert",
    "job-terminal": "jobs/default/PyTorchTrainingJob/digits/terminal",
    "create": "create/PyTorchTrainingJob",
    "create-notebook": "create/Notebook",
    "train": "train",
    "train-template": "train?template=tensorflow-training",
    "train-change": "train?app=default/points",
    "apps": "apps",
    "app-overview": APP,
    "app-services": f"{APP}/services",
    "app-containers": f"{APP}/containers",
    "app-logs": f"{APP}/logs",
    "app-routes": f"{APP}/routes",
    "app-revisions": f"{APP}/revisions",
    "app-values": f"{APP}/values",
    "notebooks": "notebooks",
    "tensorboards": "tensorboards",
    "job-curves": "jobs/default/PyTorchTrainingJob/digits/curves",
    "compare": "compare?jobs=default/PyTorchTrainingJob/digits,default/PyTorchTrainingJob/mnist",
    "job-resources": "jobs/default/PyTorchTrainingJob/digits/resources",
    "history": "history",
    "history-record": "history/default/{record}",
    "volumes": "volumes",
    "volume-files": "volumes/default/points-data",
    "settings": "settings",
    "about": "about",
}
# What the page shows as others wrote it: YAML, logs, messages of the API, names.
VERBATIM = "code, pre, kbd, [translate=no], [lang=en], .cm-editor, .xterm, [role=log]"
# Three English words in a row; names of products and fields have fewer.
ENGLISH = re.compile(r"\b[A-Za-z]{2,}(?: [a-z]{2,}){2,}")
TEXTS = """verbatim => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    const parent = walker.currentNode.parentElement;
    if (parent && !parent.closest(verbatim) && parent.checkVisibility()) texts.push(walker.currentNode.textContent);
  }
  return texts;
}"""
# Text that is cut off without an ellipsis, outside of what may be scrolled.
CUT = """() => [...document.querySelectorAll('body *')].filter(element => {
  const style = getComputedStyle(element);
  const hasText = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
  const isHidden = style.overflowX === 'hidden' || style.overflowX === 'clip';
  const isTiny = element.clientWidth <= 1 || element.closest('.visually-hidden, .cm-editor, .xterm, [role=log]');
  return hasText && isHidden && !isTiny && style.textOverflow !== 'ellipsis' && element.checkVisibility()
    && element.scrollWidth > element.clientWidth + 1;
}).map(element => element.textContent.trim().slice(0, 80))"""
# Words that a narrow column breaks into single letters, one below the other.
SQUEEZED = """() => [...document.querySelectorAll('th, td *, dd, button, label')].filter(element => {
  const hasText = [...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim().length > 3);
  const size = parseFloat(getComputedStyle(element).fontSize);
  const box = element.getBoundingClientRect();
  return hasText && element.checkVisibility() && box.width > 0 && box.width < 3 * size && box.height > 4 * size;
}).map(element => element.textContent.trim().slice(0, 80))"""
# Controls that a flexible column has stretched.
STRETCHED = """() => [...document.querySelectorAll('.ant-select, .ant-btn, input')].filter(control =>
  control.checkVisibility() && control.getBoundingClientRect().height > 100
).map(control => control.textContent.trim().slice(0, 80) || control.outerHTML.slice(0, 80))"""
# Hints in empty fields that are longer than their field.
SHORT_FIELDS = """() => [...document.querySelectorAll('input[placeholder]')].filter(input => {
  const style = getComputedStyle(input);
  const pen = document.createElement('canvas').getContext('2d');
  pen.font = style.font;
  const room = input.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return input.checkVisibility() && input.value === '' && pen.measureText(input.placeholder).width > room + 1;
}).map(input => input.placeholder)"""
# Columns that cannot be scrolled to. The header of a table that scrolls follows its body.
HIDDEN_COLUMNS = """() => [...document.querySelectorAll('table')].filter(table => {
  const scrolls = box => ['auto', 'scroll'].includes(getComputedStyle(box).overflowX);
  const clips = box => ['hidden', 'clip'].includes(getComputedStyle(box).overflowX);
  let box = table.parentElement;
  while (box && !scrolls(box) && !clips(box)) box = box.parentElement;
  return table.checkVisibility() && !table.closest('.ant-table-header') && box && clips(box)
    && table.getBoundingClientRect().right > box.getBoundingClientRect().right + 1;
}).map(table => [...table.querySelectorAll('th')].at(-1)?.textContent || table.textContent.slice(-40))"""

# After a change of the window's size, parts of the page are laid out anew one after the other.
UNTIL_STILL = """() => new Promise(resolve => {
  const boxes = () => JSON.stringify([...document.querySelectorAll('main, main *, [role=dialog], .ant-popover')]
    .map(element => element.getBoundingClientRect()).map(box => [box.x, box.width, box.height]));
  // A page that shows seconds never rests for long on a busy machine.
  const end = performance.now() + 5000;
  const look = (last, frames) => requestAnimationFrame(() => {
    const now = boxes();
    if (frames > 4 || performance.now() > end) resolve();
    else look(now, now === last ? frames + 1 : 0);
  });
  look('', 0);
})"""
PLACES = {
    "cut off": CUT,
    "squeezed": SQUEEZED,
    "stretched": STRETCHED,
    "hint longer than its field": SHORT_FIELDS,
    "columns out of reach": HIDDEN_COLUMNS,
}


@pytest.fixture(scope="module", autouse=True)
def some_jobs(cluster):
    gpus = {"limits": {"nvidia.com/gpu": "4", "cpu": "8", "memory": "16Gi"}}
    sizes = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}}
    submit(
        cluster,
        job("resnet", SUCCEED, replicas=2, labels={"team": "vision"}, resources=sizes),
        job("mnist", FAIL, replicas=2, resources=sizes),
        job("digits", RUN, replicas=2, resources=sizes),
        job("bert", SUCCEED, replicas=4, resources=gpus),
    )
    ran = cluster.paceline("app", "install", "points", "tensorflow-training", "--set", SMALL)
    assert ran.code == 0, ran.err
    wait_for_end(cluster, "resnet", "mnist", "points")
    ran = cluster.paceline("app", "upgrade", "points", "--set", "hyperparams.learningrate=0.05,worker.number=1")
    assert ran.code == 0, ran.err
    wait_for_end(cluster, "points")


# Every page in every look for the pictures; otherwise the looks take turns, so that each page is seen in one.
VIEWS = [
    pytest.param(name, look, id=f"{look.language}-{look.theme}-{name}")
    for number, name in enumerate(PAGES)
    for look in (ALL_LOOKS if PICTURES else (LOOKS[number % len(LOOKS)],))
]


@pytest.mark.parametrize(("name", "look"), VIEWS)
def test_a_page_is_whole(site, look, name):
    page = site.open(PAGES[name].format(record=record_of(site.cluster)))
    faults = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        expect(page.locator("[data-page]").first).to_be_visible()
        settle(page)
        if PICTURES:
            page.screenshot(path=Path(PICTURES) / f"{name}-{look.language}-{look.theme}-{width}.png")
        faults += [f"{width} pixels: {fault}" for fault in faults_of(page, look)]
    assert not faults


def record_of(cluster):
    """Return the name of the record of the job that failed."""
    output = cluster.kubectl(
        "get", "jobrecords", "-o", "jsonpath={.items[?(@.spec.job.name=='mnist')].metadata.name}"
    ).out
    return output.strip()


def open_upgrade(page):
    page.locator('[data-field="hyperparams.learningrate"] input').fill("0.5")
    page.locator("form[data-ready=true] [data-action=create]").click()


def clicking(selector):
    return lambda page: page.locator(selector).click()


# What lies over a page: the page, what opens it, and what is there then.
LAYERS = {
    "palette": (FAILED, clicking("[data-action=palette]"), "dialog.pl-palette [role=option]"),
    "palette-jobs": ("jobs", clicking("[data-action=palette]"), "dialog.pl-palette [role=option]"),
    "views": ("jobs?phase=Failed", clicking("[data-action=views]"), ".pl-views form"),
    "app-upgrade": ("train?app=default/points", open_upgrade, "[data-upgrade=ready]"),
    "app-rollback": (
        f"{APP}/revisions",
        clicking("[data-revision-row='1'] [data-action=rollback]"),
        "[data-upgrade=ready]",
    ),
}


@pytest.mark.parametrize("look", ALL_LOOKS if PICTURES else LOOKS, ids=lambda look: f"{look.language}-{look.theme}")
@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_over_a_page_is_whole(site, look, name):
    path, open_layer, content = LAYERS[name]
    page = site.open(path)
    settle(page)
    open_layer(page)
    faults = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        expect(page.locator(content).first).to_be_visible()
        settle(page)
        if PICTURES:
            page.screenshot(path=Path(PICTURES) / f"{name}-{look.language}-{look.theme}-{width}.png")
        faults += [f"{width} pixels: {fault}" for fault in faults_of(page, look)]
    assert not faults


@pytest.mark.parametrize("look", ALL_LOOKS if PICTURES else LOOKS, ids=lambda look: f"{look.language}-{look.theme}")
@pytest.mark.parametrize("mode", ["login", "login-token"])
def test_the_login_is_whole(site, look, mode):
    """Of the embedded cluster, and of a console for a whole cluster, where everybody brings a token."""
    page = site.context.new_page()
    cluster = {"cluster": "lab", "server": "https://10.0.0.1:6443", "fingerprint": ":".join(["A7"] * 32)}
    if mode == "login-token":
        page.route("**/api/login", lambda route: route.fulfill(json={"codes": False, **cluster}))
    page.goto(site.address)
    faults = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        expect(page.locator("[data-page=login] h1")).to_be_visible()
        settle(page)
        if PICTURES:
            page.screenshot(path=Path(PICTURES) / f"{mode}-{look.language}-{look.theme}-{width}.png")
        faults += [f"{width} pixels: {fault}" for fault in faults_of(page, look)]
    assert not faults


def settle(page):
    """Wait until nothing loads (no skeleton, no spinner, no request) and nothing moves any more."""
    page.wait_for_load_state("networkidle")
    expect(page.locator(".ant-skeleton, .ant-spin-spinning")).to_have_count(0)
    page.evaluate(UNTIL_STILL)


def faults_of(page, look):
    if page.evaluate("() => document.documentElement.scrollWidth > window.innerWidth + 1"):
        yield "the page is wider than the window"
    for fault, places in PLACES.items():
        for text in page.evaluate(places):
            yield f"{fault}: {text}"
    if look.language == "zh":
        yield from untranslated(page)
    yield from axe_violations(page)


def untranslated(page):
    """Yield English of our own; built-in templates and empty fields have words, though the server speaks English."""
    ours = page.evaluate(TEXTS, VERBATIM)
    from_server = page.locator("form.pl-train [lang=en], .pf-finding [translate=no]").all_text_contents()
    for text in (*ours, *from_server):
        if ENGLISH.search(text):
            yield f"not translated: {text.strip()[:80]}"


def axe_violations(page):
    # Evaluated, not added as a script: the content security policy holds for scripts of the page.
    page.evaluate(AXE.read_text())
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    for violation in found["violations"]:
        if violation["impact"] in ("serious", "critical"):
            places = "; ".join(str(node["target"]) for node in violation["nodes"][:3])
            yield f"axe {violation['id']}: {places}"
