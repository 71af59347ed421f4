"""The framework-free middle form: what a job is once its kind has been removed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self


class RestartPolicy(StrEnum):
    """When an ended member is tried again."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"
    EXIT_CODE = "ExitCode"


class RestartScope(StrEnum):
    """Who is tried again when one member failed: all of them, or that one alone."""

    GANG = "Gang"
    REPLICA = "Replica"


class CleanUp(StrEnum):
    """Which pods go when the job ends."""

    NONE = "None"
    ALL = "All"
    UNFINISHED = "Unfinished"


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One named place in a gang: a role (T9k's replica type) and an index within it."""

    role: str
    index: int

    def __str__(self) -> str:
        return f"{self.role}-{self.index}"

    @classmethod
    def named(cls, name: str) -> Self:
        """Find the place that is written so; ValueError when it is none."""
        role, _, index = name.rpartition("-")
        return cls(role, int(index))


# The sidecar that copies a member's output, and what the errand that copies the rest is called, before the place.
KEEPER, FLUSH = "paceline-output", "flush-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """How a member's output gets to where it is kept: by a sidecar of its pod, or by a pod of its own afterwards."""

    # The sidecar that copies; its exit code 0 says that everything is there.
    container: str
    # The pod that copies what a sidecar did not live to copy; None where nothing outlives the member's pod.
    flush: Mapping[str, Any] | None = None
    # The spec of the claim that output lies on until it is copied.
    claim: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """Who runs at a place: the pod template with everything its framework needs already in it."""

    place: Place
    template: Mapping[str, Any]
    restart: RestartPolicy = RestartPolicy.ON_FAILURE
    # The container whose end counts when several have failed; empty: the first that did.
    main: str = ""
    # Where its output is copied from, when it is copied at all.
    keeping: Keeping | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """What members share who start processes in each other: files, a key of the job, and what stands in for ssh."""

    files: Mapping[str, str]


# A rule names places; it holds when all of them ended the way the rule is about.
Rule = tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """All members of one job and the rules of its life, with the framework removed."""

    members: tuple[Member, ...]
    leader: Place
    success: tuple[Rule, ...]
    failure: tuple[Rule, ...]
    scope: RestartScope = RestartScope.REPLICA
    # Restarts that all members share; None leaves only the limits per role.
    backoff_limit: int | None = 3
    role_limits: Mapping[str, int] = field(default_factory=dict)
    clean_up: CleanUp = CleanUp.NONE
    # Roles whose members serve the others, and so end after them when somebody stops the job.
    servers: tuple[str, ...] = ()
    # Roles whose members only watch the others: they come back alone, and nobody's work is lost with them.
    watchers: tuple[str, ...] = ()
    active_deadline_seconds: int | None = None
    # How long the members may take until all run, and how long the job stays after its end.
    starting_deadline_seconds: int | None = None
    # How long all members together may write nothing while they run.
    stall_seconds: int | None = None
    ttl_seconds: int | None = None
    # Whether the number of members may change, and how few are enough; None means all of them.
    is_elastic: bool = False
    least: int | None = None
    # What members share who start processes in each other.
    launch: Launch | None = None
    # The pod that finds out which commit all members are to have, before any of them is made.
    resolve: Mapping[str, Any] | None = None
    # The commit that all members have the code of, where there is one.
    commit: str = ""
    # What its author should know when it has succeeded.
    remark: str = ""
    # Who left when the job shrank, and may have output that is not copied yet; they have no pods any more.
    left: tuple[Member, ...] = ()
    # The queue its pods wait in, and who goes first there; no queue means the cluster's own order.
    queue: str = ""
    priority: int = 0

    @property
    def needed(self) -> int:
        """Tell how many members must have room before any of them starts."""
        return len(self.members) if self.least is None else self.least

    def watches(self, place: Place) -> bool:
        """Tell whether who runs at a place only watches the others."""
        return place.role in self.watchers

    def member(self, place: Place) -> Member:
        """Find who runs at a place; KeyError when the gang has no such place."""
        for member in self.members:
            if member.place == place:
                return member
        raise KeyError(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What is known of a job's surroundings before it is expanded: names and ports that every member may be told."""

    job: str
    namespace: str
    # `<job>-<5 hex>`: what every pod's name starts with, and the subdomain its host name lies in.
    stem: str
    ports: Mapping[str, int]
    # Whether the job comes back from a pause, so that its members go on from where they were.
    is_resumed: bool = False
    # The commit that all members have the code of, once it is known.
    commit: str = ""
    # The places that were left when the job shrank, and may have output that is not copied yet.
    left: tuple[Place, ...] = ()

    def pod(self, place: Place, attempt: int = 0) -> str:
        """Name the pod of one attempt; later attempts carry their number."""
        name = f"{self.stem}-{place.role}-{place.index}"
        return name if attempt == 0 else f"{name}-r{attempt}"

    @property
    def launch_secret(self) -> str:
        """Name the secret that holds what members need to start processes in each other."""
        return f"{self.stem}-launch"

    def errand(self, name: str, attempt: int = 0) -> str:
        """Name the pod that does something for the whole job; later attempts carry their number."""
        return f"{self.stem}-{name}" + (f"-r{attempt}" if attempt else "")

    def staging(self, place: Place) -> str:
        """Name the claim that a member's output lies on until it is copied; the same for every attempt."""
        return f"{self.pod(place)}-output"

    def hostname(self, place: Place) -> str:
        """Name the host of a place, which stays the same over attempts."""
        return self.pod(place)

    def host(self, place: Place) -> str:
        """Name a place so that every member of the job can reach it, on either cluster."""
        return f"{self.hostname(place)}.{self.stem}"
