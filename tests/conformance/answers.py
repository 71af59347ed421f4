"""What a pod said of itself, without what no two runs have in common; and the files such answers are kept in."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.conformance.conditions import STATUSES, Look
from tests.conformance.table import HERE, Case

FOLDER = HERE / "recorded"
EPOCH = "1970-01-01T00:00:00Z"
STATE_FIELDS = ("exitCode", "signal", "reason", "message")
RULES = (
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z| ?[+-]\d\d:?\d\d)?", "<time>"),
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
    (r"\b[0-9a-f]{64}\b", "<id>"),
    (r"\b(?:10|127|172|192)\.\d+\.\d+\.\d+:\d{5}\b", "<ip>:<port>"),
    (r"\b(?:10|127|172|192)\.\d+\.\d+\.\d+\b", "<ip>"),
    (r"\b\d+(?:\.\d+)?m?s \(\d+(?:\.\d+)?m?s including waiting\)", "<seconds>"),
    # Where a kubelet keeps its files.
    (r"/tmp/paceline-node-\w+", "<kubelet>"),
)


def answer(case: Case, look: Look, logs: Mapping[str, str], *, node: str = "") -> dict[str, Any]:
    """Give what is compared: what a pod, its events and its logs say."""
    status = look.status
    said: dict[str, Any] = {"gone": True} if look.is_gone else {}
    said |= {key: status[key] for key in ("phase", "reason", "message", "qosClass") if status.get(key)}
    said["conditions"] = sorted(_condition(each) for each in status.get("conditions") or ())
    said["containers"] = {
        each["name"]: _container(each) for kind in STATUSES for each in sorted(status.get(kind) or (), key=_name)
    }
    if case.events:
        said["events"] = [_event(each) for each in look.events]
    if logs:
        said["logs"] = dict(logs)
    cleaned: dict[str, Any] = _clean(said, node)
    return _ordered(cleaned)


def _ordered(said: dict[str, Any]) -> dict[str, Any]:
    """Name every event once: how often and in which order they came is a matter of moments."""
    return said | ({"events": sorted(set(said["events"]))} if "events" in said else {})


def _name(status: Mapping[str, Any]) -> str:
    return str(status["name"])


def _condition(each: Mapping[str, Any]) -> str:
    said = f"{each['type']}={each['status']}"
    reason = f" {each['reason']}" if each.get("reason") else ""
    return said + reason + (f": {each['message']}" if each.get("message") else "")


def _container(status: Mapping[str, Any]) -> dict[str, Any]:
    said = {"state": _state(status.get("state") or {})}
    if status.get("lastState"):
        said["lastState"] = _state(status["lastState"])
    return {
        **said,
        "ready": status["ready"],
        "started": status.get("started"),
        "restartCount": status["restartCount"],
    }


def _state(state: Mapping[str, Any]) -> dict[str, Any]:
    kind, said = next(iter(state.items()), ("none", {}))
    told = {key: said[key] for key in STATE_FIELDS if key in said}
    if said.get("startedAt") == EPOCH:
        told["startedAt"] = "never"
    return {kind: told}


def _event(event: Mapping[str, Any]) -> str:
    part = (event.get("involvedObject") or {}).get("fieldPath", "").removeprefix("spec.")
    return f"{event['type']} {event['reason']}{' ' if part else ''}{part}: {event['message']}"


def _clean(value: Any, node: str) -> Any:
    if isinstance(value, str):
        for pattern, word in (*(((rf"\b{re.escape(node)}\b", "<node>"),) if node else ()), *RULES):
            value = re.sub(pattern, word, value)
        return value
    if isinstance(value, dict):
        return {key: _clean(each, node) for key, each in value.items()}
    return [_clean(each, node) for each in value] if isinstance(value, list) else value


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as people read them."""


def _text(dumper: _Dumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def as_text(value: Any) -> str:
    """Write an answer down."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True)


@cache
def recorded(topic: str) -> Mapping[str, Any]:
    """Every recorded answer of one topic, by case."""
    path = _path(topic)
    return dict(yaml.safe_load(path.read_text()) or {}) if path.exists() else {}


def write(topic: str, said: Mapping[str, Any]) -> Path:
    """Write the answers of one topic."""
    path = _path(topic)
    path.write_text("\n".join(as_text({name: each}) for name, each in said.items()))
    recorded.cache_clear()
    return path


def _path(topic: str) -> Path:
    return FOLDER / f"{topic}.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Why some answers differ, and what makes both sides equal again."""

    reason: str
    # Sentences, or `all`.
    cases: tuple[str, ...]
    replace: tuple[tuple[str, str], ...]

    def concerns(self, case: Case) -> bool:
        """Tell whether a case may differ so."""
        return self.cases == ("all",) or case.name in self.cases

    def without(self, value: Any) -> Any:
        """Give an answer without the difference; what becomes empty in a list is left out."""
        if isinstance(value, str):
            for pattern, word in self.replace:
                value = re.sub(pattern, word, value)
            return value
        if isinstance(value, dict):
            return {key: self._field(key, each) for key, each in value.items()}
        return [new for each in value if (new := self.without(each))] if isinstance(value, list) else value

    def _field(self, key: str, value: Any) -> Any:
        """Numbers are matched together with their names."""
        if isinstance(value, int):
            old = f"{key}: {value}"
            new = self.without(old)
            return value if new == old else new
        return self.without(value)


@cache
def differences() -> tuple[Difference, ...]:
    """What may differ; nothing else may."""
    listed = yaml.safe_load((HERE / "differences.yaml").read_text()) or ()
    return tuple(
        Difference(
            reason=each["reason"],
            cases=("all",) if each["cases"] == "all" else tuple(each["cases"]),
            replace=tuple(each["replace"].items()),
        )
        for each in listed
    )


def alike(case: Case, value: Any, *, but: Difference | None = None) -> str:
    """Give an answer's text without what may differ; `but` one difference is left in."""
    for each in differences():
        value = each.without(value) if each.concerns(case) and each is not but else value
    return as_text(_ordered(value) if value else value)
