"""What a list or a watch asks for beside its selectors: which revision, how exactly, how much, and where to go on."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from paceline.apimachinery.field_errors import forbidden, unsupported
from paceline.apimachinery.selector import (
    FieldMatcher,
    FieldRule,
    LabelMatcher,
    LabelRule,
    field_text,
    parse_fields,
    parse_labels,
)
from paceline.apiserver import status_errors
from paceline.apiserver.http_types import HttpRequest
from paceline.apiserver.object_strategy import read
from paceline.apiserver.paths import Target, key_for, split_key
from paceline.apiserver.status_errors import bad_request, invalid
from paceline.errors import BadRequest, Fault

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


MAX_SELECTOR = 16 * 1024


class _Metadata(msgspec.Struct):
    labels: dict[str, Any] | None = None


class _Labelled(msgspec.Struct):
    metadata: _Metadata


# Reads the labels and skips the rest, which is several times faster than reading all.
_LABELS = msgspec.json.Decoder(_Labelled)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What has to hold for an object to be meant."""

    by_key: tuple[FieldRule, ...] = ()
    labels: tuple[LabelRule, ...] = ()
    fields: tuple[FieldRule, ...] = ()
    # The same rules, made ready once for all objects.
    _by_key: FieldMatcher = field(init=False, repr=False, compare=False)
    _by_label: LabelMatcher = field(init=False, repr=False, compare=False)
    _by_field: FieldMatcher = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_key", FieldMatcher(self.by_key))
        object.__setattr__(self, "_by_label", LabelMatcher(self.labels))
        object.__setattr__(self, "_by_field", FieldMatcher(self.fields))

    @property
    def is_all(self) -> bool:
        """Tell whether every object is meant."""
        return not (self.by_key or self.labels or self.fields)

    @property
    def is_fixed(self) -> bool:
        """Tell whether an object that is meant stays so, whatever happens to it."""
        return not (self.labels or self.fields)

    def takes_key(self, key: str) -> bool:
        """Tell whether what a key says is meant."""
        if not self.by_key:
            return True
        namespace, name = split_key(key)
        return self._by_key.matches({"metadata.name": name, "metadata.namespace": namespace}.__getitem__)

    def takes(self, key: str, value: bytes) -> bool:
        """Tell whether a stored object is meant."""
        if self.by_key and not self.takes_key(key):
            return False
        if self.labels and not self._by_label.matches(_LABELS.decode(value).metadata.labels or {}):
            return False
        if not self.fields:
            return True
        return self._by_field.matches(partial(field_text, read(value)))

    def prefix(self, target: Target) -> str:
        """Give what the keys begin with of all objects that can be meant."""
        named = [rule.value for rule in self.by_key if rule.path == "metadata.name" and rule.equal]
        if named and (target.namespace or not target.resource.namespaced):
            return key_for(target.resource, target.namespace, named[0])
        return target.prefix


_ALL = Selection()


def selection_of(request: HttpRequest, target: Target) -> Selection:
    """Read the selectors of a request."""
    labels, fields = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
    if not labels and not fields:
        return _ALL
    if len(labels) + len(fields) > MAX_SELECTOR:
        raise bad_request(f"selectors may have at most {MAX_SELECTOR} characters")
    resource = target.resource
    try:
        rules = parse_fields(fields, group=resource.group, kind=resource.kind, more=resource.selectable)
        wanted = parse_labels(labels)
    except BadRequest as error:
        raise bad_request(str(error)) from error
    return Selection(
        by_key=tuple(rule for rule in rules if rule.is_by_key),
        labels=wanted,
        fields=tuple(rule for rule in rules if not rule.is_by_key),
    )
