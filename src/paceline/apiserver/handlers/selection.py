"""Which stored objects a request means."""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from paceline.apimachinery.selector import (
    FieldMatcher,
    FieldRule,
    LabelMatcher,
    LabelRule,
    field_text,
    parse_fields,
    parse_labels,
)
from paceline.apiserver.http_types import HttpRequest
from paceline.apiserver.object_strategy import read
from paceline.apiserver.paths import Target, key_for, split_key
from paceline.apiserver.status_errors import bad_request
from paceline.errors import BadRequest

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
