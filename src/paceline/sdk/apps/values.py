"""Builds an application from a template's defaults and value overrides, validated before it is sent."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from paceline.apimachinery.meta import Object
from paceline.apimachinery.yaml_reader import read_documents
from paceline.errors import BadRequest, Invalid
from paceline.kinds import registry
from paceline.kinds.apps import expand
from paceline.kinds.apps.templates.types import Rendered, Template
from paceline.kinds.apps.templates.values import merged, with_setting
from paceline.kinds.kind_types import OWN_API_VERSION
from paceline.sdk.submission.manifest import read_bytes
from paceline.sdk.submission.submit import called

Tree = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOverrides:
    """Overrides of the default values: files first, then single settings."""

    files: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    # Settings whose values are strings even if they look like numbers.
    texts: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.settings or self.texts)

    def over(self, below: Mapping[str, Any]) -> Tree:
        """Return other values with these overrides applied; BadRequest names the file and line that cannot be read."""
        tree = dict(below)
        for path in self.files:
            tree = merged(tree, read_values_file(path))
        return merged(tree, self._set())

    def _set(self) -> Tree:
        tree: Tree = {}
        for setting in self.settings:
            tree = with_setting(tree, setting)
        for setting in self.texts:
            tree = with_setting(tree, setting, is_text=True)
        return tree


def read_values_file(path: str) -> Tree:
    """Return the values in a file; raise BadRequest unless it is one mapping without duplicate keys."""
    text = read_bytes(path).decode("utf-8-sig", errors="replace")
    twice: list[str] = []
    try:
        trees = list(read_documents(text, path, duplicates=twice))
    except BadRequest:
        # Parse again without `twice` to raise the more detailed error.
        trees = list(read_documents(text, path))
    if len(trees) > 1:
        raise BadRequest(f"{path}:{trees[1].line}: a values file must be one YAML document; this is the second")
    tree = trees[0].value if trees else {}
    if not isinstance(tree, dict):
        raise BadRequest(
            f"{path}: {called(tree)} is not a mapping of values; write names and values, such as worker: {{number: 2}}"
        )
    if twice:
        raise BadRequest("\n".join(_slips(path, tree, twice)))
    return tree


def _slips(path: str, tree: Tree, twice: list[str]) -> Iterable[str]:
    """Yield messages about likely indentation errors: duplicate keys and empty blocks."""
    for duplicate in twice:
        where, _, message = duplicate.partition(": ")
        name = message.removeprefix('key "').partition('"')[0]
        yield f'{path}:{where.removeprefix("line ")}: duplicate key "{name}"; keep one of them'
    for name in (name for name, value in tree.items() if value is None):
        yield f"{path}: {name} is empty; check the indentation below it"


def render(name: str, template: Template, values: Tree) -> Object:
    """Return the application object, the same that the Helm chart renders."""
    return {
        "apiVersion": OWN_API_VERSION,
        "kind": "TrainingApp",
        "metadata": {"name": name},
        "spec": {"template": {"name": template.name, "version": template.version}, "values": values},
    }


def check(app: Object) -> None:
    """Raise Invalid if the application has faults, with paths relative to its values."""
    if faults := registry.app_faults(app):
        raise Invalid(tuple(replace(fault, path=fault.path.removeprefix("spec.values.")) for fault in faults))


def parts_of(app: Object) -> tuple[Object, Rendered]:
    """Return the job of an application's first revision, and its other resources."""
    parts = expand.expand_app(app, 1)
    return expand.job_manifest(app, parts, revision=1), parts
