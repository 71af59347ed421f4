"""Writes charts/: one Helm chart per template, whose values and schema are those of the template, and one of Paceline.

In     the shelf of templates; tools/install_chart.py for the chart that installs Paceline.
Out    charts/NAME/; with --check, the files that are not current, and exit code 1.
Never  holds a fact about a template: it renders one TrainingApp that carries the values, and Python expands them.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import install_chart

from paceline.kinds.apps.templates.registry import (
    TEMPLATES,
    Row,
    default_text,
    fields_of,
    help_of,
    nested_type,
    rows_below,
    rows_of,
)
from paceline.kinds.apps.templates.types import Template, Value
from paceline.kinds.kind_types import OWN_API_VERSION
from paceline.kinds.schema import spec_schema

ROOT = Path(__file__).parent.parent
COMMAND = "make charts"
DRAFT = "http://json-schema.org/draft-07/schema#"
WRITTEN = f"# Written by `{COMMAND}` from the code; do not edit it.\n"
# What is not set travels as nothing; the name of the release is the name of the application.
APP = """\
apiVersion: {api_version}
kind: TrainingApp
metadata:
  name: {{{{ .Release.Name | quote }}}}
spec:
  template:
    name: {{{{ .Chart.Name }}}}
    version: {{{{ .Chart.Version | quote }}}}
  values:
    {{{{- toYaml .Values | nindent 4 }}}}
"""
NOTES = """\
{{ .Release.Name }} is installed; each change of its values makes the next revision.

  kubectl get trainingapp {{ .Release.Name }} -n {{ .Release.Namespace }}
  paceline app status {{ .Release.Name }}
  paceline logs -f {{ .Release.Name }}
"""


def main() -> int:
    """Write the charts, or say which files are not current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is not current")
    checking = parser.parse_args().check
    charts = {path: text for template in TEMPLATES for path, text in files_of(template).items()} | install_files()
    stale = [path for path, text in charts.items() if not (ROOT / path).is_file() or (ROOT / path).read_text() != text]
    if checking:
        for path in stale:
            print(f"{path} is not current: type `{COMMAND}`", file=sys.stderr)
        return 1 if stale else 0
    for path in stale:
        (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / path).write_text(charts[path])
    return 0


def files_of(template: Template) -> dict[str, str]:
    """Give the files of one chart by their paths."""
    files = {
        "Chart.yaml": WRITTEN + chart(template),
        "values.yaml": WRITTEN + values_text(template),
        "values.schema.json": json.dumps(values_schema(template), indent=2) + "\n",
        "README.md": readme(template),
        "templates/trainingapp.yaml": APP.format(api_version=OWN_API_VERSION),
        "templates/NOTES.txt": NOTES,
    }
    return {f"charts/{template.name}/{name}": text for name, text in files.items()}


def install_files() -> dict[str, str]:
    """Give the files of the chart that installs Paceline itself."""
    kind, defaults = install_chart.values()
    schema = _strict(spec_schema(kind))
    # Helm adds it to the values of every chart that is part of another one.
    schema["properties"]["global"] = {"type": "object"}
    rows = list(rows_below(kind, defaults, ""))
    head = ["# paceline", "", f"Written by `{COMMAND}` from the code; do not edit it.", "", install_chart.readme()]
    texts = {
        "values.yaml": WRITTEN + "\n".join(_lines(kind, defaults, 0)) + "\n",
        "values.schema.json": json.dumps({"$schema": DRAFT, "title": "paceline", **schema}, indent=2) + "\n",
        "README.md": "\n".join([*head, *_table(rows), ""]),
    }
    return {f"{install_chart.CHART}/{name}": text for name, text in texts.items()} | install_chart.files(WRITTEN)


def chart(template: Template) -> str:
    """Write Chart.yaml."""
    facts = {"apiVersion": "v2", "type": "application", "name": template.name, "version": template.version}
    return "".join(f"{name}: {text}\n" for name, text in {**facts, "description": template.description}.items())


def values_schema(template: Template) -> dict[str, Any]:
    """Return the values.schema.json of a chart, with which Helm validates values before it renders."""
    schema = _strict(spec_schema(template.values))
    return {"$schema": DRAFT, "title": template.name, **schema}


def values_text(template: Template) -> str:
    """Return the values.yaml of a chart: every default, with its help text above it."""
    return "\n".join(_lines(template.values, template.defaults(), 0)) + "\n"


def _lines(kind: type[Value], defaults: Mapping[str, Any], depth: int) -> Iterator[str]:
    indent = "  " * depth
    for field in fields_of(kind):
        name, default = field.encode_name, defaults.get(field.encode_name)
        yield f"{indent}# {help_of(field.type)}"
        if (inner := nested_type(field.type)) is not None:
            yield f"{indent}{name}:"
            yield from _lines(inner, default or {}, depth + 1)
        elif default is None:
            yield f"{indent}# {name}: (not set)"
        else:
            yield f"{indent}{name}: {default_text(default)}"


def _strict(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema for Helm: without the extensions of Kubernetes, and with unknown fields forbidden."""
    strict = {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-")}
    if "properties" in strict:
        strict["properties"] = {name: _strict(field) for name, field in strict["properties"].items()}
        strict["additionalProperties"] = False
    elif isinstance(strict.get("additionalProperties"), dict):
        strict["additionalProperties"] = _strict(strict["additionalProperties"])
    if isinstance(strict.get("items"), dict):
        strict["items"] = _strict(strict["items"])
    return strict


def readme(template: Template) -> str:
    """Write the page of a chart: what it does, and every value."""
    install = f"helm install mnist charts/{template.name} -f values.yaml"
    without = f"paceline app install mnist {template.name} -f values.yaml"
    head = [f"# {template.name}", "", f"Written by `{COMMAND}` from the code; do not edit it.", "", template.readme]
    use = ["```console", f"$ {install}", "```", "", f"Without Helm, the same: `{without}`.", ""]
    return "\n".join([*head, *use, *_table(rows_of(template)), ""])


def _table(rows: list[Row]) -> list[str]:
    cells = [f"| `{where}` | {f'`{default}`' if default else ''} | {meaning} |" for where, default, meaning in rows]
    return ["| value | default | meaning |", "|---|---|---|", *cells]


if __name__ == "__main__":
    sys.exit(main())
