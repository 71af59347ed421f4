"""The tokens of notebooks, which JupyterLab asks for. They stay in this process; no browser gets one."""

from base64 import b64decode
from collections import OrderedDict

from paceline.client.interface import SECRETS
from paceline.console.app_origins.origin import EmbeddedApp
from paceline.console.people import Person
from paceline.effects import Clock

MAX_TOKENS = 1000
# A notebook that is created again has another token.
KEEP_SECONDS = 60.0


class NotebookTokens:
    """Reads tokens as the person who opens the notebook, and keeps them for a minute."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tokens: OrderedDict[tuple[str, EmbeddedApp], tuple[float, str]] = OrderedDict()

    async def of(self, person: Person, app: EmbeddedApp) -> str:
        """Return the token of an app; empty if it needs none. Raise Forbidden if the person may not read it."""
        key, now = (person.credential_id, app), self._clock.monotonic()
        until, token = self._tokens.get(key, (0.0, ""))
        if now >= until:
            token = await _read(person, app)
            self._tokens[key] = (now + KEEP_SECONDS, token)
            self._tokens.move_to_end(key)
            if len(self._tokens) > MAX_TOKENS:
                self._tokens.popitem(last=False)
        return token


async def _read(person: Person, app: EmbeddedApp) -> str:
    status = (await person.client.get(app.collection, app.namespace, app.name)).get("status") or {}
    secret = str(status.get("tokenSecret") or "")
    if not secret:
        return ""
    data = (await person.client.get(SECRETS, app.namespace, secret)).get("data") or {}
    return b64decode(str(data.get("token") or "")).decode()
