"""The origin of one app: the label of its host name, and the paths at which its pages are served."""

import re
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from paceline.client.interface import Collection
from paceline.errors import BadRequest
from paceline.kinds.kind_types import SERVICE_GROUP, VERSION
from paceline.model.interactive import SHORT, prefix_of, proxy_path

# Plural of the kinds that can be opened.
PLURALS = {"TensorBoard": "tensorboards", "Notebook": "notebooks"}
MAX_LABEL = 63
HASH_LENGTH = 8
# The pages that the console itself serves on the origin of an app.
OWN_PAGES = "/.paceline/"
TOKEN = "token"  # noqa: S105 - the name of a parameter
_NOT_IN_LABEL = re.compile(r"[^a-z0-9]+")
_CONTROL = re.compile(r"[\x00-\x20\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedApp:
    """A TensorBoard or Notebook."""

    kind: str
    namespace: str
    name: str

    def __post_init__(self) -> None:
        if self.kind not in PLURALS:
            raise BadRequest(f"kind {self.kind!r} cannot be opened; must be one of {', '.join(PLURALS)}")

    @property
    def plural(self) -> str:
        """Return the plural of the kind."""
        return PLURALS[self.kind]

    @property
    def collection(self) -> Collection:
        """Return the collection of its kind."""
        return Collection(group=SERVICE_GROUP, version=VERSION, plural=self.plural)

    @property
    def label(self) -> str:
        """Return the first label of the host name, such as tb-mnist-1f409c2a; different apps have different ones."""
        short = SHORT[self.plural]
        digest = sha256(f"{self.kind}/{self.namespace}/{self.name}".encode()).hexdigest()[:HASH_LENGTH]
        room = MAX_LABEL - len(short) - len(digest) - 2
        readable = _NOT_IN_LABEL.sub("-", self.name.lower())[:room].strip("-")
        return f"{short}-{readable}-{digest}" if readable else f"{short}-{digest}"

    @property
    def proxy(self) -> str:
        """Return the path of its service proxy, without a slash at its end."""
        route = proxy_path(f"{prefix_of(self.plural, self.namespace, self.name)}/")
        return route[0].partition("/proxy/")[0] + "/proxy" if route else ""

    @property
    def front(self) -> str:
        """Return the path of its first page in the browser."""
        prefix = prefix_of(self.plural, self.namespace, self.name)
        route = proxy_path(f"{prefix}/")
        # A program that serves at `/` does not know its prefix.
        return "/" if route and route[1] else f"{prefix}/lab"

    def target(self, path: str, query: str, token: str = "") -> str | None:
        """Return the cluster's path for a path of the browser; None if it would leave the app."""
        inner = path.removeprefix(self.proxy) if path.startswith(f"{self.proxy}/") else path
        if not inner.startswith("/") or ".." in unquote(inner).replace("\\", "/").split("/"):
            return None
        pairs = [*((query,) if query else ()), *((urlencode({TOKEN: token}),) if token else ())]
        return f"{self.proxy}{inner}{'?' if pairs else ''}{'&'.join(pairs)}"

    def location(self, location: str, token: str = "") -> str:
        """Return the browser's location for a redirect of the program, always on this origin, without its token."""
        # Browsers read a backslash as a slash, and skip control characters.
        text = _CONTROL.sub("", location).replace("\\", "/")
        try:
            parts = urlsplit(text)
        except ValueError:
            return self.front
        query = parts.query
        if token:
            pairs = parse_qsl(query, keep_blank_values=True)
            query = urlencode([pair for pair in pairs if pair != (TOKEN, token)])
        path = parts.path.removeprefix(self.proxy) if parts.path.startswith(f"{self.proxy}/") else parts.path
        if parts.scheme or parts.netloc or path.startswith("/"):
            path = f"/{path.lstrip('/')}"
        return urlunsplit(("", "", path, query, parts.fragment))
