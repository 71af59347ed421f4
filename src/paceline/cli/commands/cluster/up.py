"""`paceline up`: start the embedded cluster."""

from dataclasses import replace
from typing import Any

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ensure_running, start
from paceline.cli.cluster_options import settings as last_settings
from paceline.cli.output.console import err, out, print_error, print_warning
from paceline.cluster.daemon import remember, running_pid
from paceline.errors import HostError
from paceline.settings import HOST_NETWORK, JSON, OWN_NETWORK, TEXT, Settings


@click.command()
@click.option("-d", "--detach", is_flag=True, help="Run in the background; return when the cluster is ready.")
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="PATTERN=ENVIRONMENT",
    help="Run images that match PATTERN in ENVIRONMENT: `host`, a name from `paceline env list`, a requirements file "
    "or a virtual environment. Can be repeated.",
)
@click.option(
    "--device",
    "devices",
    multiple=True,
    metavar="RESOURCE=DEVICES",
    help="Devices that pods can request: RESOURCE=COUNT, or RESOURCE=NODE,NODE with device nodes. Can be repeated.",
)
@click.option(
    "--sandbox/--no-sandbox",
    default=None,
    help="Run containers in a bubblewrap sandbox (default), or without one and with your own permissions.",
)
@click.option(
    "--network",
    type=click.Choice([HOST_NETWORK, OWN_NETWORK]),
    help="Run pods in the network of this machine, or give each pod its own network (requires root).",
)
@click.option(
    "--external-address",
    metavar="ADDRESS",
    help="Address of this machine for services of type NodePort and LoadBalancer. Everyone who can reach it can open "
    "them, including TensorBoards, without a password. Default: 127.0.0.1, reachable from this machine only.",
)
@click.option("--log-format", type=click.Choice([TEXT, JSON]), help="Format of the cluster's own log lines.")
@click.option(
    "--discard-damaged-state",
    is_flag=True,
    help="Start with the intact objects if others are damaged or missing.",
)
def up(**typed: Any) -> int:
    r"""Start the embedded cluster.

    All state is stored in PACELINE_HOME. Without -d the cluster runs until Ctrl-C; jobs keep running when it stops.
    Images can also be mapped permanently in PACELINE_HOME/settings.yaml: `images: {'pytorch/*': ~/venvs/torch}`.

    \b
    Examples:
      paceline up -d
      paceline up -d --image 'pytorch/*=~/venvs/torch'
      paceline up -d --device nvidia.com/gpu=4
    """
    from paceline.cluster.config import configured_devices, configured_images, configured_retention

    previous, detach = last_settings(), typed["detach"]
    chosen = chosen_settings(previous, typed["images"], sandbox=typed["sandbox"])
    chosen = with_network(with_devices(chosen, typed["devices"]), typed["network"], typed["external_address"])
    chosen = replace(chosen, log_format=typed["log_format"] or previous.log_format)
    # The node agent reads these files later; validate them now so that the user sees the errors.
    configured_images(chosen)
    configured_devices(chosen)
    configured_retention(chosen)
    if pid := running_pid(previous):
        running = f"a cluster is already running in {previous.home} (pid {pid})"
        if chosen != previous:
            raise HostError(f"{running}, with other settings; stop it with `paceline down`, then try again")
        if not detach:
            raise HostError(f"{running}; stop it with `paceline down`")
        ensure_running(chosen)
        print_ready(chosen, f"A cluster is already running in {previous.home}.")
        return exit_codes.OK
    if typed["discard_damaged_state"]:
        discard_damaged_state(chosen)
    if detach:
        start(chosen)
        print_ready(chosen, "The cluster is ready.")
        return exit_codes.OK
    return run_here(chosen)


def chosen_settings(previous: Settings, images: tuple[str, ...], *, sandbox: bool | None = None) -> Settings:
    """Return the settings with new image rows before the remembered ones; a row with the same pattern is replaced."""
    from paceline.cluster.config import configured_environments, image_row

    typed = tuple(image_row(text, configured_environments(previous)) for text in images)
    patterns = {pattern for pattern, _ in typed}
    remembered = tuple(row for row in previous.images if row[0] not in patterns)
    has_sandbox = previous.has_sandbox if sandbox is None else sandbox
    return replace(previous, images=(*typed, *remembered), has_sandbox=has_sandbox)


def with_devices(previous: Settings, devices: tuple[str, ...]) -> Settings:
    """Return the settings with new devices added; a resource given again replaces the remembered one."""
    from paceline.cluster.config import device_row

    typed = dict(device_row(text) for text in devices)
    return replace(previous, devices=tuple((dict(previous.devices) | typed).items()))


def with_network(previous: Settings, network: str | None, address: str | None) -> Settings:
    """Return the settings with the pod network and external address, if they were given."""
    from paceline.cluster.config import external_address

    external = previous.external_address if address is None else external_address(address)
    return replace(previous, network=network or previous.network, external_address=external)


def run_here(settings: Settings) -> int:
    """Run the cluster until Ctrl-C and restart it when it dies."""
    import logging

    from paceline.cluster.logs import configure_logging
    from paceline.cluster.supervisor import FOREGROUND, supervise
    from paceline.host.lockfile import READY

    configure_logging("supervisor", log_format=settings.log_format)
    logging.getLogger().setLevel(logging.WARNING)
    remember(settings)

    def report(answer: str) -> None:
        if answer == READY:
            print_ready(settings, "The cluster is ready. Press Ctrl-C to stop it; jobs keep running.")
        for message in answer.splitlines() if answer != READY else ():
            print_error(message)

    if supervise(settings, report, mode=FOREGROUND) != 0:
        return exit_codes.NOT_REACHED
    err().line("The cluster has stopped.")
    return exit_codes.OK


def discard_damaged_state(settings: Settings) -> None:
    """Accept the loss of damaged or missing objects, and print what was lost."""
    from paceline.cluster.backup import accept_loss
    from paceline.host.clock import RealClock

    accepted = accept_loss(settings, RealClock())
    if accepted is None:
        err().line("No objects were lost: the stored objects are intact.")
        return
    err().line(f"Accepted: {accepted.message}.")
    for key in accepted.lost:
        err().line(f"  lost: {key}")
    if accepted.old_files:
        err().line(f"  the damaged files were moved to {accepted.old_files}")


def print_ready(settings: Settings, first: str) -> None:
    """Print that the cluster is running, and the next commands to try."""
    from paceline.cluster.config import is_loopback
    from paceline.cluster.console.address import console_address

    out().line(first)
    if not settings.has_sandbox:
        print_warning("containers run without a sandbox: they have all your permissions, and volumes cannot be mounted")
    if not is_loopback(settings.external_address):
        open_to = f"everyone who can reach {settings.external_address}"
        print_warning(f"services of type NodePort and LoadBalancer are open to {open_to}, including TensorBoards")
    err().line(f"  kubectl: export KUBECONFIG={settings.kubeconfig}", "dim")
    if address := console_address(settings):
        err().line(f"  console: {address} (to log in: paceline ui)", "dim")
    err().line("  next:    paceline run job.yaml  ·  paceline get  ·  paceline down", "dim")
