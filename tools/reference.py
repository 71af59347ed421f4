"""Writes docs/reference/: a page per kind with every field, and the pages of reference_pages.py.

In     the catalogue of kinds, and what reference_pages.py reads.
Out    docs/reference/**/*.md; with --check, the pages that are not current, and exit code 1.
Never  holds a fact about a kind: what a page should say better, the field's own help says better.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import reference_pages

from paceline.kinds import registry
from paceline.kinds.kind_types import VERSION, JobKind, PlainKind, ServiceKind
from paceline.kinds.schema import object_schema, spec_schema

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
COMMAND = "make reference"
POD_PAGE = "https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/"
REFS = {
    "PodTemplateSpec": f"[pod template]({POD_PAGE})",
    "ResourceRequirements": f"[resources]({POD_PAGE}#resources)",
    "EnvVar": f"[variable]({POD_PAGE}#environment-variables)",
}
HELP = re.compile(r"(?P<text>.*?)(?: Default: (?P<default>[^.]+|[^ ]+)\.)?", re.DOTALL)

Schema = dict[str, Any]
Kind = JobKind | ServiceKind | PlainKind


def main() -> int:
    """Write the pages, or say which are not current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a page is not current")
    checking = parser.parse_args().check
    wanted = pages()
    there = {path.relative_to(FOLDER).as_posix(): path.read_text() for path in FOLDER.rglob("*.md")}
    stale = sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))
    if checking:
        for name in stale:
            print(f"docs/reference/{name} is not current: type `{COMMAND}`", file=sys.stderr)
        return 1 if stale else 0
    for name in stale:
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(wanted[name]) if name in wanted else path.unlink()
    return 0


def pages() -> dict[str, str]:
    """Give every page by its path below docs/reference/."""
    kinds: tuple[Kind, ...] = registry.every_kind()
    shown = [kind for kind in kinds if not kind.alias_of]
    aliases = {kind.kind: [each.kind for each in kinds if each.alias_of == kind.kind] for kind in shown}
    written = {f"kinds/{kind.kind.lower()}.md": page(kind, aliases[kind.kind]) for kind in shown}
    return {**written, "kinds/README.md": index(shown), **reference_pages.pages()}


def index(kinds: list[Kind]) -> str:
    """Write the page that lists the kinds."""
    rows = [
        f"| [{kind.kind}]({kind.kind.lower()}.md) | `{kind.group}/{VERSION}` | {', '.join(kind.short_names)} "
        f"| {_doc(kind)} |"
        for kind in kinds
    ]
    head = ["# Kinds", "", f"Written by `{COMMAND}` from the code; `kubectl explain` shows the same texts.", ""]
    return "\n".join([*head, "| kind | apiVersion | short name | description |", "|---|---|---|---|", *rows, ""])


def page(kind: Kind, aliases: list[str]) -> str:
    """Write the page of one kind."""
    names = [f"`{kind.plural}`", *(f"`{each}`" for each in kind.short_names)]
    lines = [f"# {kind.kind}", "", _doc(kind), "", f"Written by `{COMMAND}` from the code; do not edit this page.", ""]
    lines += [f"- apiVersion: `{kind.group}/{VERSION}`", f"- names: {', '.join(names)}"]
    if aliases:
        lines.append(f"- old names: {', '.join(f'`{each}`' for each in aliases)}")
    lines.append(f"- may change after creation: {_mutable(kind)}")
    lines += ["", "## Fields of `spec`", "", "| field | type | default | help |", "|---|---|---|---|"]
    lines += [_row(path, part, is_required=needed) for path, part, needed in fields(spec_schema(kind.spec), "")]
    if old := list(_old(kind)):
        lines += ["", "## Old fields that are still accepted", ""]
        lines += ["They are stored as written; the server answers with a warning that names the current field.", ""]
        lines += ["| field | meaning |", "|---|---|", *old]
    return "\n".join([*lines, ""])


def fields(schema: Schema, path: str) -> Iterator[tuple[str, Schema, bool]]:
    """Give every field below a schema: its path, its own schema, whether it is required."""
    for name, part in schema.get("properties", {}).items():
        where = f"{path}.{name}" if path else name
        yield where, part, name in schema.get("required", ())
        yield from fields(part, where)
        yield from fields(part.get("items", {}), f"{where}[]")


def _old(kind: Kind) -> Iterator[str]:
    today = {path for path, _, _ in fields(spec_schema(kind.spec), "")}
    for path, part, _ in fields(object_schema(kind)["properties"]["spec"], ""):
        if path not in today:
            yield f"| `{path}` | {_cell(part.get('description', ''))} |"


def _row(path: str, part: Schema, *, is_required: bool) -> str:
    said = HELP.fullmatch(part.get("description", ""))
    text, default = (said["text"], said["default"]) if said else ("", None)
    kept = "required" if is_required else f"`{default}`" if default else ""
    return f"| `{path}` | {_cell(type_of(part))} | {_cell(kept)} | {_cell(text)} |"


def type_of(part: Schema) -> str:
    """Say in words what may stand in a field, with its bounds."""
    for each in part.get("allOf", ()):
        return REFS[each["$ref"].rpartition(".")[2]]
    if "enum" in part:
        return "one of " + ", ".join(f"`{each}`" for each in part["enum"])
    if part.get("x-kubernetes-int-or-string"):
        return "number or string"
    if "type" not in part:
        return "string or object"
    bounds = ", ".join(_bounds(part))
    return f"{_plain(part)}, {bounds}" if bounds else _plain(part)


def _plain(part: Schema) -> str:
    match part["type"]:
        case "array":
            return f"list of {type_of(part['items'])}"
        case "object" if isinstance(part.get("additionalProperties"), dict):
            return f"map of string to {type_of(part['additionalProperties'])}"
        case "object":
            return "object" if "properties" in part else "object, kept as written"
        case "boolean":
            return "boolean"
        case "integer":
            return "integer"
        case _:
            return "string"


def _bounds(part: Schema) -> Iterator[str]:
    words = {"minimum": "at least", "maximum": "at most", "maxLength": "at most", "minItems": "at least"}
    units = {"maxLength": " characters"}
    for key, word in words.items():
        # The largest number that a field of Kubernetes holds is no bound that anybody meets.
        if key in part and part[key] != 2**31 - 1:
            yield f"{word} {part[key]}{units.get(key, '')}"


def _mutable(kind: Kind) -> str:
    if kind.mutable is None:
        return "everything"
    old = ("runMode.pause.enable",)
    return ", ".join(f"`spec.{path}`" for path in kind.mutable if path not in old)


def _doc(kind: Kind) -> str:
    return " ".join((kind.spec.__doc__ or "").split())


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
