"""The intermediate form of a job, independent of its kind and framework."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from paceline import __version__

# A full git commit hash, SHA-1 or SHA-256.
COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")


class RestartPolicy(StrEnum):
    """When a terminated member is restarted."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"
    EXIT_CODE = "ExitCode"


class RestartScope(StrEnum):
    """What is restarted when a member fails: the whole gang, or that replica alone."""

    GANG = "Gang"
    REPLICA = "Replica"


class CleanUp(StrEnum):
    """Which pods are deleted when the job ends."""

    NONE = "None"
    ALL = "All"
    UNFINISHED = "Unfinished"


@dataclass(frozen=True, slots=True, order=True)
class ReplicaId:
    """Identity of a replica: its role (T9k's replica type) and its index within the role."""

    role: str
    index: int

    def __str__(self) -> str:
        return f"{self.role}-{self.index}"

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the replica with this name; raise ValueError if the name is invalid."""
        role, _, index = name.rpartition("-")
        return cls(role, int(index))


# Name of the sidecar that uploads a member's output, and prefix of the auxiliary pod that uploads the remaining files.
KEEPER, FLUSH = "paceline-output", "flush-"
# Name of the auxiliary pod that resolves a git revision.
RESOLVE = "resolve"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputUpload:
    """How a member's output is uploaded: by a sidecar in its pod, and afterwards by an auxiliary pod if necessary."""

    # Name of the sidecar; its exit code 0 means that all files are uploaded.
    container: str
    # The pod that uploads what the sidecar could not; None if the files are deleted with the member's pod.
    flush: Mapping[str, Any] | None = None
    # Spec of the claim that holds the output until it is uploaded.
    claim: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A replica of the gang, with a pod template that contains everything its framework needs."""

    place: ReplicaId
    template: Mapping[str, Any]
    restart: RestartPolicy = RestartPolicy.ON_FAILURE
    # The container whose exit code counts if several fail; if empty, the first that failed.
    main: str = ""
    # How its output is uploaded, if it is.
    keeping: OutputUpload | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteLaunch:
    """Files that members need to start processes in each other without ssh."""

    files: Mapping[str, str]


# A rule lists replicas; it is met when all of them have succeeded or failed, respectively.
Rule = tuple[ReplicaId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gang:
    """All members of a job and its policies, independent of the framework."""

    members: tuple[Member, ...]
    leader: ReplicaId
    success: tuple[Rule, ...]
    failure: tuple[Rule, ...]
    scope: RestartScope = RestartScope.REPLICA
    # Maximum number of restarts of all members together; None if only the limits per role apply.
    backoff_limit: int | None = 3
    role_limits: Mapping[str, int] = field(default_factory=dict)
    clean_up: CleanUp = CleanUp.NONE
    # Roles whose members serve the others, and are therefore stopped after them.
    servers: tuple[str, ...] = ()
    # Roles whose members only observe the others: they restart alone, and do not fail the gang.
    observer_roles: tuple[str, ...] = ()
    active_deadline_seconds: int | None = None
    # Time until all members must be running.
    starting_deadline_seconds: int | None = None
    # Time without a log line of any member after which a running job is stalled.
    stall_seconds: int | None = None
    # Time after which a finished job is deleted.
    ttl_seconds: int | None = None
    # Whether the number of members may change, and the minimum; None means all members.
    is_elastic: bool = False
    least: int | None = None
    # Files that members need to start processes in each other.
    launch: RemoteLaunch | None = None
    # The pod that resolves the git revision to a commit, before any member is created.
    resolve: Mapping[str, Any] | None = None
    # The resolved commit of the code, if any.
    commit: str = ""
    # A note for the author, shown when the job has succeeded.
    success_note: str = ""
    # Members that were scaled down, and may have output that is not uploaded yet; they have no pods.
    scaled_down: tuple[Member, ...] = ()
    # The queue of its pods and their priority there; without a queue, the default scheduler decides.
    queue: str = ""
    priority: int = 0

    @property
    def needed(self) -> int:
        """Number of members that must be schedulable before any of them starts."""
        return len(self.members) if self.least is None else self.least

    def watches(self, place: ReplicaId) -> bool:
        """Return whether a replica only observes the others."""
        return place.role in self.observer_roles

    def member(self, place: ReplicaId) -> Member:
        """Return a member; raise KeyError if the gang does not have this replica."""
        for member in self.members:
            if member.place == place:
                return member
        raise KeyError(place)


@dataclass(frozen=True, slots=True, kw_only=True)
class PodTools:
    """The image of our own containers in the pods of jobs, and how kubelets pull it."""

    # The embedded cluster knows this name, and runs the installed Paceline instead.
    image: str = f"paceline/podtools:{__version__}"
    # Empty: the default of Kubernetes.
    pull_policy: str = ""
    # Names of Secrets in the namespace of the job.
    pull_secrets: tuple[str, ...] = ()

    @property
    def image_fields(self) -> dict[str, str]:
        """The fields of a container that name the image and how it is pulled."""
        return {"image": self.image} | ({"imagePullPolicy": self.pull_policy} if self.pull_policy else {})

    def pull_secret_fields(self, spec: Mapping[str, Any]) -> dict[str, Any]:
        """Return the field of a pod spec with the pull secrets of its author and ours; empty without any."""
        names = [dict(secret) for secret in spec.get("imagePullSecrets") or ()]
        names += [{"name": name} for name in self.pull_secrets if {"name": name} not in names]
        return {"imagePullSecrets": names} if names else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobProgress:
    """What the status of a job adds to its spec."""

    # How often all members have started again: after a pause, in another size, at someone's request.
    resumes: int = 0
    # The resolved commit of the code, once it is known.
    commit: str = ""
    # Replicas that were scaled down, and may have output that is not uploaded yet.
    scaled_down: tuple[ReplicaId, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class JobNaming:
    """What is known about a job before it is expanded: names, ports and the image of our containers in its pods."""

    job: str
    namespace: str
    # `<job>-<5 hex>`: the prefix of all pod names, and the subdomain of their host names.
    stem: str
    ports: Mapping[str, int]
    progress: JobProgress = JobProgress()
    tools: PodTools = PodTools()

    @property
    def is_resumed(self) -> bool:
        """Whether the job resumes after a pause, so that its members continue."""
        return self.progress.resumes > 0

    def pod(self, place: ReplicaId, attempt: int = 0) -> str:
        """Return the pod name of an attempt; later attempts have their number as a suffix."""
        name = f"{self.stem}-{place.role}-{place.index}"
        return name if attempt == 0 else f"{name}-r{attempt}"

    @property
    def launch_secret(self) -> str:
        """Name of the Secret with the launch files.

        Each resume, possibly with other members, has a Secret of its own: the controller may only create Secrets,
        because every other verb would let it read those of others.
        """
        return f"{self.stem}-launch" + (f"-r{self.progress.resumes}" if self.is_resumed else "")

    def auxiliary_pod(self, name: str, attempt: int = 0) -> str:
        """Return the name of an auxiliary pod; later attempts have their number as a suffix."""
        return f"{self.stem}-{name}" + (f"-r{attempt}" if attempt else "")

    def staging(self, place: ReplicaId) -> str:
        """Return the name of the claim that holds a member's output until it is uploaded; all attempts share it."""
        return f"{self.pod(place)}-output"

    def hostname(self, place: ReplicaId) -> str:
        """Return the host name of a replica, which is the same for all attempts."""
        return self.pod(place)

    def host(self, place: ReplicaId) -> str:
        """Return the DNS name at which every member of the job can reach a replica, on both clusters."""
        return f"{self.hostname(place)}.{self.stem}"
