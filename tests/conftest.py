"""Settings that hold for every test.

In     the collected tests and their reports.
Out    the tier and the time limit of each test, a table of suites, a failing run where CI skips a test.
Never  fixtures of one folder: they live in that folder's conftest or in paceline.testing.
"""

import gc
import ipaddress
import os
import sys
from collections import Counter
from pathlib import Path

import hypothesis
import pytest

from paceline.host.effects import GC_THRESHOLD

TESTS = Path(__file__).parent
E2E_SECONDS = 300
# Suites that need more than Python, PyTorch and kubectl: `make test-all` runs them.
SLOW_SUITES = ("browser", "clients", "differential", "kube")
IN_CI = os.environ.get("CI") == "true"


def pytest_configure(config):
    # No test asserts a time, and a loaded machine is no fault of the code.
    hypothesis.settings.register_profile("ours", deadline=None)
    hypothesis.settings.load_profile("ours")
    config.pluginmanager.register(SkippedTests(), "skipped-tests")
    config.pluginmanager.register(SuiteTable(), "suite-table")
    sys.addaudithook(stay_on_this_machine)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        if suite_of(item.nodeid) in SLOW_SUITES or item.get_closest_marker("kube"):
            item.add_marker("slow")
        if suite_of(item.nodeid) == "cluster":
            item.add_marker("cluster")
        if suite_of(item.nodeid).partition("/")[0] in ("e2e", "browser", "cluster"):
            item.add_marker("e2e")
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(E2E_SECONDS))
    # Deselected, not skipped: other commands run them, of a soak with smaller counts.
    for tier in ("soak", "cluster"):
        if tier not in config.option.markexpr:
            others = [item for item in items if item.get_closest_marker(tier)]
            config.hook.pytest_deselected(items=others)
            items[:] = [item for item in items if item not in others]


def pytest_collection_finish():
    """Leave the thousands of tests out of every collection of garbage, and collect as rarely as the product does."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(GC_THRESHOLD, 50, 50)


class SkippedTests:
    """Names the tests that did not run and, in CI, fails the run because of them."""

    def __init__(self):
        self.reasons = {}

    def pytest_runtest_logreport(self, report):
        if report.skipped and not hasattr(report, "wasxfail"):
            self.reasons[report.nodeid] = reason_of(report)

    def pytest_collectreport(self, report):
        if report.skipped:
            self.reasons[report.nodeid] = reason_of(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        if IN_CI and self.reasons and session.exitstatus in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        if IN_CI and self.reasons:
            terminalreporter.section("a skipped test is a failure in CI", red=True)
            for nodeid, reason in sorted(self.reasons.items()):
                terminalreporter.line(f"{nodeid}: {reason}")


class SuiteTable:
    """Prints how many tests each suite has run and how long its workers were busy with them."""

    def __init__(self):
        self.tests = Counter()
        self.seconds = Counter()

    def pytest_runtest_logreport(self, report):
        suite = suite_of(report.nodeid)
        self.seconds[suite] += report.duration
        if report.when == "call":
            self.tests[suite] += 1

    def pytest_terminal_summary(self, terminalreporter):
        if len(self.tests) > 1:
            terminalreporter.section("suites")
            for suite, seconds in self.seconds.most_common():
                terminalreporter.line(f"{suite:20} {self.tests[suite]:6} tests {seconds:8.0f} worker seconds")


def suite_of(nodeid):
    """Return the folder of a test below tests/, with its theme for e2e; "house" for the files at the top."""
    _, *folders = nodeid.partition("::")[0].split("/")[:-1]
    return "/".join(folders[: 2 if folders[0] == "e2e" else 1]) if folders else "house"


def reason_of(report):
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


def stay_on_this_machine(event, args):
    """An audit hook that refuses connections to other machines, whoever asks for them."""
    if event != "socket.connect" or not isinstance(args[1], tuple):
        return
    host = args[1][0]
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return  # A name: resolving it leads to a second connect with its address.
    if not (address.is_loopback or address.is_private or address.is_unspecified):
        raise AssertionError(f"a test tried to reach {host}; tests talk to this machine only")
