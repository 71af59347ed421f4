"""Which kinds there are: group, version, names, scope, schema, columns.

A scheme is one moment of that: those who want to know what is served now ask for it again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from paceline.errors import Fault
from paceline.objects.meta import Object

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One printer column: a JSONPath into the object, as CRDs write it (`.status.phase`)."""

    name: str
    path: str
    type: str = "string"
    format: str = ""
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


def no_warnings(_obj: Object) -> tuple[str, ...]:
    """Have nothing to say."""
    return ()


def no_change_faults(_new: Object, _old: Object) -> tuple[Fault, ...]:
    """Let everything change."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalePaths:
    """Where an object says how many replicas it wants and has, and how they are found; as CRDs write it."""

    spec: str
    status: str
    selector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resource:
    """One served kind. `schema` is OpenAPI v3 with `$ref` to other component schemas allowed.

    A kind that is defined anew is another resource: what is worked out of one may be kept as long as it is the same.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str = ""
    # What a list of them is called; empty for the kind and "List".
    list_kind: str = ""
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
    # Whether it is one of Kubernetes' own; a few rules differ for them.
    is_builtin: bool = False
    # Whether the schema says all that may be there, as a definition's does: what it does not name is taken out.
    is_structural: bool = False
    # Whether objects may have been stored under another version of the kind, and under which they are now.
    is_shared: bool = False
    stored_version: str = ""
    # Present exactly when `scale` is among the subresources.
    scale: ScalePaths | None = None
    # Paths (dotted) that a field selector may name, beside those that every kind has.
    selectable: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    cells: Cells | None = None
    # Rules between fields and to other objects, run after the schema was satisfied.
    check: Callable[[Object, Lookup], tuple[Fault, ...]] = field(default=no_faults)
    # Fills in defaults of built-in kinds, in place, before the check.
    default: Callable[[Object], None] = field(default=no_defaults)
    # Paths (dotted) of the spec that may change after creation; None allows all.
    mutable: tuple[str, ...] | None = None
    # Rules for a change, of the new object and the old one.
    check_change: Callable[[Object, Object], tuple[Fault, ...]] = field(default=no_change_faults)
    # What the author of an object without faults is told all the same.
    warn: Callable[[Object], tuple[str, ...]] = field(default=no_warnings)

    @property
    def api_version(self) -> str:
        """Give `group/version`, or the version alone in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_name(self) -> str:
        """Give what a list of them is called."""
        return self.list_kind or f"{self.kind}List"

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


class ByKind(Generic[T]):
    """One thing per kind, hence as many as there are, made when it is first wanted.

    Of a kind that was defined anew it is the newer one.
    """

    def __init__(self, make: Callable[[Resource], T]) -> None:
        self._make = make
        self._made: dict[tuple[str, str, str], tuple[Resource, T]] = {}

    def of(self, resource: Resource) -> T:
        """Give what there is of a kind."""
        key = (resource.group, resource.version, resource.kind)
        made = self._made.get(key)
        if made is None or made[0] is not resource:
            self._made[key] = made = (resource, self._make(resource))
        return made[1]
