"""The command line itself: quick to start, clear about bad input, never a stack trace."""

import json
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from paceline.cli.command_table import SECTIONS, GroupEntry, summary_of
from paceline.cli.main import group, main

EXAMPLES = Path(__file__).parents[3] / "examples"
CLAIM = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n"

# What a command that prints its help must not pay for.
HEAVY = (
    "rich",
    "yaml",
    "msgspec",
    "asyncio",
    "httptools",
    "ssl",
    "http.client",
    "orjson",
    "jsonschema_rs",
    "subprocess",
    "uvicorn",
    "logging",
    "cryptography",
    "unicodedata",
)
# What a command that asks the cluster one question must not pay for.
HEAVY_FOR_GET = (
    "rich",
    "yaml",
    "msgspec",
    "asyncio",
    "httptools",
    "jsonschema_rs",
    "subprocess",
    "uvicorn",
    "cryptography",
)


def modules_after(code, home):
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env={"PACELINE_HOME": str(home)}
    )
    return set(json.loads(ran.stderr.splitlines()[-1]))


def test_help_loads_nothing_heavy(tmp_path):
    loaded = modules_after("from paceline.cli.main import main; main(['--help'])", tmp_path)

    assert sorted(loaded.intersection(HEAVY)) == []
    assert not any(name.startswith("paceline.cli.commands") for name in loaded)


def test_get_loads_nothing_heavy(tmp_path):
    loaded = modules_after("from paceline.cli.main import main; main(['get'])", tmp_path)

    assert "paceline.cli.commands.jobs.get" in loaded
    assert sorted(loaded.intersection(HEAVY_FOR_GET)) == []


def commands(table, path=()):
    """Yield every command and group with its path."""
    for name, entry in table.items():
        yield (*path, name), entry
        if isinstance(entry, GroupEntry):
            yield from commands(entry.commands, (*path, name))


EVERYDAY = {name: entry for part in SECTIONS.values() for name, entry in part.items()}
COMMANDS = {" ".join(path): entry for path, entry in commands(EVERYDAY)}


@pytest.mark.parametrize("path", COMMANDS)
def test_the_list_of_commands_says_what_each_command_says_of_itself(path):
    command = group
    for name in path.split():
        command = command.get_command(click.Context(command), name)

    assert command is not None
    assert command.get_short_help_str(limit=200) == summary_of(COMMANDS[path])


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_help_with_an_example(path, capsys):
    assert main([*path.split(), "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert summary_of(COMMANDS[path]) in shown
    assert re.search(rf"Examples?: .*paceline {path}\b", shown) or path == "completion"
    assert "\\b" not in shown


def test_the_help_has_titled_sections_of_everyday_commands_and_groups(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert re.findall(r"^(\w[\w ]*):$", shown, re.MULTILINE)[1:] == list(SECTIONS)
    assert set(SECTIONS["Manage"]) == {"app", "volume", "repo", "env", "cluster", "kube"}


FORMER = {
    "list": "paceline app list",
    "install": "paceline app install",
    "template": "paceline app template",
    "code": "paceline repo",
    "image": "paceline env",
    "backup": "paceline cluster backup",
    "restore": "paceline cluster restore",
    "controller": "paceline kube controller",
    "crds": "paceline kube crds",
    "descrbe": "paceline describe",
}


@pytest.mark.parametrize(("typed", "command"), FORMER.items())
def test_a_former_or_mistyped_command_gets_a_hint(capsys, typed, command):
    assert main([typed]) == 2
    assert f"No such command {typed!r}; did you mean `{command}`?" in said(capsys)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("PACELINE_HOME", str(tmp_path))
    monkeypatch.delenv("PACELINE_KUBECONFIG", raising=False)
    return tmp_path


def said(capsys):
    err = capsys.readouterr().err
    assert "Traceback" not in err
    return err


BAD = {
    "no such command": (["fly"], "error: No such command 'fly'"),
    "no such option": (["get", "--speed"], "error: No such option"),
    "no file": (["run"], "error: Missing argument 'FILE...'"),
    "no such file": (["run", "nowhere.yaml"], "error: nowhere.yaml: no such file"),
    "no such format": (["get", "-o", "xml"], "error: Invalid value for '-o'"),
    "no duration": (["logs", "a", "--since", "soon"], "'soon' is neither a duration nor a time; write a duration"),
    "no row of the image table": (
        ["up", "-d", "--image", "pytorch"],
        "error: --image: 'pytorch' is not allowed; write PATTERN=ENVIRONMENT",
    ),
}


@pytest.mark.parametrize(("args", "words"), BAD.values(), ids=BAD)
@pytest.mark.usefixtures("home")
def test_bad_input_is_named_and_ends_with_2(capsys, args, words):
    assert main(args) == 2
    assert words in said(capsys)


def test_bad_yaml_is_refused_before_anything_is_started(home, capsys):
    path = home / "job.yaml"
    path.write_text("- a\n")

    assert main(["run", str(path)]) == 2
    assert f"error: {path}:1: a list of 1 item is not an object" in said(capsys)
    assert [each.name for each in home.iterdir()] == ["job.yaml"]


def test_every_fault_is_a_line_of_its_own(home, capsys):
    path = home / "job.yaml"
    path.write_text("spec: {}\n")

    assert main(["run", str(path)]) == 2
    assert len([line for line in said(capsys).splitlines() if line.startswith("error: ")]) == 3


@pytest.mark.parametrize("args", [["get"], ["describe", "a"], ["logs", "a"], ["delete", "a", "-y"]])
@pytest.mark.usefixtures("home")
def test_without_a_cluster_the_answer_is_3_and_how_to_start_one(capsys, args):
    assert main(args) == 3
    assert "start one with `paceline up -d`" in said(capsys)


def test_a_cluster_that_is_gone_is_said_so(home, capsys):
    config = {
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "a", "user": {}}],
    }
    (home / "kubeconfig").write_text(json.dumps(config))

    assert main(["get"]) == 3
    assert "no cluster responds in" in said(capsys)


@pytest.mark.usefixtures("home")
def test_a_kubeconfig_that_is_missing_is_named(capsys):
    assert main(["get", "--kubeconfig", "nowhere"]) == 1
    assert "cannot read nowhere" in said(capsys)


@pytest.mark.usefixtures("home")
def test_down_without_a_cluster_is_fine(capsys):
    assert main(["down"]) == 0
    assert "No cluster is running" in said(capsys)


@pytest.mark.usefixtures("home")
def test_the_version_does_not_need_a_cluster(capsys):
    assert main(["version"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "cluster  not running"


def test_a_bug_is_called_a_bug(monkeypatch, capsys):
    def broken(*_args, **_kwargs):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(group, "main", broken)
    monkeypatch.delenv("PACELINE_DEBUG", raising=False)

    assert main(["get"]) == 1
    assert "error: this is a bug in Paceline: ZeroDivisionError: by zero" in said(capsys)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_offered(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "_PACELINE_COMPLETE" in capsys.readouterr().out


def test_a_reader_that_leaves_early_is_no_error():
    program = "from paceline.cli.main import main; raise SystemExit(main(['--help']))"
    ran = subprocess.run(
        ["bash", "-c", f'"{sys.executable}" -c "{program}" | true'], capture_output=True, text=True, check=False
    )

    assert ran.stderr == ""


def test_a_valid_file_is_checked_without_a_cluster_and_what_could_not_be_is_said(home, capsys):
    path = home / "job.yaml"
    path.write_text((EXAMPLES / "02-hello" / "job.yaml").read_text() + "---\n" + CLAIM)

    assert main(["check", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{path}:3: GenericJob hello is valid\n"
    assert "PersistentVolumeClaim data was not validated, because no cluster is running" in printed.err
    assert [entry.name for entry in home.iterdir()] == ["job.yaml"]


@pytest.mark.usefixtures("home")
def test_the_status_of_a_cluster_that_does_not_run_says_how_to_start_it(capsys):
    assert main(["cluster", "status"]) == 3
    printed = capsys.readouterr()
    assert "Status: not running" in printed.out
    assert "paceline up -d" in printed.err
