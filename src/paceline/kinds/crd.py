"""The CustomResourceDefinition of a kind, for a real cluster."""

from collections.abc import Mapping
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.apimachinery.scheme import Column
from paceline.kinds.kind_types import VERSION, Kind
from paceline.kinds.schema import Schema, object_schema, structural

OPEN: Mapping[str, Any] = {"type": "object"}


def crd(kind: Kind, components: Mapping[str, Any], written: dict[str, Schema] | None = None) -> Object:
    """Return the CRD of a kind, with all references to `components` resolved; `written` caches resolved schemas."""
    schema = structural(object_schema(kind), components, written)
    # The API server defines these three itself, and rejects a CRD that declares more of them.
    schema["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": dict(OPEN)}
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
        "additionalPrinterColumns": [_column(column) for column in kind.columns],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {
                "kind": kind.kind,
                "listKind": f"{kind.kind}List",
                "plural": kind.plural,
                "singular": kind.singular or kind.kind.lower(),
                # The API server stores no empty list: with one, the CRD would look changed at every start.
                **({"shortNames": list(kind.short_names)} if kind.short_names else {}),
                "categories": ["all", "paceline"],
            },
            "versions": [version],
        },
    }


def _column(column: Column) -> dict[str, Any]:
    rendered: dict[str, Any] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.description:
        rendered["description"] = column.description
    if column.priority:
        rendered["priority"] = column.priority
    return rendered
