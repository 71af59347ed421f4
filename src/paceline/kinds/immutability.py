"""Fields of a spec that never change: derived from its schema, as paths, field errors and rules of a CRD."""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.apimachinery.field_errors import invalid
from paceline.apimachinery.meta import Object
from paceline.errors import Fault
from paceline.kinds.cel import CelRule, with_rules

Schema = dict[str, Any]
Steps = tuple[str, ...]

LIST_TYPE, LIST_KEYS = "x-kubernetes-list-type", "x-kubernetes-list-map-keys"
# Stands for every item of a list, in a path.
ITEMS = "[*]"


def frozen_paths(spec: Mapping[str, Any], mutable: tuple[str, ...]) -> tuple[Steps, ...]:
    """Return the paths below `spec` that must not change, as far up as mutable ones allow.

    A list whose items have a key is compared item by item, so that the author learns which one has changed.
    """
    return tuple(_frozen(spec, [tuple(path.split(".")) for path in mutable], ()))


def _frozen(schema: Mapping[str, Any], mutable: list[Steps], path: Steps) -> Iterator[Steps]:
    for name, field in schema.get("properties", {}).items():
        below = [steps[1:] for steps in mutable if steps[0] == name]
        if () in below:
            continue
        if below:
            yield from _frozen(field, below, (*path, name))
            continue
        yield (*path, name)
        if field.get(LIST_TYPE) == "map":
            keys = field[LIST_KEYS]
            yield from ((*path, name, ITEMS, inner) for inner in field["items"]["properties"] if inner not in keys)


def hint_of(mutable: tuple[str, ...]) -> str:
    """Return the message for a field that must not change; old names are not mentioned."""
    allowed = ", ".join(f"spec.{path}" for path in mutable if not path.endswith(".enable"))
    return f"field is immutable; {f'only {allowed} may change' if allowed else 'create a new object instead'}"


def change_faults(new: Object, old: Object, *, frozen: tuple[Steps, ...], hint: str) -> tuple[Fault, ...]:
    """Return a fault for each frozen path whose value differs."""
    return tuple(_change_faults(new.get("spec"), old.get("spec"), frozen, hint))


def _change_faults(new: Any, old: Any, frozen: tuple[Steps, ...], hint: str) -> Iterator[Fault]:
    lists = {steps[: steps.index(ITEMS)] for steps in frozen if ITEMS in steps}
    for steps in (steps for steps in frozen if ITEMS not in steps):
        value, old_value = _at(new, steps), _at(old, steps)
        path = ".".join(("spec", *steps))
        if steps not in lists:
            if value != old_value:
                yield invalid(path, value, hint)
        elif _types(value) != _types(old_value):
            yield invalid(path, list(_types(value)), hint)
        else:
            fields = [inner[-1] for inner in frozen if inner[:-2] == steps and ITEMS in inner]
            for index, (item, old_item) in enumerate(zip(value or (), old_value or (), strict=True)):
                for field in fields:
                    if item.get(field) != old_item.get(field):
                        yield invalid(f"{path}[{index}].{field}", item.get(field), hint)


def _at(value: Any, steps: Steps) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _types(items: Any) -> tuple[Any, ...]:
    """Return the keys of the items; their order counts, because ranks follow it."""
    return tuple(item.get("type") for item in items or ())


def with_frozen(spec: Schema, mutable: tuple[str, ...]) -> Schema:
    """Return a spec's schema with rules of a CRD for the same paths."""
    hint, rules, lists = hint_of(mutable), [], []
    for steps in frozen_paths(spec, mutable):
        if ITEMS in steps:
            continue
        schema = _schema_at(spec, steps)
        if not _is_typed(schema):
            # CEL cannot read the field; the webhook compares it.
            continue
        types = ""
        if schema.get(LIST_TYPE) == "map":
            lists.append(steps)
            types = ".map(r, r.type)"
        path = "".join(f".{step}" for step in steps)
        rules.append(CelRule(rule=_is_same(steps, types), message=hint, field=path))
    for steps in lists:
        spec = _with_item_rules(spec, steps[0], hint)
    return with_rules(spec, tuple(rules))


def _with_item_rules(spec: Schema, name: str, hint: str) -> Schema:
    """Return the schema with the rules of each item of a list; the API server finds the old item by its key."""
    field = spec["properties"][name]
    item = field["items"]
    inner = {key: value for key, value in item["properties"].items() if key not in field[LIST_KEYS]}
    typed = [key for key, value in inner.items() if _is_typed(value)]
    rules = [CelRule(rule=_is_same((key,)), message=hint, field=f".{key}") for key in typed]
    changed = " || ".join(f"!({_is_same((key,))})" for key in typed)
    # CEL cannot read a field of several types: one that differs is noticed if no other field does.
    rules += [
        CelRule(rule=f"self == oldSelf || {changed}", message=hint, field=f".{key}")
        for key in inner
        if key not in typed
    ]
    changed_field = {**field, "items": with_rules(item, tuple(rules))}
    return {**spec, "properties": {**spec["properties"], name: changed_field}}


def _is_same(steps: Steps, part: str = "") -> str:
    """Return the condition that a path has the same value as before, or still none.

    Comparing optional values (`self.?a == oldSelf.?a`) is shorter, but the API server takes them for unbounded.
    """
    path = "".join(f".{step}" for step in steps)
    ends = [".".join(steps[: end + 1]) for end in range(len(steps))]
    new, old = (" && ".join(f"has({root}.{end})" for end in ends) for root in ("self", "oldSelf"))
    if len(steps) > 1:
        old = f"({old})"
    return f"{new} ? {old} && self{path}{part} == oldSelf{path}{part} : !{old}"


def _schema_at(schema: Mapping[str, Any], steps: Steps) -> Mapping[str, Any]:
    for step in steps:
        schema = schema["properties"][step]
    return schema


def _is_typed(schema: Mapping[str, Any]) -> bool:
    return "type" in schema or "x-kubernetes-int-or-string" in schema
