"""What lasts as long as the console's process."""

from typing import cast

from starlette.requests import HTTPConnection

from paceline.console.app_origins.tickets import Tickets
from paceline.console.app_origins.tokens import NotebookTokens
from paceline.console.config import ConsoleConfig
from paceline.console.people import Clients
from paceline.console.sessions import OneTimeCodes, Sessions
from paceline.console.subscriptions.watch_cache import WatchCache
from paceline.console.token_login import ProxiedSessions
from paceline.console.volumes.explorers import Explorers


class Runtime:
    """The configuration and the state of a running console."""

    def __init__(self, config: ConsoleConfig) -> None:
        self.config = config
        self.codes = OneTimeCodes(config.clock, config.ids)
        self.sessions = Sessions(config)
        self.clients = Clients(config)
        self.proxied_sessions = ProxiedSessions(config, self.sessions)
        self.tickets = Tickets(config)
        self.notebook_tokens = NotebookTokens(config.clock)
        self.explorers = Explorers(config.clock)
        self.watch_cache = WatchCache(config.clock, config.chance, config.tasks)


def runtime_of(connection: HTTPConnection) -> Runtime:
    """Return the console that a request or WebSocket has reached."""
    return cast("Runtime", connection.state.runtime)
