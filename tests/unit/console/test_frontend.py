"""The front end: what its bundle weighs, what its lock file promises; and, among the slow tests, its own checks."""

import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from paceline.console.static import inline_hashes

ROOT = Path(__file__).parents[3]
CONSOLE = ROOT / "console"
BUNDLE = ROOT / "src" / "paceline" / "console" / "static"
KILOBYTE = 1024


@pytest.fixture(scope="module")
def manifest():
    path = BUNDLE / "manifest.json"
    assert path.exists(), "the web console is not built; type: make setup"
    return json.loads(path.read_text())


def transferred(manifest, names):
    return sum(manifest["files"][name].get("gzip", manifest["files"][name]["bytes"]) for name in names)


def test_the_first_page_loads_fast(manifest):
    assert manifest["entry"] in manifest["first"]
    assert manifest["style"] in manifest["first"]
    assert any(name.endswith(".woff2") for name in manifest["first"])
    assert transferred(manifest, manifest["first"]) <= 450 * KILOBYTE


def test_the_whole_bundle_stays_small(manifest):
    """900 KB were meant for the first pages; charts, files, curves, comparison and history came on top (uPlot: 25)."""
    assert transferred(manifest, manifest["files"]) <= 960 * KILOBYTE


def test_the_manifest_describes_the_files_of_the_bundle(manifest):
    for name, file in manifest["files"].items():
        content = (BUNDLE / name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file["bytes"], file["sha256"]), name
        if "gzip" in file:
            assert gzip.decompress((BUNDLE / f"{name}.gz").read_bytes()) == content
    assert {path.name.removesuffix(".gz") for path in (BUNDLE / "assets").iterdir()} == {
        Path(name).name for name in manifest["files"]
    }


def test_the_page_has_nothing_inline_that_the_content_security_policy_forbids(manifest):
    page = (BUNDLE / "index.html").read_text()

    assert '<meta name="csp-nonce" content="__NONCE__" />' in page
    # One script is inline, and allowed by its hash.
    scripts = re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL)
    assert [bool(script) for script in scripts] == [True, False]
    assert len(inline_hashes(page).split()) == 1
    assert not re.search(r"<style|\sstyle=|\son\w+=", page.replace(scripts[0], ""))
    assert set(re.findall(r'(?:href|src)="/([^"]+)"', page)) <= set(manifest["files"])


def test_every_package_has_one_version_and_a_checksum_and_no_host():
    project = json.loads((CONSOLE / "package.json").read_text())
    lock = json.loads((CONSOLE / "package-lock.json").read_text())
    packages = {name: package for name, package in lock["packages"].items() if name}

    versions = {**project["dependencies"], **project["devDependencies"], **project["overrides"]}
    assert not [name for name, version in versions.items() if not re.fullmatch(r"\d+\.\d+\.\d+", version)]
    assert not [name for name, package in packages.items() if not package["integrity"].startswith("sha512-")]
    assert not [name for name, package in packages.items() if "resolved" in package]


def test_no_package_of_a_build_runs_a_script_when_it_is_installed():
    lock = json.loads((CONSOLE / "package-lock.json").read_text())
    scripted = {name for name, package in lock["packages"].items() if package.get("hasInstallScript")}

    # Its script only replaces a small program by a faster one. Packages marked optional are for other systems.
    assert {name for name in scripted if not lock["packages"][name].get("optional")} == {"node_modules/esbuild"}
    assert "ignore-scripts=true" in (CONSOLE / ".npmrc").read_text().splitlines()


def npm(*arguments, **variables):
    command = [shutil.which("npm"), "run", "--silent", *arguments]
    result = subprocess.run(
        command, cwd=CONSOLE, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_types_of_the_front_end_fit():
    npm("check")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_units_of_the_front_end_work():
    npm("test")


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_text_that_one_language_lacks_does_not_compile(tmp_path):
    copy = tmp_path / "console"
    shutil.copytree(CONSOLE, copy, ignore=shutil.ignore_patterns("node_modules", "dist"))
    (copy / "node_modules").symlink_to(CONSOLE / "node_modules")
    texts = copy / "src" / "locales" / "zh" / "common.ts"
    texts.write_text(texts.read_text().replace("    jobs: '作业',\n", "", 1))

    result = subprocess.run(
        [shutil.which("npm"), "run", "--silent", "check"], cwd=copy, capture_output=True, text=True, check=False
    )

    assert result.returncode != 0
    assert "Property 'jobs' is missing" in result.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_same_sources_give_the_same_bytes(tmp_path):
    bundles = []
    for folder in (tmp_path / "a", tmp_path / "b"):
        npm("build", PACELINE_CONSOLE_OUT=str(folder))
        bundles.append({path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()})

    assert bundles[0] == bundles[1]
    assert len(bundles[0]) > 20
