"""The table of refused manifests and changes (refusals.yaml), and how kubectl is told of them."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from paceline.testing.real.kube import find_assets
from tests.unit.kinds import manifests

TABLE = Path(__file__).with_name("refusals.yaml")
NONE = "<none>"
SECONDS = 60.0

_INVALID = re.compile(r"(?:^|is invalid:|^\* )\s*((?:spec|metadata)[\w.\-\[\]]*): ", re.MULTILINE)
_UNKNOWN = re.compile(r'unknown field "([^"]+)"')
_STEP = re.compile(r"([^.\[\]]+)|\[(\d+)\]")


def app(name: str = "demo") -> dict[str, Any]:
    return {
        "apiVersion": "paceline.dev/v1beta1",
        "kind": "TrainingApp",
        "metadata": {"name": name},
        "spec": {"template": {"name": "tensorflow-training"}},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A manifest, what is changed in it, and the field that is refused (or a text of the status)."""

    name: str
    base: dict[str, Any]
    change: Mapping[str, Any]
    field: str

    @property
    def changed(self) -> dict[str, Any]:
        obj = deepcopy(self.base)
        for path, value in self.change.items():
            put(obj, [key or int(index) for key, index in _STEP.findall(path)], value)
        return obj

    def __str__(self) -> str:
        return f"{self.base['kind']} {json.dumps(self.change)[:90]}"


def cases(part: str) -> tuple[Case, ...]:
    """Read a part of the table; every case has a name of its own."""
    return tuple(_cases(part, yaml.safe_load(TABLE.read_text())[part]))


def _cases(part: str, rows: list[list[Any]]) -> Iterator[Case]:
    for number, (kind, change, *field) in enumerate(rows):
        base = app() if kind == "app" else deepcopy(getattr(manifests, kind)())
        name = f"{part[0]}{number}"
        base["metadata"] = {"name": name}
        expected = field[0] if field else next(iter(change), "")
        yield Case(name=name, base=base, change=change, field=expected)


def put(obj: Any, path: list[str | int], value: Any) -> None:
    *parents, last = path
    for step in parents:
        obj = obj.setdefault(step, {}) if isinstance(obj, dict) else obj[step]
    if value == NONE:
        del obj[last]
    elif isinstance(obj, list) and last == len(obj):
        obj.append(value)
    else:
        obj[last] = value


@dataclass(frozen=True, slots=True, kw_only=True)
class Kubectl:
    """kubectl with the access to one server."""

    kubeconfig: Path
    namespace: str = "default"

    def __call__(self, *args: str, stdin: Any = None) -> subprocess.CompletedProcess[str]:
        assets = find_assets()
        assert assets is not None
        command = (str(assets / "kubectl"), f"--kubeconfig={self.kubeconfig}", f"--namespace={self.namespace}", *args)
        text = "" if stdin is None else json.dumps(stdin)
        return subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=SECONDS)

    def apply(self, obj: Any) -> subprocess.CompletedProcess[str]:
        return self("apply", "-f", "-", stdin=obj)


def refused_fields(done: subprocess.CompletedProcess[str]) -> tuple[str, ...]:
    """Return the fields that kubectl names; empty if the object was accepted."""
    if not done.returncode:
        return ()
    fields = (*_INVALID.findall(done.stderr), *_UNKNOWN.findall(done.stderr))
    return tuple(dict.fromkeys(fields)) or (done.stderr.strip()[:200],)
