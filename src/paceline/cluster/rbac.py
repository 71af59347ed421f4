"""The permissions of our controllers in a cluster: as RBAC rules, and as access reviews before the controllers start.

A test runs them with exactly these permissions, and another checks that each of them is used.
"""

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from paceline.apimachinery.meta import Object
from paceline.client.interface import Cluster
from paceline.errors import Forbidden, NotFound
from paceline.kinds import registry
from paceline.kinds.apps import job_record, training_app
from paceline.kinds.kind_types import GROUP, OWN_GROUP

_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_SELF = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
# Access reviews at a time.
_ASKERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """Verbs that are allowed on resources of one group; a subresource is written as `pods/log`."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    # The name of the only object that it applies to; empty: all.
    name: str = ""
    # Whether every cluster requires it.
    is_usual: bool = True

    def rule(self) -> Object:
        """Return it as a rule of a role."""
        named = {"resourceNames": [self.name]} if self.name else {}
        return {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs), **named}


def rights() -> tuple[Right, ...]:
    """Return the permissions in every namespace with jobs."""
    jobs = tuple(kind.plural for kind in registry.KINDS)
    services = tuple((kind.group, kind.plural) for kind in registry.SERVICES)
    return (
        # Applications create and stop jobs; jobs are deleted when their TTL has passed.
        Right(group=GROUP, resources=jobs, verbs=("create", "delete", "get", "list", "patch", "watch")),
        Right(group=GROUP, resources=_below(jobs, "status"), verbs=("patch", "update")),
        Right(group=GROUP, resources=_below(jobs, "finalizers"), verbs=("update",), is_usual=False),
        *(right for group, plural in services for right in _of_service(group, plural)),
        Right(group=OWN_GROUP, resources=(training_app.PLURAL,), verbs=("list", "watch")),
        Right(group=OWN_GROUP, resources=(job_record.PLURAL,), verbs=("create", "delete", "get", "list", "watch")),
        Right(group=OWN_GROUP, resources=_below((training_app.PLURAL,), "status"), verbs=("update",)),
        Right(group=OWN_GROUP, resources=_below((job_record.PLURAL,), "status"), verbs=("patch", "update")),
        Right(
            group=OWN_GROUP, resources=_below((training_app.PLURAL,), "finalizers"), verbs=("update",), is_usual=False
        ),
        # What the revisions of an application share: its claim, its trainer, and the addresses of its replicas.
        Right(group="", resources=("configmaps", "persistentvolumeclaims"), verbs=("create", "get")),
        Right(group="", resources=("pods",), verbs=("create", "delete", "get", "list", "watch")),
        Right(group="", resources=("pods/log",), verbs=("get",)),
        # The type of a TensorBoard's Service may change.
        Right(group="", resources=("services",), verbs=("create", "get", "list", "patch", "watch")),
        # The URL of an interactive workload is published only when it can be reached.
        Right(group="discovery.k8s.io", resources=("endpointslices",), verbs=("list", "watch")),
        # The key with which replicas start processes in each other, and the tokens of notebooks. Not `patch`: an empty
        # patch answers with the whole Secret, whichever owner it has.
        Right(group="", resources=("secrets",), verbs=("create",)),
        Right(group="", resources=("events",), verbs=("create", "get", "list", "patch")),
        Right(group="scheduler.tensorstack.dev", resources=("podgroups",), verbs=("create", "patch")),
        *_of_queues(),
    )


def cluster_rights() -> tuple[Right, ...]:
    """Return the permissions on objects that no namespace contains; only some jobs need them."""
    return (
        # Only of a pod that does not end: whether its node is lost.
        Right(group="", resources=("nodes",), verbs=("get",), is_usual=False),
        # What Kueue's admission of a job means for its pods.
        Right(group="kueue.x-k8s.io", resources=("resourceflavors",), verbs=("list", "watch"), is_usual=False),
        Right(group="kueue.x-k8s.io", resources=("workloadpriorityclasses",), verbs=("get",), is_usual=False),
        Right(group="scheduling.k8s.io", resources=("priorityclasses",), verbs=("get",), is_usual=False),
    )


def _of_queues() -> Iterator[Right]:
    """Yield the permissions for queues and gangs of other projects, which a cluster may have."""
    workloads = ("create", "delete", "list", "patch", "watch")
    yield Right(group="kueue.x-k8s.io", resources=("workloads",), verbs=workloads, is_usual=False)
    yield Right(group="kueue.x-k8s.io", resources=("workloads/status",), verbs=("update",), is_usual=False)
    for group in ("scheduling.k8s.io", "scheduling.volcano.sh", "scheduling.x-k8s.io"):
        yield Right(group=group, resources=("podgroups",), verbs=("create", "patch"), is_usual=False)


def lease_rights(name: str) -> tuple[Right, ...]:
    """Return the permissions for the lease, in its namespace."""
    return (
        Right(group="coordination.k8s.io", resources=("leases",), verbs=("create",)),
        Right(group="coordination.k8s.io", resources=("leases",), verbs=("get", "update"), name=name),
    )


async def missing_rights(cluster: Cluster, required: Iterable[Right], *, namespace: str) -> tuple[str, ...]:
    """Return the permissions that the caller lacks, one line per group of resources; an empty namespace means all."""
    lacked: dict[tuple[str, str], list[str]] = {}
    limit = asyncio.Semaphore(_ASKERS)

    async def ask(where: tuple[str, str], verb: str, question: Object) -> None:
        async with limit:
            answer = await cluster.post(_REVIEWS, _review("SelfSubjectAccessReview", {"resourceAttributes": question}))
        if not (answer.get("status") or {}).get("allowed"):
            lacked.setdefault(where, []).append(verb)

    async with asyncio.TaskGroup() as group:
        for where, verb, question in _questions(required, namespace):
            group.create_task(ask(where, verb, question))
    return tuple(_lines(lacked))


async def who_am_i(cluster: Cluster) -> str:
    """Return the name of the caller's user; old clusters do not report it."""
    try:
        answer = await cluster.post(_SELF, _review("SelfSubjectReview", None))
    except (Forbidden, NotFound):
        return "the kubeconfig's user"
    return str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "nobody")


def _of_service(group: str, plural: str) -> Iterator[Right]:
    makes = ("create", "get", "update") if plural == "tensorboards" else ()
    yield Right(group=group, resources=(plural,), verbs=(*makes, "list", "watch"))
    yield Right(group=group, resources=_below((plural,), "status"), verbs=("update",))
    yield Right(group=group, resources=_below((plural,), "finalizers"), verbs=("update",), is_usual=False)


def _below(plurals: tuple[str, ...], subresource: str) -> tuple[str, ...]:
    return tuple(f"{plural}/{subresource}" for plural in plurals)


def _lines(lacked: Mapping[tuple[str, str], list[str]]) -> Iterator[str]:
    """Yield the missing verbs, with all resources of one group that lack the same ones."""
    alike: dict[tuple[str, str], list[str]] = {}
    for (group, resource), verbs in sorted(lacked.items()):
        alike.setdefault((group, ", ".join(sorted(verbs))), []).append(resource)
    for (group, cannot), resources in alike.items():
        yield f"{cannot} {', '.join(resources)}{f' of {group}' if group else ''}"


def _questions(required: Iterable[Right], namespace: str) -> Iterator[tuple[tuple[str, str], str, Object]]:
    for right in required:
        for resource in right.resources if right.is_usual else ():
            plural, _, subresource = resource.partition("/")
            for verb in right.verbs:
                attributes = {"group": right.group, "resource": plural, "subresource": subresource, "verb": verb}
                where = {"namespace": namespace, "name": right.name}
                yield (
                    (right.group, resource),
                    verb,
                    {name: value for name, value in {**attributes, **where}.items() if value},
                )


def _review(kind: str, spec: Object | None) -> Object:
    group = "authorization" if kind == "SelfSubjectAccessReview" else "authentication"
    review: Object = {"apiVersion": f"{group}.k8s.io/v1", "kind": kind}
    return review if spec is None else {**review, "spec": spec}
