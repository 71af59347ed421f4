"""What may be asked of a list or a watch beside its selectors: the rules between the options."""

from collections.abc import Iterator

from paceline.apimachinery.field_errors import forbidden, unsupported
from paceline.apiserver.http_types import HttpRequest
from paceline.apiserver.status_errors import invalid
from paceline.errors import Fault

_EXACT, _NOT_OLDER = "Exact", "NotOlderThan"
_MATCH, _INITIAL = "resourceVersionMatch", "sendInitialEvents"


def check_options(request: HttpRequest, *, watch: bool = False) -> None:
    """Refuse options that contradict each other, naming all of them."""
    # The usual list has none of them.
    if not {_MATCH, _INITIAL, "continue"} & request.query.keys():
        return
    if wrong := tuple(_watch_faults(request) if watch else _list_faults(request)):
        raise invalid("ListOptions", "", wrong, group="meta.k8s.io")


def _list_faults(request: HttpRequest) -> Iterator[Fault]:
    match, revision = request.query.get(_MATCH, ""), request.query.get("resourceVersion", "")
    if match:
        if not revision:
            yield forbidden(_MATCH, "resourceVersionMatch is forbidden unless resourceVersion is provided")
        if request.query.get("continue"):
            yield forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")
        if match not in {_EXACT, _NOT_OLDER}:
            yield unsupported(_MATCH, match, (_EXACT, _NOT_OLDER, ""))
        if match == _EXACT and revision == "0":
            yield forbidden(_MATCH, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"')
    if _INITIAL in request.query:
        yield forbidden(_INITIAL, "sendInitialEvents is forbidden for list")


def _watch_faults(request: HttpRequest) -> Iterator[Fault]:
    match, has_initial = request.query.get(_MATCH, ""), _INITIAL in request.query
    if has_initial and match != _NOT_OLDER:
        yield forbidden(_MATCH, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
    if match and not has_initial:
        yield forbidden(_MATCH, "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
    if match and match != _NOT_OLDER:
        yield unsupported(_MATCH, match, (_NOT_OLDER,))
    if request.query.get("continue"):
        yield forbidden(_MATCH, "resourceVersionMatch is forbidden when continue is provided")
