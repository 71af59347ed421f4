"""The pages of TensorBoards and Notebooks, at T9k's own paths: the same as by the proxy of the service behind them.

In     any request.
Out    a request for a page (/t9k/tensorboards/…, /t9k/notebooks/…) as one to a service's proxy; any other as it came.
Never  another way in: what may not be asked by the proxy may not be asked here.
"""

from urllib.parse import unquote

from paceline.apiserver.http_types import Scope
from paceline.model.interactive import proxy_path

# Where a scope says that its request came by a page's own path, and what of that path the page does not know.
PAGE_PREFIX = "paceline.page"


def rewrite_page_url(scope: Scope) -> Scope:
    """Lead a request for a page to the service that has it."""
    raw = scope.get("raw_path") or scope["path"].encode()
    found = proxy_path(raw.decode("latin-1").partition("?")[0])
    if found is None:
        return scope
    path, unseen = found
    return {**scope, "path": unquote(path), "raw_path": path.encode("latin-1"), PAGE_PREFIX: unseen}
