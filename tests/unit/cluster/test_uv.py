"""uv is told what pip would have been told."""

import sys
from pathlib import Path

import pytest

from paceline.environments.cache import EnvironmentCache, cache_folder, find_uv, uv_variables
from paceline.errors import HostError


def told(tmp_path, **env):
    # Its own folders: what this machine's user has set is none of the test's business.
    alone = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path), "PIP_CONFIG_FILE": "/dev/null"}
    return uv_variables(alone | env, tmp_path / "cache")


def test_a_mirror_of_pip_is_one_of_uv_too(tmp_path):
    found = told(tmp_path, PIP_INDEX_URL="https://mirror.test/simple", PIP_FIND_LINKS="/a /b")

    assert found["UV_DEFAULT_INDEX"] == "https://mirror.test/simple"
    assert found["UV_FIND_LINKS"] == "/a,/b"


def test_the_file_of_pip_counts_and_its_variables_count_more(tmp_path):
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "pip.conf").write_text(
        "[global]\nindex-url = https://file.test\nextra-index-url = https://x.test\n"
    )

    found = told(tmp_path, PIP_INDEX_URL="https://typed.test")

    assert found["UV_DEFAULT_INDEX"] == "https://typed.test"
    assert found["UV_INDEX"] == "https://x.test"


def test_what_uv_is_told_itself_counts_most(tmp_path):
    found = told(tmp_path, PIP_INDEX_URL="https://pip.test", UV_DEFAULT_INDEX="https://uv.test", UV_CACHE_DIR="/big")

    assert found["UV_DEFAULT_INDEX"] == "https://uv.test"
    assert found["UV_CACHE_DIR"] == "/big"


def test_a_broken_file_of_pip_is_pips_to_complain_of(tmp_path):
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip" / "pip.conf").write_text("not an ini file")

    assert "UV_INDEX" not in told(tmp_path)


def test_downloads_lie_beside_the_environments_and_interpreters_are_never_fetched(tmp_path):
    found = told(tmp_path, VIRTUAL_ENV="/somewhere")

    assert found["UV_CACHE_DIR"] == str(tmp_path / "cache" / "uv-cache")
    assert found["UV_PYTHON_DOWNLOADS"] == "never"
    assert "VIRTUAL_ENV" not in found


def test_the_cache_is_where_its_user_wants_it():
    assert cache_folder({"PACELINE_CACHE": "/c"}) == Path("/c")
    assert cache_folder({"XDG_CACHE_HOME": "/x"}) == Path("/x/paceline")


def test_the_uv_that_came_with_paceline_is_used_unless_another_one_is_chosen(tmp_path):
    program = tmp_path / "uv"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    on_the_path = {"PATH": str(tmp_path)}

    assert find_uv(on_the_path) == str(Path(sys.executable).with_name("uv"))
    assert find_uv(on_the_path | {"PACELINE_UV": str(program)}) == str(program)
    assert find_uv({"PACELINE_UV": str(tmp_path / "missing")}) is None


def test_a_chosen_uv_that_is_no_program_is_named(tmp_path):
    cache = EnvironmentCache(cache=tmp_path, env={"PACELINE_UV": "/nowhere/uv"})

    with pytest.raises(HostError, match="PACELINE_UV=/nowhere/uv is not a program"):
        cache.uv()


def test_without_the_package_uv_one_on_the_path_is_used(tmp_path, monkeypatch):
    def missing():
        raise FileNotFoundError

    monkeypatch.setattr("paceline.environments.cache.find_uv_bin", missing)
    program = tmp_path / "uv"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)

    assert find_uv({"PATH": str(tmp_path)}) == str(program)
    assert find_uv({"PATH": str(tmp_path / "nowhere")}) is None
