"""Every fenced block is something that a test checks, or says that it is output.

In     all Markdown files; the command table, the Makefile, the kinds and examples/.
Out    blocks without a tag, commands and options that do not exist, objects that would be refused.
Never  starts a cluster: tests/e2e/cli/test_guides.py types the commands.
"""

import copy
import re

import click
import pytest
import yaml
from tests.docs.blocks import ROOT, blocks_of, commands_of, documents_in, pages, prose_of, words_of

from paceline.cli.commands.jobs.run import group_of, validate_locally
from paceline.cli.main import group
from paceline.cluster import config
from paceline.sdk.discovery import PACELINE_GROUPS
from paceline.sdk.submission.manifest import read_text
from paceline.settings import Settings

TAGS = {"sh", "console", "text", "yaml", "python"}
# The programs that pages may type; a new one is added here on purpose.
PROGRAMS = {"base64", "cat", "cd", "cp", "curl", "echo", "export", "git", "grep", "head", "ls"}
PROGRAMS |= {"mkdir", "pip", "pytest", "python3", "rm", "sha256sum", "source", "ssh"}
KUBECTL = {"annotate", "apply", "create", "delete", "describe", "explain", "get", "label", "logs", "patch", "rollout"}
KUBECTL |= {"wait"}
HELM = {"install", "list", "rollback", "status", "template", "uninstall", "upgrade"}
VERBS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))

BLOCKS = [block for page in pages() for block in blocks_of(page)]
COMMANDS = [(block, command) for block in BLOCKS for command in commands_of(block)]
JOB = {
    "apiVersion": "batch.tensorstack.dev/v1beta1",
    "kind": "PyTorchTrainingJob",
    "metadata": {"name": "page"},
    "spec": {
        "replicaSpecs": [
            {
                "type": "worker",
                "replicas": 2,
                "template": {
                    "spec": {"containers": [{"name": "pytorch", "image": "python:3.11", "args": ["train.py"]}]}
                },
            }
        ]
    },
}


def tagged(*tags):
    return [pytest.param(block, id=str(block)) for block in BLOCKS if block.info in tags]


def test_every_block_says_what_it_is():
    assert len(BLOCKS) > 100

    assert [f"{block}: {block.info!r}" for block in BLOCKS if block.info not in TAGS] == []


def test_every_session_has_a_command():
    assert [str(block) for block in BLOCKS if block.info in ("sh", "console") and not commands_of(block)] == []


def test_output_is_not_typed():
    """What begins with our command in a text block is a command that nobody would check."""
    typed = [
        f"{block}: {line}"
        for block in BLOCKS
        if block.info == "text" and block.page.parent.name != "reference"
        for line in block.text.splitlines()
        if re.match(r"(\$ |# )?(paceline|make|kubectl) [a-z]", line)
    ]

    assert typed == []


@pytest.mark.parametrize("block", tagged("sh", "console"))
def test_every_command_exists(block):
    wrong = [
        f"{' '.join(words)}: {problem}"
        for command in commands_of(block)
        for words in words_of(command)
        if (problem := problem_of(words))
    ]

    assert wrong == []


def problem_of(words):
    """Say what is wrong with a command; nothing, if a reader can type it."""
    missing = [word for word in words if word.startswith("examples/") and not (ROOT / word).exists()]
    if missing:
        return f"{missing[0]} does not exist"
    match [words[0].rpartition("/bin/")[2], *words[1:]]:
        case ["sudo", "apt-get", ("install" | "update"), *_]:
            return ""
        case ["uvx", "--from", _, *command]:
            return problem_of(command)
        case ["paceline", *arguments]:
            return problem_of_paceline(arguments)
        case ["make", verb, *_]:
            return "" if verb in VERBS else f"there is no make {verb}"
        case ["kubectl", verb, *_]:
            return "" if verb in KUBECTL else f"kubectl {verb} is not in the list of this test"
        case ["helm", verb, *_]:
            return "" if verb in HELM else f"helm {verb} is not in the list of this test"
        case [program, *_]:
            return "" if program in PROGRAMS else f"{program} is not in the list of this test"
    return ""


def problem_of_paceline(arguments):
    """Resolve a command through the command table and parse its arguments, without running it."""
    command, ctx, arguments = resolve(arguments)
    if isinstance(command, click.Group):
        return "" if arguments in ([], ["--help"], ["--version"]) else f"there is no {ctx.command_path} {arguments[0]}"
    try:
        command.make_context(ctx.info_name, list(arguments), parent=ctx.parent)
    except click.exceptions.Exit:
        return ""
    except click.ClickException as error:
        return error.format_message()
    return ""


def resolve(arguments):
    """Find the command that words name: it, its context, and the words behind its name."""
    command, ctx = group, click.Context(group, info_name="paceline")
    while isinstance(command, click.Group) and arguments:
        child = command.get_command(ctx, arguments[0])
        if child is None:
            break
        command, ctx = child, click.Context(child, info_name=arguments[0], parent=ctx)
        arguments = arguments[1:]
    return command, ctx, arguments


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_prose_names_exists(page):
    wrong = []
    for text in re.findall(r"`(paceline [^`]+)`", prose_of(page)):
        words = next(words_of(" ".join(text.split()).replace("…", "")))
        command, ctx, rest = resolve(words[1:])
        options = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {
            "--help",
            "-h",
            "-",
        }
        options |= {"--version"} if command is group else set()
        unknown = [word for word in rest if word.startswith("-") and not set(spelled_out(word)) <= options]
        is_unknown = isinstance(command, click.Group) and rest[:1] and not rest[0].isupper() and rest[0][0] != "-"
        wrong += [f"{text}: there is no {ctx.command_path} {rest[0]}"] if is_unknown else []
        wrong += [f"{text}: {ctx.command_path} has no {word}" for word in unknown]
    # The changelog tells what commands were called.
    assert page.name == "CHANGELOG.md" or wrong == []


def spelled_out(option):
    """Return `-it` as `-i` and `-t`, and `--name=value` as `--name`."""
    return [option.partition("=")[0]] if option.startswith("--") or option == "-" else [f"-{x}" for x in option[1:]]


@pytest.mark.parametrize("block", tagged("yaml"))
def test_every_object_is_valid(block, tmp_path):
    first = block.text.partition("\n")[0]
    if first == "# settings.yaml":
        assert check_settings(block.text, tmp_path)
    elif match := re.fullmatch(r"# fragment: ([a-zA-Z.0-9\[\]]+)", first):
        assert problems_of(yaml.safe_dump(put(match[1], yaml.safe_load(block.text))), str(block)) == []
    else:
        assert problems_of(block.text, str(block)) == []


@pytest.mark.parametrize("block", tagged("sh", "console"))
def test_every_object_in_a_command_is_valid(block):
    documents = [text for command in commands_of(block) for text in documents_in(command)]

    assert [problem for text in documents if "apiVersion:" in text for problem in problems_of(text, str(block))] == []


def problems_of(text, place):
    """Say what `paceline check` would say; objects of Kubernetes' own kinds are only read."""
    documents = read_text(text.encode(), place)
    assert documents, place
    ours = [document for document in documents if group_of(document) in PACELINE_GROUPS]
    return [str(error) for document in ours if (error := validate_locally(document))]


def put(path, fragment):
    """Put a part of a job where it belongs: `spec`, or `container`, or any field of the spec."""
    job = copy.deepcopy(JOB)
    if path == "container":
        job["spec"]["replicaSpecs"][0]["template"]["spec"]["containers"][0] |= fragment
    elif path == "pod":
        job["spec"]["replicaSpecs"][0]["template"]["spec"] |= fragment
    else:
        assert path == "spec", path
        job["spec"] |= fragment
    return job


def check_settings(text, home):
    """Read a settings.yaml as `paceline up` does."""
    (home / "requirements.txt").write_text("numpy\n")
    for path in re.findall(r"(?:~|/path/to)/[a-z/.]+", text):
        text = text.replace(path, str(home / "requirements.txt"))
    text = re.sub(r"/dev/[a-z0-9-]+", "/dev/null", text)
    (home / config.SETTINGS_FILE).write_text(text)
    settings = Settings(home=home)
    read = (config.configured_images, config.configured_devices, config.configured_environments)
    return [function(settings) for function in (*read, config.configured_retention)]


@pytest.mark.parametrize("block", tagged("python"))
def test_every_program_compiles(block):
    compile(block.text, str(block), "exec")
