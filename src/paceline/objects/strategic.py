"""Strategic merge patch: lists of built-in kinds are merged by their keys, as their schemas say."""

from collections.abc import Mapping
from typing import Any

import orjson

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
            known = _spellings(there)
            return [*there, *(each for each in patch if _spelled(each) not in known)]
        return self._merged_items(there, patch, schema, key=str(key))

    def _merged_items(self, target: list[Any], patch: list[Any], schema: Schema, *, key: str) -> list[Any]:
        if any(isinstance(each, dict) and each.get(_DIRECTIVE) == "replace" for each in patch):
            return [each for each in patch if not (isinstance(each, dict) and _DIRECTIVE in each)]
        items, inner = dict(enumerate(target)), self._resolved(schema.get("items") or {})
        places: dict[str, list[int]] = {}
        for index, item in items.items():
            places.setdefault(_spelled(_key_of(item, key)), []).append(index)
        count = len(target)
        for each in patch:
            if not isinstance(each, dict) or key not in each:
                raise Unfit(f"map: {go_text(each)} does not contain declared merge key: {key}")
            name = _spelled(each[key])
            if each.get(_DIRECTIVE) == "delete":
                for at in places.pop(name, ()):
                    del items[at]
            elif name in places:
                at = places[name][0]
                items[at] = self.apply(items[at], each, inner)
            else:
                places[name] = [count]
                items[count] = self.apply({}, each, inner)
                count += 1
        return list(items.values())

    def _ordered(self, merged: Object, patch: Object, schema: Schema) -> Object:
        """Carry out what a patch says about whole lists and about which fields are left."""
        for name, value in patch.items():
            field = name.partition("/")[2]
            if name.startswith((_DROP, _ORDER)) and not isinstance(value, list):
                raise Unfit(f"expected a []interface {{}}, but received a {go_type(value)}")
            if not isinstance(merged.get(field), list) or not isinstance(value, list):
                continue
            if name.startswith(_DROP):
                gone = _spellings(value)
                merged[field] = [each for each in merged[field] if _spelled(each) not in gone]
            elif name.startswith(_ORDER):
                key = self._field(schema, field).get("x-kubernetes-patch-merge-key")
                merged[field] = _sorted(merged[field], value, key=key)
        if isinstance(kept := patch.get(_RETAIN), list):
            names = frozenset(map(str, kept))
            return {name: value for name, value in merged.items() if name in names}
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
    if kept is not None and (not isinstance(kept, list) or not frozenset(map(str, kept)).issuperset(said)):
        raise Unfit("invalid patch format of retainKeys")


def _key_of(item: Any, key: str) -> Any:
    return item.get(key) if isinstance(item, dict) else None


def _sorted(items: list[Any], order: list[Any], *, key: Any) -> list[Any]:
    """Put the items that an order names into that order; the others stay behind the one they were behind."""
    wanted = [_spelled(each.get(key) if isinstance(each, dict) else each) for each in order]
    names = [_spelled(_key_of(item, key) if key else item) for item in items]
    # The first of each name counts.
    place_of = {name: at for at, name in reversed(tuple(enumerate(wanted)))}
    item_of = dict(zip(reversed(names), reversed(items), strict=True))
    follows: dict[int, list[Any]] = {}
    last = -1
    for item, name in zip(items, names, strict=True):
        if name in place_of:
            last = place_of[name]
        else:
            follows.setdefault(last, []).append(item)
    result = list(follows.get(-1, ()))
    for name in wanted:
        if name in item_of:
            result.extend((item_of[name], *follows.get(place_of[name], ())))
    return result


def _spelled(value: Any) -> str:
    """Return a value as it is written, by which equal ones are found at once."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _spellings(values: list[Any]) -> frozenset[str]:
    return frozenset(map(_spelled, values))
