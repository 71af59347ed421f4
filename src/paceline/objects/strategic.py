"""Strategic merge patch: lists of built-in kinds are merged by the keys of their schemas."""

from collections.abc import Mapping
from typing import Any

from paceline.objects.meta import Object
from paceline.objects.patch import Unfit
from paceline.objects.schema import Schema, reference_of
from paceline.objects.typed import go_text, go_type

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
                raise Unfit(f"unknown patch type: {go_text(other)} in map: {go_text(patch)}")
        _check_kept(patch)
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
            return [*existing, *(item for item in patch if item not in existing)]
        return self._merged_items(existing, patch, schema, key=str(key))

    def _merged_items(self, target: list[Any], patch: list[Any], schema: Schema, *, key: str) -> list[Any]:
        if any(isinstance(change, dict) and change.get(_DIRECTIVE) == "replace" for change in patch):
            return [change for change in patch if not (isinstance(change, dict) and _DIRECTIVE in change)]
        items, inner = list(target), self._resolved(schema.get("items") or {})
        for patch_item in patch:
            if not isinstance(patch_item, dict) or key not in patch_item:
                raise Unfit(f"map: {go_text(patch_item)} does not contain declared merge key: {key}")
            at = next((index for index, item in enumerate(items) if _key_of(item, key) == patch_item[key]), None)
            if patch_item.get(_DIRECTIVE) == "delete":
                items = [item for item in items if _key_of(item, key) != patch_item[key]]
            elif at is None:
                items.append(self.apply({}, patch_item, inner))
            else:
                items[at] = self.apply(items[at], patch_item, inner)
        return items

    def _ordered(self, merged: Object, patch: Object, schema: Schema) -> Object:
        """Apply the directives for whole lists and retained fields."""
        for name, value in patch.items():
            field = name.partition("/")[2]
            if name.startswith((_DROP, _ORDER)) and not isinstance(value, list):
                raise Unfit(f"expected a []interface {{}}, but received a {go_type(value)}")
            if not isinstance(merged.get(field), list) or not isinstance(value, list):
                continue
            if name.startswith(_DROP):
                merged[field] = [item for item in merged[field] if item not in value]
            elif name.startswith(_ORDER):
                key = self._field(schema, field).get("x-kubernetes-patch-merge-key")
                merged[field] = _sorted(merged[field], value, key=key)
        if isinstance(retained := patch.get(_RETAIN), list):
            return {name: value for name, value in merged.items() if name in retained}
        return merged

    def _field(self, schema: Schema, name: str) -> Schema:
        resolved = self._resolved(schema)
        field_schema = (resolved.get("properties") or {}).get(name) or resolved.get("additionalProperties")
        return field_schema if isinstance(field_schema, Mapping) else {}

    def _resolved(self, schema: Schema) -> Schema:
        while reference := reference_of(schema):
            schema = self._components.get(reference, {})
        return schema


def _check_kept(patch: Object) -> None:
    """Raise Unfit if a patch sets a field that its retainKeys do not contain."""
    retained = patch.get(_RETAIN)
    fields = (name for name, value in patch.items() if not name.startswith("$") and value is not None)
    if retained is not None and (not isinstance(retained, list) or any(name not in retained for name in fields)):
        raise Unfit("invalid patch format of retainKeys")


def _key_of(item: Any, key: str) -> Any:
    return item.get(key) if isinstance(item, dict) else None


def _sorted(items: list[Any], order: list[Any], *, key: Any) -> list[Any]:
    """Return the items in the given order; unnamed items stay after the item that they followed."""
    ordered_names = [item.get(key) if isinstance(item, dict) else item for item in order]
    names = [_key_of(item, key) if key else item for item in items]
    named = [items[names.index(name)] for name in ordered_names if name in names]
    follows: dict[int, list[Any]] = {}
    last = -1
    for item, name in zip(items, names, strict=True):
        if name in ordered_names:
            last = ordered_names.index(name)
        else:
            follows.setdefault(last, []).append(item)
    result = list(follows.get(-1, ()))
    for item in named:
        at = ordered_names.index(_key_of(item, key) if key else item)
        result.extend((item, *follows.get(at, ())))
    return result
