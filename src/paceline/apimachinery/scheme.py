"""The served kinds: group, version, names, scope, schema, columns.

A scheme is a snapshot; get a new one to see kinds that were added or removed since.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from paceline.apimachinery.meta import Object
from paceline.errors import Fault

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A printer column: a JSONPath into the object, as in CRDs (`.status.phase`)."""

    name: str
    path: str
    type: str = "string"
    format: str = ""
    description: str = ""
    # 0: always shown, 1: only with `-o wide`.
    priority: int = 0


# Returns the cells of an object, for kinds whose cells are not plain paths (pods, nodes …).
# Takes the object and the current time in wire form.
Cells = Callable[[Object, str], tuple[Any, ...]]

# Lets a check look up other objects: (plural, namespace) → existing names.
Lookup = Callable[[str, str], tuple[str, ...]]


def no_faults(_obj: Object, _lookup: Lookup) -> tuple[Fault, ...]:
    """Return no faults."""
    return ()


def no_defaults(_obj: Object) -> None:
    """Set no defaults."""


def no_warnings(_obj: Object, _lookup: Lookup | None) -> tuple[str, ...]:
    """Return no warnings."""
    return ()


def no_change_faults(_new: Object, _old: Object) -> tuple[Fault, ...]:
    """Return no faults: every change is allowed."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalePaths:
    """The paths of an object's desired and actual replicas and of their selector, as in CRDs."""

    spec: str
    status: str
    selector: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Resource:
    """One served kind. `schema` is OpenAPI v3 with `$ref` to other component schemas allowed.

    A redefined kind is a new resource, so values derived from a resource may be cached by its identity.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str = ""
    # Kind of its lists; if empty, the kind followed by "List".
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    namespaced: bool = True
    # With `status`, the status is written through its own subresource.
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
    # The name of this kind's component schema, and the schema itself.
    schema_name: str
    schema: Mapping[str, Any]
    # Whether it is a built-in kind of Kubernetes, for which a few rules differ.
    is_builtin: bool = False
    # Whether the schema is structural, as in a CRD: unknown fields are pruned.
    is_structural: bool = False
    # Whether objects may be stored in another version of the kind, and the version in which they are stored now.
    is_shared: bool = False
    stored_version: str = ""
    # Present exactly when `scale` is among the subresources.
    scale: ScalePaths | None = None
    # Dotted paths for field selectors, besides those of every kind.
    selectable: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    cells: Cells | None = None
    # Rules between fields and about other objects, checked after the schema.
    check: Callable[[Object, Lookup], Iterable[Fault]] = field(default=no_faults)
    # Sets the defaults of built-in kinds in place, before the check.
    default: Callable[[Object], None] = field(default=no_defaults)
    # Rules for an update, given the new and the old object.
    check_change: Callable[[Object, Object], Iterable[Fault]] = field(default=no_change_faults)
    # Warnings for the author of a valid object; without a lookup, none about other objects.
    warn: Callable[[Object, Lookup | None], tuple[str, ...]] = field(default=no_warnings)

    @property
    def api_version(self) -> str:
        """`group/version`, or only the version for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def list_name(self) -> str:
        """Kind of its lists."""
        return self.list_kind or f"{self.kind}List"

    @property
    def has_status(self) -> bool:
        """Whether it has a status subresource."""
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
        """Return the resource of a URL path, or None."""
        return self._by_path.get((group, version, plural))

    def of(self, api_version: str, kind: str) -> Resource | None:
        """Return the resource of an object's apiVersion and kind, or None."""
        group, _, version = api_version.rpartition("/")
        identity = (group, version, kind)
        return next((r for r in self.resources if (r.group, r.version, r.kind) == identity), None)

    def groups(self) -> Iterable[tuple[str, str]]:
        """Return every served (group, version) once, in the order of the resources."""
        return dict.fromkeys((r.group, r.version) for r in self.resources)


class ByKind(Generic[T]):
    """A cache with one value per kind, created at first use.

    The value of a redefined kind is created again.
    """

    def __init__(self, make: Callable[[Resource], T]) -> None:
        self._make = make
        self._cached: dict[tuple[str, str, str], tuple[Resource, T]] = {}

    def of(self, resource: Resource) -> T:
        """Return the value of a kind."""
        key = (resource.group, resource.version, resource.kind)
        cached = self._cached.get(key)
        if cached is None or cached[0] is not resource:
            self._cached[key] = cached = (resource, self._make(resource))
        return cached[1]
