"""Templates of manifests: ordinary objects with references to values in them.

`render` resolves the references, for `paceline kube install`. `tools/charts.py` writes the same templates as those of a
Helm chart, so that an installation by Helm and one by the command are the same.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Object

# Within a document that is repeated, the path of the present item.
ITEM = "item"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A reference to a value: `Values.image`, `Release.Namespace`, `Chart.Version` or `item`."""

    path: str
    # The path of the value to take if this one is empty.
    fallback: str = ""
    # Whether a list becomes a string, with commas between its items.
    is_joined: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A string with a reference at its end."""

    start: str
    ref: Ref


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestTemplate:
    """A manifest, and when it is part of an installation."""

    # The file of the chart that contains it, without extension.
    file: str
    manifest: Object
    # Paths of values that must be true (or not empty), and of those that must be false (or empty).
    when: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    # The path of a list; there is one manifest for each of its items, as with `range` in a Helm template.
    range_over: str = ""


def value(path: str, **how: Any) -> Ref:
    """Return a reference to a value that the administrator chooses."""
    return Ref(path=f"Values.{path}", **how)


NAMESPACE = Ref(path="Release.Namespace")


def render(documents: Iterable[ManifestTemplate], scope: Mapping[str, Any]) -> Iterator[Object]:
    """Yield the manifests of an installation; `scope` has the values, as the chart's templates see them."""
    for document in documents:
        if all(_find(path, scope) for path in document.when) and not any(
            _find(path, scope) for path in document.unless
        ):
            items = _find(document.range_over, scope) if document.range_over else (None,)
            for item in items:
                yield _resolved(document.manifest, {**scope, ITEM: item})


def _resolved(node: Any, scope: Mapping[str, Any]) -> Any:
    match node:
        case Ref(path=path, fallback=fallback, is_joined=is_joined):
            resolved = _find(path, scope)
            if fallback and not resolved:
                resolved = _find(fallback, scope)
            return ",".join(resolved) if is_joined else resolved
        case Text(start, ref):
            return f"{start}{_resolved(ref, scope)}"
        case dict():
            return {key: _resolved(inner, scope) for key, inner in node.items()}
        case list():
            return [_resolved(inner, scope) for inner in node]
    return node


def _find(path: str, scope: Mapping[str, Any]) -> Any:
    node: Any = scope
    for step in path.split("."):
        node = node[step]
    return node
