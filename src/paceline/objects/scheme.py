"""Which kinds there are: group, version, names, scope, schema, columns. Filled once, at assembly."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paceline.errors import Fault
from paceline.objects.meta import Object


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One printer column: a JSONPath into the object, as CRDs write it (`.status.phase`)."""

    name: str
    path: str
    type: str = "string"
    description: str = ""
    # 0 shows always, 1 only with `-o wide`.
    priority: int = 0


# Turns an object into the cells of its own columns; for kinds whose cells are not plain paths (pods, nodes …).
# Takes the object and the current time in wire form.
Cells = Callable[[Object, str], tuple[Any, ...]]

# What a check may ask about other objects: (plural, namespace) → names that exist.
Lookup = Callable[[str, str], tuple[str, ...]]


def no_faults(_obj: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Find nothing wrong."""
    return ()


def no_defaults(_obj: Object) -> None:
    """Fill in nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One served kind. `schema` is OpenAPI v3 with `$ref` to other component schemas allowed."""

    group: str
    version: str
    kind: str
    plural: str
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    # `status` first of all: with it, status and spec are written through different doors.
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = (
        "create",
        "delete",
        "deletecollection",
        "get",
        "list",
        "patch",
        "update",
        "watch",
    )
    # The name of this kind's component schema, and the schema itself.
    schema_name: str
    schema: Mapping[str, Any]
    columns: tuple[Column, ...] = ()
    cells: Cells | None = None
    # Rules between fields and to other objects, run after the schema was satisfied.
    check: Callable[[Object, Lookup], tuple[Fault, ...]] = field(default=no_faults)
    # Fills in defaults of built-in kinds, in place, before the check.
    default: Callable[[Object], None] = field(default=no_defaults)
    # Paths (dotted) of the spec that may change after creation; None allows all.
    mutable: tuple[str, ...] | None = None

    @property
    def api_version(self) -> str:
        """Give `group/version`, or the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def has_status(self) -> bool:
        """Tell whether status is written through a door of its own."""
        return "status" in self.subresources


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """All served kinds, and the component schemas they refer to."""

    resources: tuple[Resource, ...]
    components: Mapping[str, Any]
    _by_path: Mapping[tuple[str, str, str], Resource] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the resources by path, once."""
        object.__setattr__(self, "_by_path", {(r.group, r.version, r.plural): r for r in self.resources})

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Find what a path names."""
        return self._by_path.get((group, version, plural))

    def of(self, api_version: str, kind: str) -> Resource | None:
        """Find what an object says it is."""
        group, _, version = api_version.rpartition("/")
        wanted = (group, version, kind)
        return next((r for r in self.resources if (r.group, r.version, r.kind) == wanted), None)

    def groups(self) -> Iterable[tuple[str, str]]:
        """Give every served (group, version) once, in the order of the resources."""
        return dict.fromkeys((r.group, r.version) for r in self.resources)
