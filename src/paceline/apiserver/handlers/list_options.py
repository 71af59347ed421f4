"""What a list or a watch asks for beside its selectors: which revision, how exactly, how much, and where to go on."""

from dataclasses import dataclass

from paceline.apiserver import status_errors
from paceline.apiserver.handlers.option_rules import check_options
from paceline.apiserver.http_types import HttpRequest

_EXACT = "Exact"
_LARGEST = 2**64 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The options of one list or watch, read and found to fit together."""

    # None when nothing was said; 0 is whatever is there.
    revision: int | None = None
    match: str = ""
    limit: int = 0
    token: str = ""
    seconds: int | None = None
    # Whether a watch begins with what is there.
    wants_initial: bool = True

    @property
    def is_exact(self) -> bool:
        """Tell whether one very revision is wanted: when that is said, or when pages of an old list are read."""
        return self.match == _EXACT or (not self.match and bool(self.revision) and self.limit > 0)


DEFAULTS = ListOptions()


def list_options_of(request: HttpRequest, *, watch: bool = False) -> ListOptions:
    """Read what a request asks for, or refuse what does not fit together."""
    query = request.query
    if not query:
        return DEFAULTS
    revision = resource_version_param(request)
    limit, seconds = int_param(request, "limit") or 0, int_param(request, "timeoutSeconds")
    check_options(request, watch=watch)
    token = query.get("continue", "")
    if token and revision:
        raise status_errors.bad_request("specifying resource version is not allowed when using continue")
    return ListOptions(
        revision=revision,
        match=query.get("resourceVersionMatch", ""),
        # What may be of any age comes whole, as it does from the cache of a real server.
        limit=0 if revision == 0 or limit < 0 else limit,
        token=token,
        seconds=seconds,
        wants_initial=request.flag("sendInitialEvents") if "sendInitialEvents" in query else not revision,
    )


def int_param(request: HttpRequest, name: str) -> int | None:
    """Read a query parameter that is a number."""
    text = request.query.get(name, "")
    if not text:
        return None
    digits = text[1:] if text[:1] in {"-", "+"} else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise status_errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def resource_version_param(request: HttpRequest) -> int | None:
    """Read the revision that a request asks for."""
    text = request.query.get("resourceVersion", "")
    if not text:
        return None
    why = "invalid syntax"
    if text.isascii() and text.isdigit():
        revision = int(text[:21])
        if revision <= _LARGEST:
            return revision
        why = "value out of range"
    said = f'invalid resource version: resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}"'
    raise status_errors.bad_request(f"{said}: {why}")
