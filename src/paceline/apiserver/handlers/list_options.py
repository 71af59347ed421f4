"""What a list or a watch asks for beside its selectors: which revision, how exactly, how much, and where to go on."""

from dataclasses import dataclass, replace

from paceline.apiserver import status_errors
from paceline.apiserver.handlers.option_rules import check_options
from paceline.apiserver.http_types import Request

_EXACT = "Exact"
_LARGEST = 2**64 - 1
_WATCH = "watch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
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


EVERYTHING = Asked()


def asked_by(request: Request, *, watch: bool = False) -> Asked:
    """Read what a request asks for, or refuse what does not fit together."""
    query = request.query
    if not query:
        return EVERYTHING
    revision = revision_of(request)
    limit, seconds = number_of(request, "limit") or 0, number_of(request, "timeoutSeconds")
    check_options(request, watch=watch)
    token = query.get("continue", "")
    if token and revision:
        raise status_errors.bad_request("specifying resource version is not allowed when using continue")
    return Asked(
        revision=revision,
        match=query.get("resourceVersionMatch", ""),
        # What may be of any age comes whole, as it does from the cache of a real server.
        limit=0 if revision == 0 or limit < 0 else limit,
        token=token,
        seconds=seconds,
        wants_initial=request.flag("sendInitialEvents") if "sendInitialEvents" in query else not revision,
    )


def as_watch(request: Request) -> Request:
    """Give a request for one of the old paths below /watch/ as the watch that it means; any other as it is."""
    at = {"api": 2, "apis": 3}.get(request.parts[0], 0)
    if request.parts[at : at + 1] != (_WATCH,) or len(request.parts) == at + 1:
        return request
    if request.method != "GET":
        raise status_errors.not_offered()
    rest = request.parts[at + 1 :]
    named = 3 if rest[0] == "namespaces" and len(rest) > 2 else 1
    query = {**request.query, _WATCH: "true"}
    if len(rest) > named + 1:
        raise status_errors.no_such_path()
    if len(rest) > named:
        rules = (query.get("fieldSelector", ""), f"metadata.name={rest[named]}")
        query["fieldSelector"] = ",".join(filter(None, rules))
    return replace(request, parts=(*request.parts[:at], *rest[:named]), query=query)


def number_of(request: Request, name: str) -> int | None:
    """Read a query parameter that is a number."""
    text = request.query.get(name, "")
    if not text:
        return None
    digits = text[1:] if text[:1] in {"-", "+"} else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise status_errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def revision_of(request: Request) -> int | None:
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
