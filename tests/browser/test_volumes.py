"""Volumes, their files, training curves and the comparison of jobs."""

import pytest
from playwright.sync_api import expect

from tests.browser.jobs import job, submit, wait_for_end
from tests.unit.podtools.files.event_files import event, event_file, simple

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
# A picture of one pixel.
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc0f01f00050001ff"
    "5c8a5b3f0000000049454e44ae426082"
)


def learn(rate):
    return f"for step in range(1, 101): print(f'step {{step}} loss={{1 / (1 + {rate} * step):.4f}}', flush=True)"


@pytest.fixture(scope="module", autouse=True)
def volume(cluster, tmp_path_factory):
    """A volume with some files, and two jobs whose logs have curves."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "logs").mkdir()
    events = event_file(*(event(step, simple("loss", 1 / step), time=1e9 + step) for step in range(1, 50)))
    (folder / "logs" / "events.out.tfevents.1").write_bytes(events)
    (folder / "page.html").write_text(HOSTILE)
    (folder / "pixel.png").write_bytes(PIXEL)
    (folder / "fake.png").write_text(HOSTILE)
    for command in (("create", "data", "--size", "1Gi"), ("put", f"{folder}/", "data:things")):
        ran = cluster.paceline("volume", *command)
        assert ran.code == 0, ran.err
    submit(cluster, job("slow", learn(0.1)), job("fast", learn(0.5)))
    wait_for_end(cluster, "slow", "fast")


def folder_of(site, path=""):
    tab = site.open(f"volumes/default/data?path={path}")
    tab.locator("[data-count]").wait_for()
    return tab


def test_volumes_are_listed_with_how_full_they_are(site):
    tab = site.open("volumes")
    expect(tab.locator("[data-fill]")).to_have_count(1)
    tab.get_by_role("link", name="data", exact=True).click()
    expect(tab.locator("[data-entry=things]")).to_be_visible()


def test_folders_are_walked_and_files_are_shown_as_text_or_pictures_and_never_as_pages(site):
    tab = folder_of(site)
    tab.locator("[data-entry=things]").click()
    for name, form in (("page.html", "text"), ("fake.png", "text"), ("pixel.png", "image")):
        tab.locator(f"[data-entry='{name}']").click()
        expect(tab.locator(f"[data-preview={form}]")).to_be_visible()
        if form == "text":
            assert tab.locator("[data-preview] pre").inner_text() == HOSTILE
        tab.keyboard.press("Escape")
        expect(tab.locator("[data-preview]")).to_have_count(0)
    assert tab.title() != "owned"


def test_a_file_is_uploaded_renamed_downloaded_and_removed(site, look, tmp_path):
    tab = folder_of(site, "things")
    source = tmp_path / "new.bin"
    source.write_bytes(bytes(range(256)) * 80_000)
    tab.locator("[data-upload]").set_input_files(source)
    expect(tab.locator("[data-upload-state=done]")).to_be_visible()
    row = tab.get_by_role("row").filter(has=tab.locator("[data-entry='new.bin']"))
    with tab.expect_download() as download:
        row.locator("a[download]").click()
    assert download.value.path().read_bytes() == source.read_bytes()
    row.get_by_role("button", name="new.bin").last.click()
    tab.get_by_role("menuitem").first.click()
    tab.get_by_role("dialog").get_by_role("textbox").fill("renamed.bin")
    tab.keyboard.press("Enter")
    expect(tab.locator("[data-entry='renamed.bin']")).to_be_visible()
    tab.get_by_role("row").filter(has=tab.locator("[data-entry='renamed.bin']")).get_by_role("button").last.click()
    tab.get_by_role("menuitem").last.click()
    tab.get_by_role("dialog").get_by_role("button", name="Delete" if look.language == "en" else "删除").click()
    expect(tab.locator("[data-entry='renamed.bin']")).to_have_count(0)


def test_the_curves_of_a_folder_and_of_a_job_are_drawn(site):
    tab = site.open("volumes/default/data?path=things/logs&curves=1")
    expect(tab.locator("[data-metric=loss] canvas")).to_be_visible()
    tab.close()
    tab = site.open("jobs/default/PyTorchTrainingJob/fast/curves")
    expect(tab.locator("[data-metric=loss] canvas")).to_be_visible()
    expect(tab.locator("[data-metric=loss] header")).to_contain_text("0.0196")


def test_jobs_are_compared_by_what_differs_and_the_best_is_marked(site):
    tab = site.open("compare?jobs=default/PyTorchTrainingJob/slow,default/PyTorchTrainingJob/fast")
    values = tab.locator("[data-table=values] tbody tr")
    expect(values).to_have_count(1)
    expect(values.first).to_contain_text("containers[pytorch].command")
    best = tab.locator("[data-table=results] tr[data-metric=loss] td")
    expect(best.nth(1)).to_contain_text("★")
    expect(best.nth(0)).not_to_contain_text("★")
    expect(tab.locator("[data-metric=loss] canvas")).to_be_visible()
