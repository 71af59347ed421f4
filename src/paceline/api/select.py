"""Which stored objects a request means."""

from dataclasses import dataclass
from typing import Any

import msgspec

from paceline.api.change import read
from paceline.api.exchange import Request
from paceline.api.paths import Target, key_for, names_in
from paceline.api.refusal import bad_request
from paceline.errors import Malformed
from paceline.objects.selector import FieldRule, LabelRule, matches, parse_fields, parse_labels

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
        return all(rule.holds_for(*names_in(key)) for rule in self.by_key)

    def takes(self, key: str, value: bytes) -> bool:
        """Tell whether a stored object is meant."""
        if self.by_key and not self.takes_key(key):
            return False
        if self.labels and not matches(self.labels, _LABELS.decode(value).metadata.labels or {}):
            return False
        if not self.fields:
            return True
        obj = read(value)
        return all(rule.holds(obj) for rule in self.fields)

    def prefix(self, target: Target) -> str:
        """Give what the keys begin with of all objects that can be meant."""
        named = [rule.value for rule in self.by_key if rule.path == "metadata.name" and rule.equal]
        if named and (target.namespace or not target.resource.namespaced):
            return key_for(target.resource, target.namespace, named[0])
        return target.prefix


def selection_of(request: Request, target: Target) -> Selection:
    """Read the selectors of a request."""
    labels, fields = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
    if not labels and not fields:
        return Selection()
    if len(labels) + len(fields) > MAX_SELECTOR:
        raise bad_request(f"selectors may have at most {MAX_SELECTOR} characters")
    resource = target.resource
    try:
        rules = parse_fields(fields, group=resource.group, kind=resource.kind, more=resource.selectable)
        wanted = parse_labels(labels)
    except Malformed as error:
        raise bad_request(str(error)) from error
    return Selection(
        by_key=tuple(rule for rule in rules if rule.is_by_key),
        labels=wanted,
        fields=tuple(rule for rule in rules if not rule.is_by_key),
    )
