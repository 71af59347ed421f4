"""`python -m paceline.podtools STEP …`: run one step in a pod; exit with 0, or with 1 and the error as the message."""

import argparse
import sys
from importlib import import_module

from paceline.podtools.reporting import Reporter, Run, StepFailed, hidden_values, read_secret

# The module of each step, loaded only when the step runs: every pod waits for its imports.
MODULES = {
    "resolve": "code_steps",
    "clone": "code_steps",
    "unpack": "unpack",
    "input": "data_steps",
    "restore": "data_steps",
    "sync": "data_steps",
    "flush": "data_steps",
    "files": "files.server",
}


def main(arguments: list[str] | None = None) -> int:
    """Run one step."""
    run, options = _parse(sys.argv[1:] if arguments is None else arguments)
    reporter = Reporter()
    try:
        secret = read_secret(options.secret)
        reporter = Reporter(secrets=hidden_values(secret))
        message = run(options, secret, reporter)
    except (StepFailed, OSError) as error:
        reporter.log(str(error))
        reporter.conclude(str(error))
        return 1
    reporter.log(message)
    reporter.conclude(message)
    return 0


def _parse(arguments: list[str]) -> tuple[Run, argparse.Namespace]:
    """Return the function of the step that the first argument names, and its options."""
    parser = argparse.ArgumentParser(prog="python -m paceline.podtools", allow_abbrev=False)
    parser.add_argument("step", choices=MODULES)
    name = parser.parse_args(arguments[:1]).step
    step = import_module(f"paceline.podtools.{MODULES[name]}").STEPS[name]
    step_parser = argparse.ArgumentParser(prog=f"{parser.prog} {name}", allow_abbrev=False)
    step_parser.set_defaults(secret=None)
    step.add_arguments(step_parser)
    return step.run, step_parser.parse_args(arguments[1:])


if __name__ == "__main__":
    sys.exit(main())
