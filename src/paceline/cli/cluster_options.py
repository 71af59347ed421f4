"""Options that select a cluster, and how a command connects to it. The default is the embedded cluster."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from paceline.cli.output.console import err, print_warning
from paceline.errors import HostError
from paceline.sdk.connection import ConnectAddress, Unreachable, embedded_address, home_from
from paceline.sdk.reader import Reader
from paceline.settings import Settings

Command = Callable[..., Any]

# The supervisor restarts a control process within this time unless its start fails.
RESTART_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """The cluster and namespace that a command uses."""

    namespace: str = ""
    kubeconfig: str = ""
    context: str = ""

    @property
    def is_embedded(self) -> bool:
        """Return True if the embedded cluster is selected."""
        return not (self.kubeconfig or self.context)

    @contextlib.contextmanager
    def reader(self) -> Iterator[Reader]:
        """Yield a read-only connection and close it at the end of the block."""
        number = self.number()
        with Reader(number.dial, self.namespace or number.namespace) as reader, self.hinting():
            yield reader

    def number(self) -> ConnectAddress:
        """Return how to connect to the selected cluster."""
        if self.is_embedded:
            await_restart(home_from(os.environ))
            return embedded_address(on_warning=print_warning)
        from paceline.sdk.connect import address_in

        return address_in(self.kubeconfig, context=self.context, on_warning=print_warning)

    @contextlib.contextmanager
    def hinting(self) -> Iterator[None]:
        """Add a hint how to start the embedded cluster to an Unreachable error in the block."""
        try:
            yield
        except Unreachable as error:
            if not self.is_embedded:
                raise
            home = home_from(os.environ)
            raise Unreachable(f"no cluster responds in {home} ({error}); start one with `paceline up -d`") from error


kubeconfig_option = click.option(
    "--kubeconfig",
    default="",
    envvar="PACELINE_KUBECONFIG",
    type=click.Path(dir_okay=False),
    help="Kubeconfig file of the cluster to use instead of the embedded one.",
)
context_option = click.option(
    "--context",
    default="",
    envvar="PACELINE_CONTEXT",
    help="Kubeconfig context to use. Without --kubeconfig, it is read from kubectl's kubeconfig.",
)


def with_cluster_options(command: Command) -> Command:
    """Add the options that select a cluster to a command, which receives them as `cluster`."""

    @click.option("-n", "--namespace", default="", help="Namespace to use.")
    @kubeconfig_option
    @context_option
    @functools.wraps(command)
    def wrapped(*, namespace: str, kubeconfig: str, context: str, **options: Any) -> Any:
        return command(cluster=ClusterOptions(namespace=namespace, kubeconfig=kubeconfig, context=context), **options)

    return wrapped


def with_output_option(command: Command) -> Command:
    """Add the option `--output` to a command."""
    choices = click.Choice(["json", "yaml", "wide", "name"])
    option: Command = click.option("-o", "--output", type=choices, help="Output format.")(command)
    return option


def await_restart(home: Path) -> None:
    """Wait briefly for a control process that is restarting. Other problems are reported by the connection attempt."""
    from paceline.host.lockfile import holder, is_ready

    chosen = Settings(home=home)
    if not is_ready(chosen.lock) and holder(chosen.supervisor_lock) is not None:
        from paceline.cluster.daemon import wait_ready

        with contextlib.suppress(HostError):
            wait_ready(chosen, RESTART_SECONDS)


def settings() -> Settings:
    """Return the settings of the embedded cluster's last start, or the defaults."""
    from paceline.cluster.daemon import load_last_settings

    return load_last_settings(home_from(os.environ))


def ensure_running(settings: Settings) -> None:
    """Start the embedded cluster in the background if it is not running; raise Unreachable if it cannot start."""
    # Imported here so that other commands do not load it.
    from paceline.cluster.daemon import wait_ready

    with _host_error_as_unreachable():
        if wait_ready(settings):
            return
    err().line(f"No cluster is running; starting one in {settings.home}. To stop it: paceline down", "dim")
    start(settings)


def start(settings: Settings) -> None:
    """Start the embedded cluster and wait until it is ready."""
    from paceline.cluster.daemon import start_in_background

    with _host_error_as_unreachable():
        start_in_background(settings)


@contextlib.contextmanager
def _host_error_as_unreachable() -> Iterator[None]:
    """Raise Unreachable in place of HostError: a cluster that does not start cannot be reached."""
    try:
        yield
    except HostError as error:
        raise Unreachable(str(error)) from error
