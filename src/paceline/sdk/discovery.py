"""API discovery: the kinds of a cluster, looked up by any of their names."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from paceline.apimachinery.field_errors import nearest
from paceline.apimachinery.meta import Object
from paceline.client.interface import Collection
from paceline.errors import Fault, Invalid, NotFound
from paceline.model.interactive import SHORT

# The group of the job kinds. kinds/ defines it too, but is not imported here: that would slow down the start
# of commands, and the cluster is the authority on its kinds.
JOB_GROUP = "batch.tensorstack.dev"
SERVICE_GROUP = "tensorstack.dev"
PACELINE_GROUPS = (JOB_GROUP, SERVICE_GROUP, "paceline.dev")
CORE = "/api/v1"

# Reads a path of the API as JSON.
Ask = Callable[[str], Object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKind:
    """A kind of the cluster with all its names."""

    where: Collection
    kind: str
    singular: str
    short_names: tuple[str, ...] = ()

    @property
    def is_job(self) -> bool:
        """Return True if objects of this kind are jobs."""
        return self.where.group == JOB_GROUP

    @property
    def is_service(self) -> bool:
        """Return True if objects of this kind are TensorBoards or notebooks."""
        return self.where.group == SERVICE_GROUP and self.where.plural in SHORT

    @property
    def api_version(self) -> str:
        """Return the apiVersion of this kind."""
        return f"{self.where.group}/{self.where.version}" if self.where.group else self.where.version

    @property
    def names(self) -> tuple[str, ...]:
        """Return all names of this kind."""
        plural = self.where.plural
        return (plural, self.singular, *self.short_names, f"{plural}.{self.where.group}")


class Kinds:
    """The kinds of one cluster; every API group is read once, when it is first needed."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._parts: dict[str, tuple[ResourceKind, ...]] = {}
        self._others: tuple[str, ...] | None = None

    def jobs(self) -> tuple[ResourceKind, ...]:
        """Return all job kinds; none if Paceline is not installed in the cluster."""
        return self._group(JOB_GROUP)

    def services(self) -> tuple[ResourceKind, ...]:
        """Return the kinds of TensorBoards and notebooks."""
        return tuple(kind for kind in self._group(SERVICE_GROUP) if kind.is_service)

    def named(self, word: str) -> ResourceKind:
        """Return a kind by plural, singular, short name, kind or plural.group; Invalid suggests a similar one."""
        lowered = word.lower()
        for part in self._in_order():
            for kind in part:
                if lowered in kind.names or lowered == kind.kind.lower():
                    return kind
        names = [name for part in self._parts.values() for kind in part for name in kind.names[:2]]
        suggestion = nearest(lowered, names)
        hint = (
            f"did you mean {suggestion!r}?"
            if suggestion
            else "the cluster has no such kind; to list all kinds: paceline get --kinds"
        )
        raise Invalid((Fault("kind", word, hint),))

    def of(self, api_version: str, kind: str) -> ResourceKind:
        """Return the kind of an apiVersion and kind; Invalid suggests a similar one."""
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        try:
            part = self._part(path)
        except NotFound:
            raise Invalid((Fault("apiVersion", api_version, self._version_hint(kind)),)) from None
        match = next((candidate for candidate in part if candidate.kind == kind), None)
        if match is None:
            names = [candidate.kind for candidate in part]
            suggestion = nearest(kind, names, likeness=0.5)
            hint = f"did you mean {suggestion!r}?" if suggestion else f"{api_version} has: {', '.join(names)}"
            raise Invalid((Fault("kind", kind, hint),))
        return match

    def all(self) -> tuple[ResourceKind, ...]:
        """Return every kind of the cluster, job kinds first."""
        return tuple(dict.fromkeys(kind for part in self._in_order() for kind in part))

    def _version_hint(self, kind: str) -> str:
        """Return a hint with the right apiVersion of a kind, if the cluster has it."""
        for part in self._in_order():
            for candidate in part:
                if candidate.kind == kind:
                    return f"{kind} is in {candidate.api_version!r}"
        return f"the cluster does not have this group and version; jobs are in '{JOB_GROUP}/v1beta1'"

    def _in_order(self) -> Iterable[tuple[ResourceKind, ...]]:
        """Yield the kinds by API group, likely groups first, so that most commands read one or two groups."""
        yield self.jobs()
        yield self._part(CORE)
        if self._others is None:
            groups = self._ask("/apis").get("groups") or ()
            ordered = sorted(groups, key=lambda group: group["name"] not in PACELINE_GROUPS)
            self._others = tuple(_preferred(group) for group in ordered)
        for path in self._others:
            yield self._part(path)

    def _group(self, name: str) -> tuple[ResourceKind, ...]:
        try:
            group = self._ask(f"/apis/{name}")
        except NotFound:
            return ()
        return self._part(_preferred(group))

    def _part(self, path: str) -> tuple[ResourceKind, ...]:
        if path not in self._parts:
            self._parts[path] = read_kinds(self._ask(path))
        return self._parts[path]


def read_kinds(answer: Object) -> tuple[ResourceKind, ...]:
    """Return the kinds of an APIResourceList, without subresources."""
    group, _, version = str(answer.get("groupVersion") or "").rpartition("/")
    return tuple(
        ResourceKind(
            where=Collection(
                group=group,
                version=version,
                plural=str(entry["name"]),
                namespaced=bool(entry.get("namespaced")),
            ),
            kind=str(entry["kind"]),
            singular=str(entry.get("singularName") or entry["kind"]).lower(),
            short_names=tuple(entry.get("shortNames") or ()),
        )
        for entry in answer.get("resources") or ()
        if "/" not in entry["name"]
    )


def _preferred(group: Object) -> str:
    version = (group.get("preferredVersion") or group["versions"][0])["groupVersion"]
    return f"/apis/{version}"
