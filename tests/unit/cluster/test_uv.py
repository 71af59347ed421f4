"""uv is told what pip would have been told."""

from pathlib import Path

from paceline.environments.cache import cache_folder, find_uv, uv_variables


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


def test_uv_of_our_own_folder_is_found_after_that_on_the_path(tmp_path):
    for folder in ("cache/uv-own/bin", "path"):
        program = tmp_path / folder / "uv"
        program.parent.mkdir(parents=True)
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)

    assert find_uv(tmp_path / "cache", str(tmp_path / "path")) == str(tmp_path / "path" / "uv")
    assert find_uv(tmp_path / "cache", str(tmp_path / "nowhere")) == str(tmp_path / "cache/uv-own/bin/uv")
