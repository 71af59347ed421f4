"""Where the console of an embedded cluster is, and how to log in there."""

import os
from dataclasses import replace
from pathlib import Path

from paceline.client.rest_config import from_json
from paceline.client.sync import DirectCluster
from paceline.cluster.daemon import last_console_port
from paceline.console.config import BUNDLE, LOCAL_DOMAIN, PAGE_FILE
from paceline.errors import HostError
from paceline.host.listening_sockets import owners_of
from paceline.settings import LOOPBACK, Settings

CODES = "/api/codes"


def console_address(settings: Settings) -> str:
    """Return the URL of the console, for browsers on this machine; empty if the cluster has none yet."""
    port = last_console_port(settings)
    return f"http://{LOCAL_DOMAIN}:{port}" if port else ""


def request_code(settings: Settings) -> str:
    """Return a new one-time code, which is valid for a minute; raise HostError if the console does not listen."""
    port, access = last_console_port(settings), from_json(settings.kubeconfig, Path.read_bytes)
    # The kubeconfig's token must not be sent to a program of another user who has taken the port meanwhile.
    if access is None or not port or owners_of(port) != {os.geteuid()}:
        raise HostError("the console does not listen; stop the cluster with `paceline down` and start it again")
    with DirectCluster(replace(access, server=f"http://{LOOPBACK}:{port}")) as console:
        return str(console.post(CODES, {})["code"])


def has_page() -> bool:
    """Return whether the page of the console has been built."""
    return (BUNDLE / PAGE_FILE).exists()
