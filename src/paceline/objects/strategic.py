"""Strategic merge patch: lists of built-in kinds are merged by their keys, as their schemas say."""

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
    """Applies patches to objects whose schemas are known."""

    def __init__(self, components: Mapping[str, Any]) -> None:
        self._components = components

    def apply(self, target: Object, patch: Object, schema: Schema) -> Object:
        """Give `target` with a patch applied; neither is changed, parts may be shared."""
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
        there = target if isinstance(target, list) else []
        if "merge" not in str(schema.get("x-kubernetes-patch-strategy", "")).split(","):
            return patch
        key = schema.get("x-kubernetes-patch-merge-key")
        if key is None:
            return [*there, *(each for each in patch if each not in there)]
        return self._merged_items(there, patch, schema, key=str(key))

    def _merged_items(self, target: list[Any], patch: list[Any], schema: Schema, *, key: str) -> list[Any]:
        if any(isinstance(each, dict) and each.get(_DIRECTIVE) == "replace" for each in patch):
            return [each for each in patch if not (isinstance(each, dict) and _DIRECTIVE in each)]
        items, inner = list(target), self._resolved(schema.get("items") or {})
        for each in patch:
            if not isinstance(each, dict) or key not in each:
                raise Unfit(f"map: {go_text(each)} does not contain declared merge key: {key}")
            at = next((index for index, item in enumerate(items) if _key_of(item, key) == each[key]), None)
            if each.get(_DIRECTIVE) == "delete":
                items = [item for item in items if _key_of(item, key) != each[key]]
            elif at is None:
                items.append(self.apply({}, each, inner))
            else:
                items[at] = self.apply(items[at], each, inner)
        return items

    def _ordered(self, merged: Object, patch: Object, schema: Schema) -> Object:
        """Carry out what a patch says about whole lists and about which fields are left."""
        for name, value in patch.items():
            field = name.partition("/")[2]
            if name.startswith((_DROP, _ORDER)) and not isinstance(value, list):
                raise Unfit(f"expected a []interface {{}}, but received a {go_type(value)}")
            if not isinstance(merged.get(field), list) or not isinstance(value, list):
                continue
            if name.startswith(_DROP):
                merged[field] = [each for each in merged[field] if each not in value]
            elif name.startswith(_ORDER):
                key = self._field(schema, field).get("x-kubernetes-patch-merge-key")
                merged[field] = _sorted(merged[field], value, key=key)
        if isinstance(kept := patch.get(_RETAIN), list):
            return {name: value for name, value in merged.items() if name in kept}
        return merged

    def _field(self, schema: Schema, name: str) -> Schema:
        known = self._resolved(schema)
        found = (known.get("properties") or {}).get(name) or known.get("additionalProperties")
        return found if isinstance(found, Mapping) else {}

    def _resolved(self, schema: Schema) -> Schema:
        while reference := reference_of(schema):
            schema = self._components.get(reference, {})
        return schema


def _check_kept(patch: Object) -> None:
    """Refuse a patch that says something about a field and does not keep it."""
    kept = patch.get(_RETAIN)
    said = (name for name, value in patch.items() if not name.startswith("$") and value is not None)
    if kept is not None and (not isinstance(kept, list) or any(name not in kept for name in said)):
        raise Unfit("invalid patch format of retainKeys")


def _key_of(item: Any, key: str) -> Any:
    return item.get(key) if isinstance(item, dict) else None


def _sorted(items: list[Any], order: list[Any], *, key: Any) -> list[Any]:
    """Put the items that an order names into that order; the others stay behind the one they were behind."""
    wanted = [each.get(key) if isinstance(each, dict) else each for each in order]
    names = [_key_of(item, key) if key else item for item in items]
    named = [items[names.index(each)] for each in wanted if each in names]
    follows: dict[int, list[Any]] = {}
    last = -1
    for item, name in zip(items, names, strict=True):
        if name in wanted:
            last = wanted.index(name)
        else:
            follows.setdefault(last, []).append(item)
    result = list(follows.get(-1, ()))
    for item in named:
        at = wanted.index(_key_of(item, key) if key else item)
        result.extend((item, *follows.get(at, ())))
    return result
