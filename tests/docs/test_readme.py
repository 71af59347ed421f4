"""The README promises two commands; CI keeps the promise by running the second.

In     README.md, the Makefile and .ci/run.
Out    a command that is named but does not exist, or exists but is not named.
Never  runs them: that is what CI does.
"""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
VERBS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def test_a_newcomer_types_two_commands():
    commands = [block.strip() for block in re.findall(r"```sh\n(.*?)```", README, re.DOTALL)]

    assert commands[:2] == ["make demo", "make test"]


def test_every_verb_that_the_documents_name_exists():
    documents = (ROOT / name for name in ("README.md", "README.zh-CN.md", "CONTRIBUTING.md", "AGENTS.md"))
    named = {verb for path in documents for verb in re.findall(r"\bmake ([a-z-]+)`", path.read_text())}
    assert named

    assert named - VERBS == set()


def test_ci_runs_the_readmes_own_test_command():
    assert (ROOT / ".ci" / "run").read_text().endswith("\nexport CI=true\nmake test\nmake test-all\n")
