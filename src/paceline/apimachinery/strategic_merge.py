"""Strategic merge patch: lists of built-in kinds are merged by the keys of their schemas."""

from collections.abc import Mapping
from typing import Any

import orjson

from paceline.apimachinery.json_patch import PatchFailed
from paceline.apimachinery.meta import Object
from paceline.apimachinery.schema import Schema, reference_of

_DIRECTIVE = "$patch"
_RETAIN = "$retainKeys"
_ORDER = "$setElementOrder/"
_DROP = "$deleteFromPrimitiveList/"


class Strategic:
    """Applies patches to objects with known schemas."""

    def __init__(self, components: Mapping[str, Any]) -> None:
        self._components = components

    def apply(self, target: Object, patch: Object, schema: Schema) -> Object:
        """Return `target` with a patch applied; neither is changed, parts may be shared."""
        match patch.get(_DIRECTIVE):
            case "delete":
                return {}
            case "replace":
                return {name: value for name, value in patch.items() if name != _DIRECTIVE}
            case None | "merge":
                pass
            case other:
                raise PatchFailed(f"$patch must be delete, merge or replace, not {other!r}")
        _check_retained(patch)
        merged = dict(target)
        for name, value in patch.items():
            if name.startswith("$"):
                continue
            if value is None:
                merged.pop(name, None)
            else:
                merged[name] = self._merged(merged.get(name), value, self._field(schema, name))
        return self._ordered(merged, patch, schema)

    def _merged(self, target: Any, patch: Any, schema: Schema) -> Any:
        if isinstance(patch, dict):
            return self.apply(target if isinstance(target, dict) else {}, patch, schema)
        if not isinstance(patch, list):
            return patch
        existing = target if isinstance(target, list) else []
        if "merge" not in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
            return patch
        key = schema.get("x-kubernetes-patch-merge-key")
        if key is None:
            existing_texts = _json_set(existing)
            return [*existing, *(item for item in patch if _json(item) not in existing_texts)]
        return self._merged_items(existing, patch, schema, key=str(key))

    def _merged_items(self, target: list[Any], patch: list[Any], schema: Schema, *, key: str) -> list[Any]:
        if any(isinstance(change, dict) and change.get(_DIRECTIVE) == "replace" for change in patch):
            return [change for change in patch if not (isinstance(change, dict) and _DIRECTIVE in change)]
        items, inner = dict(enumerate(target)), self._resolved(schema.get("items") or {})
        positions: dict[str, list[int]] = {}
        for index, item in items.items():
            positions.setdefault(_json(_key_of(item, key)), []).append(index)
        count = len(target)
        for patch_item in patch:
            if not isinstance(patch_item, dict) or key not in patch_item:
                raise PatchFailed(f"an item of the patch does not set the merge key {key}")
            name = _json(patch_item[key])
            if patch_item.get(_DIRECTIVE) == "delete":
                for position in positions.pop(name, ()):
                    del items[position]
            elif name in positions:
                position = positions[name][0]
                items[position] = self.apply(items[position], patch_item, inner)
            else:
                positions[name] = [count]
                items[count] = self.apply({}, patch_item, inner)
                count += 1
        return list(items.values())

    def _ordered(self, merged: Object, patch: Object, schema: Schema) -> Object:
        """Apply the directives for whole lists and retained fields."""
        for name, value in patch.items():
            field = name.partition("/")[2]
            if name.startswith((_DROP, _ORDER)) and not isinstance(value, list):
                raise PatchFailed(f"{name} must be a list")
            if not isinstance(merged.get(field), list) or not isinstance(value, list):
                continue
            if name.startswith(_DROP):
                deleted = _json_set(value)
                merged[field] = [item for item in merged[field] if _json(item) not in deleted]
            elif name.startswith(_ORDER):
                key = self._field(schema, field).get("x-kubernetes-patch-merge-key")
                merged[field] = _sorted(merged[field], value, key=key)
        if isinstance(retained := patch.get(_RETAIN), list):
            names = frozenset(map(str, retained))
            return {name: value for name, value in merged.items() if name in names}
        return merged

    def _field(self, schema: Schema, name: str) -> Schema:
        resolved = self._resolved(schema)
        field_schema = (resolved.get("properties") or {}).get(name) or resolved.get("additionalProperties")
        return field_schema if isinstance(field_schema, Mapping) else {}

    def _resolved(self, schema: Schema) -> Schema:
        while reference := reference_of(schema):
            schema = self._components.get(reference, {})
        return schema


def _check_retained(patch: Object) -> None:
    """Raise PatchFailed if a patch sets a field that its retainKeys do not contain."""
    retained = patch.get(_RETAIN)
    fields = (name for name, value in patch.items() if not name.startswith("$") and value is not None)
    if retained is not None and (
        not isinstance(retained, list) or not frozenset(map(str, retained)).issuperset(fields)
    ):
        raise PatchFailed("invalid patch format of retainKeys")


def _key_of(item: Any, key: str) -> Any:
    return item.get(key) if isinstance(item, dict) else None


def _sorted(items: list[Any], order: list[Any], *, key: Any) -> list[Any]:
    """Return the items in the given order; unnamed items stay after the item that they followed."""
    # A name that is repeated counts once: every item that follows it would be repeated with it.
    ordered_names = list(dict.fromkeys(_json(item.get(key) if isinstance(item, dict) else item) for item in order))
    names = [_json(_key_of(item, key) if key else item) for item in items]
    # The first item of each name counts.
    position_of = {name: position for position, name in reversed(tuple(enumerate(ordered_names)))}
    item_of = dict(zip(reversed(names), reversed(items), strict=True))
    follows: dict[int, list[Any]] = {}
    last = -1
    for item, name in zip(items, names, strict=True):
        if name in position_of:
            last = position_of[name]
        else:
            follows.setdefault(last, []).append(item)
    result = list(follows.get(-1, ()))
    for name in ordered_names:
        if name in item_of:
            result.extend((item_of[name], *follows.get(position_of[name], ())))
    return result


def _json(value: Any) -> str:
    """Return a value as canonical JSON, so that equal values can be looked up in a set or dict."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _json_set(values: list[Any]) -> frozenset[str]:
    return frozenset(map(_json, values))
