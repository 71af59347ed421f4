"""What the controllers of our kinds may do in a cluster: as a role to grant, and as questions to ask before they start.

A test runs them with exactly these rights, and another counts that every one of them is used.
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
# Questions under way at once.
_ASKERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Right:
    """What may be done with some kinds of one group; a subresource is spelled `pods/log`."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    # The one object that is meant, if not any.
    name: str = ""
    # Whether every cluster asks for it.
    is_usual: bool = True

    def rule(self) -> Object:
        """Write it as a rule of a role."""
        named = {"resourceNames": [self.name]} if self.name else {}
        return {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs), **named}


def rights() -> tuple[Right, ...]:
    """List what the controllers do, wherever there are jobs."""
    jobs = tuple(kind.plural for kind in registry.KINDS)
    services = tuple((kind.group, kind.plural) for kind in registry.SERVICES)
    return (
        # Applications make jobs and stop them; jobs are deleted when their time to stay is over.
        Right(group=GROUP, resources=jobs, verbs=("create", "delete", "get", "list", "patch", "watch")),
        Right(group=GROUP, resources=_below(jobs, "status"), verbs=("patch", "update")),
        Right(group=GROUP, resources=_below(jobs, "finalizers"), verbs=("update",), is_usual=False),
        *(right for group, plural in services for right in _of_service(group, plural)),
        Right(group=OWN_GROUP, resources=(training_app.PLURAL,), verbs=("list", "watch")),
        Right(group=OWN_GROUP, resources=(job_record.PLURAL,), verbs=("create", "get", "list", "watch")),
        Right(group=OWN_GROUP, resources=_below((training_app.PLURAL, job_record.PLURAL), "status"), verbs=("update",)),
        Right(
            group=OWN_GROUP, resources=_below((training_app.PLURAL,), "finalizers"), verbs=("update",), is_usual=False
        ),
        # What the revisions of an application share: its claim, its trainer, and who its members are.
        Right(group="", resources=("configmaps", "persistentvolumeclaims"), verbs=("create", "get")),
        Right(group="", resources=("pods",), verbs=("create", "delete", "get", "list", "watch")),
        Right(group="", resources=("pods/log",), verbs=("get",)),
        # A TensorBoard may be reached from elsewhere than when it was made.
        Right(group="", resources=("services",), verbs=("create", "get", "list", "patch", "watch")),
        # Of a service's pages nobody is told before they can be reached.
        Right(group="discovery.k8s.io", resources=("endpointslices",), verbs=("list", "watch")),
        # The key by which members start processes in each other, and the tokens of Notebooks.
        Right(group="", resources=("secrets",), verbs=("create", "patch")),
        Right(group="", resources=("events",), verbs=("create", "get", "patch")),
        Right(group="scheduler.tensorstack.dev", resources=("podgroups",), verbs=("create", "patch")),
    )


def lease_rights(name: str) -> tuple[Right, ...]:
    """List what is done with the lease, in its namespace."""
    return (
        Right(group="coordination.k8s.io", resources=("leases",), verbs=("create",)),
        Right(group="coordination.k8s.io", resources=("leases",), verbs=("get", "update"), name=name),
    )


async def missing_rights(cluster: Cluster, required: Iterable[Right], *, namespace: str) -> tuple[str, ...]:
    """Ask the cluster which of these rights the caller lacks, in few lines; an empty namespace means all."""
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
    """Ask the cluster as whom it knows the caller; old ones do not tell."""
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
    """Say what is lacked, kinds of one group with which the same cannot be done together."""
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
