"""The options and selectors of lists and watches."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from paceline.apimachinery.field_errors import forbidden, unsupported
from paceline.apimachinery.selector import FieldMatcher, LabelMatcher, field_text, parse_fields, parse_labels
from paceline.apiserver.http_types import HttpRequest
from paceline.apiserver.object_strategy import read
from paceline.apiserver.paths import Target, key_for, split_key
from paceline.apiserver.status_errors import bad_request, invalid
from paceline.errors import BadRequest, Fault

MAX_SELECTOR = 16 * 1024
_MAX_REVISION = 2**64 - 1
_EXACT, _NOT_OLDER = "Exact", "NotOlderThan"
_MATCH, _INITIAL = "resourceVersionMatch", "sendInitialEvents"


class _Metadata(msgspec.Struct):
    labels: dict[str, Any] | None = None


class _Labelled(msgspec.Struct):
    metadata: _Metadata


# Decodes only the labels, which is several times faster.
_LABELS = msgspec.json.Decoder(_Labelled)


def check_options(request: HttpRequest, *, watch: bool = False) -> None:
    """Raise Invalid with every option that contradicts another one."""
    # Most lists have none of them.
    if not {_MATCH, _INITIAL, "continue"} & request.query.keys():
        return
    if faults := tuple(_watch_faults(request) if watch else _list_faults(request)):
        raise invalid("ListOptions", "", faults, group="meta.k8s.io")


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    # None if it is not specified; 0 means any revision.
    revision: int | None = None
    match: str = ""
    limit: int = 0
    token: str = ""
    seconds: int | None = None
    # Whether a watch starts with the existing objects.
    wants_initial: bool = True

    @property
    def is_exact(self) -> bool:
        """Whether exactly this revision is requested: explicitly, or by reading an old list page by page."""
        return self.match == _EXACT or (not self.match and bool(self.revision) and self.limit > 0)


def list_options_of(request: HttpRequest, *, watch: bool = False) -> ListOptions:
    query = request.query
    if not query:
        return _DEFAULTS
    revision = resource_version_param(request)
    limit, seconds = int_param(request, "limit") or 0, int_param(request, "timeoutSeconds")
    check_options(request, watch=watch)
    token = query.get("continue", "")
    if token and revision:
        raise bad_request("resourceVersion must not be set together with continue")
    return ListOptions(
        revision=revision,
        match=query.get("resourceVersionMatch", ""),
        # A list of any revision is complete, like one from the cache of kube-apiserver.
        limit=0 if revision == 0 or limit < 0 else limit,
        token=token,
        seconds=seconds,
        wants_initial=request.flag("sendInitialEvents") if "sendInitialEvents" in query else not revision,
    )


def int_param(request: HttpRequest, name: str) -> int | None:
    """Return an integer in the query, or raise BadRequest."""
    text = request.query.get(name, "")
    if not text:
        return None
    digits = text[1:] if text[:1] in {"-", "+"} else text
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        raise bad_request(f'{name} must be an integer, not "{text}"')
    return int(text)


def resource_version_param(request: HttpRequest) -> int | None:
    text = request.query.get("resourceVersion", "")
    if not text:
        return None
    digits = text.lstrip("0") or "0"
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 20 or int(digits) > _MAX_REVISION:
        raise bad_request(f'resourceVersion must be an unsigned 64-bit integer, not "{text}"')
    return int(digits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    by_key: FieldMatcher | None = None
    labels: LabelMatcher | None = None
    fields: FieldMatcher | None = None
    # The name that the field selector requires, if it does.
    name: str = ""

    @property
    def is_all(self) -> bool:
        return not self.by_key and self.is_fixed

    @property
    def is_fixed(self) -> bool:
        """Whether changes of an object cannot change whether it matches."""
        return not (self.labels or self.fields)

    def takes_key(self, key: str) -> bool:
        """Return whether an object may match, by its key."""
        if not self.by_key:
            return True
        namespace, name = split_key(key)
        return self.by_key.matches({"metadata.name": name, "metadata.namespace": namespace}.__getitem__)

    def takes(self, key: str, value: bytes) -> bool:
        if not self.takes_key(key):
            return False
        if self.labels and not self.labels.matches(_LABELS.decode(value).metadata.labels or {}):
            return False
        return not self.fields or self.fields.matches(partial(field_text, read(value)))

    def prefix(self, target: Target) -> str:
        """Return the common prefix of the keys of all objects that can match."""
        if self.name and (target.namespace or not target.resource.namespaced):
            return key_for(target.resource, target.namespace, self.name)
        return target.prefix


_DEFAULTS, _ALL = ListOptions(), Selection()


def selection_of(request: HttpRequest, target: Target) -> Selection:
    labels, fields = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
    if not labels and not fields:
        return _ALL
    if len(labels) + len(fields) > MAX_SELECTOR:
        raise bad_request(f"selectors may have at most {MAX_SELECTOR} characters")
    resource = target.resource
    try:
        rules = parse_fields(fields, group=resource.group, kind=resource.kind, selectable=resource.selectable)
        label_rules = parse_labels(labels)
    except BadRequest as error:
        raise bad_request(str(error)) from error
    key_rules = tuple(rule for rule in rules if rule.is_by_key)
    field_rules = tuple(rule for rule in rules if not rule.is_by_key)
    names = (rule.value for rule in key_rules if rule.path == "metadata.name" and rule.equal)
    return Selection(
        by_key=FieldMatcher(key_rules) if key_rules else None,
        labels=LabelMatcher(label_rules) if label_rules else None,
        fields=FieldMatcher(field_rules) if field_rules else None,
        name=next(names, ""),
    )
