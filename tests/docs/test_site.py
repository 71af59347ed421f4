"""`make docs` makes a site of the documentation, fails on a warning, and the site needs no internet."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# What `make docs` reads.
SOURCES = ("Makefile", "docs", "mkdocs.yml", "tools")
LOADS = r"<(?:script|img|iframe)\b[^>]*\bsrc=\"(https?:[^\"]+)|<link\b(?=[^>]*stylesheet)[^>]*href=\"(https?:[^\"]+)"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def make_docs(repository, folder):
    """Build the site; the builder is installed once, into the cache."""
    command = ["make", "--directory", repository, "docs", f"ARGS=--site-dir={folder}"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    built = make_docs(ROOT, folder)
    assert built.returncode == 0, built.stderr
    return folder


def test_the_site_is_built_without_a_warning(site):
    assert (site / "index.html").exists()
    assert (site / "guides" / "debug.html").exists()
    assert not (site / "requirements.lock").exists()


def test_a_field_in_a_table_breaks_behind_a_dot_only(site):
    page = (site / "reference" / "kinds" / "pytorchtrainingjob.html").read_text()

    assert "<td><code>source.<wbr>git.<wbr>url</code></td>" in page
    assert "assets/site.css" in page


def test_a_page_loads_nothing_from_the_internet(site):
    foreign = [
        f"{page.relative_to(site)}: {match[1] or match[2]}"
        for page in site.rglob("*.html")
        for match in re.finditer(LOADS, page.read_text())
    ]

    assert foreign == []


def test_a_broken_link_fails_the_build(tmp_path):
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    page = tmp_path / "docs" / "architecture.md"
    page.write_text(page.read_text() + "\n[nowhere](nowhere.md)\n")

    built = make_docs(tmp_path, tmp_path / "site")

    assert built.returncode != 0
    assert "nowhere.md" in built.stderr
