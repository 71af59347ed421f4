"""Apply a plan, always in this order: write the status, delete, create, record events."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Key, Object, controller_of, key_of, namespace_of, owned_by, revision_of, uid_of
from paceline.client.event_recorder import Recorder
from paceline.client.interface import CLAIMS, PODS, SECRETS, SERVICES, Cluster, Collection
from paceline.errors import AlreadyExists, Conflict, HostError, NotFound, PacelineError
from paceline.plan.job.manifests import (
    auxiliary_pod_manifest,
    claim_manifest,
    launch_manifest,
    pod_manifest,
    service_manifest,
)
from paceline.plan.job.plan import AuxiliaryPod, NewPod, Plan
from paceline.plan.job.snapshot import JobSnapshot, pod_name
from paceline.plan.queueing.pod_groups import group_kind, group_manifest, why_no_group

# Pods of one job that are created at the same time.
AT_ONCE = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Actuator:
    """What applying a plan needs: the cluster and an event recorder."""

    cluster: Cluster
    recorder: Recorder
    # The content of the launch secret besides the job's own files: a new key, and the ssh replacement.
    program: Callable[[], Mapping[str, str]] = dict
    # Whether everything that pods need is there, because only pods were rejected the last time.
    is_prepared: bool = False
    # The version of Kubernetes' own PodGroups in this cluster; empty if it has none.
    native_groups: str = ""
    # Whether a job waits whose scheduler's PodGroups do not exist.
    requires_groups: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """The result of a plan: the job as written, the pods as created, and why the cluster rejected one of them."""

    job: Object
    created: tuple[Object, ...]
    refusal: PacelineError | None = None


async def apply_plan(hands: Actuator, where: Collection, job: Object, *, view: JobSnapshot, plan: Plan) -> Applied:
    """Apply a plan; raise Conflict if the first step fails, before anything has happened.

    Every step is safe to repeat: names are computed, a pod that is gone counts as deleted, and one that exists counts
    as created if it belongs to this job.
    """
    written = await _write(hands, where, job, plan)
    uids = {pod_name(pod): pod.uid for pod in view.all_pods}
    for name in plan.delete:
        await _delete_pod(hands, (namespace_of(job), name), uids.get(name, ""))
    for name in plan.force_delete:
        await _delete_pod(hands, (namespace_of(job), name), uids[name], is_forced=True)
    for pod in plan.auxiliary_pods:
        await _make_auxiliary(hands, written, view, pod)
    if plan.create and not hands.is_prepared:
        await _make_service(hands, written, view)
        await _make_launch(hands, written, view)
        await _make_group(hands, written, view)
        await _make_claims(hands, written, view, plan.create)
    pods, refusal = await _make_all(hands, written, view, plan.create)
    if plan.deletes_job:
        await _remove(hands, where, written)
    for event in plan.events:
        await hands.recorder.record(written, event.reason, message=event.message, is_warning=event.is_warning)
    return Applied(job=written, created=tuple(pods), refusal=refusal)


async def _write(hands: Actuator, where: Collection, job: Object, plan: Plan) -> Object:
    status = plan.status.to_wire()
    if status == job.get("status"):
        return job
    return await hands.cluster.replace(where, {**job, "status": status}, subresource="status")


async def _delete_pod(hands: Actuator, key: Key, uid: str, *, is_forced: bool = False) -> None:
    options: dict[str, Any] = {"preconditions": {"uid": uid}} if uid else {}
    if is_forced:
        options["gracePeriodSeconds"] = 0
    try:
        await hands.cluster.delete(PODS, key, options)
    except NotFound:
        return
    except Conflict:
        # Another pod has this name now, so the one to delete is gone.
        return


async def _remove(hands: Actuator, where: Collection, job: Object) -> None:
    """Delete the job with everything it owns; raise Conflict if it has changed since it was read."""
    guard = {"uid": uid_of(job), "resourceVersion": revision_of(job)}
    await hands.cluster.delete(where, key_of(job), {"propagationPolicy": "Background", "preconditions": guard})


async def _make_service(hands: Actuator, job: Object, view: JobSnapshot) -> None:
    """Create the headless service of the members' DNS names, once per job."""
    if view.pods:
        return
    manifest = service_manifest(view.naming, owner=owned_by(job))
    try:
        await hands.cluster.create(SERVICES, manifest)
    except AlreadyExists:
        return


async def _make_launch(hands: Actuator, job: Object, view: JobSnapshot) -> None:
    """Create the secret with which members start processes in each other, if they do.

    There is one per job, and another one after each resume; it is never read or changed.
    """
    launch = view.gang.launch
    if launch is None or (view.pods and not view.status.resumes):
        return
    manifest = launch_manifest(view.naming, launch, hands.program(), owner=owned_by(job))
    try:
        await hands.cluster.create(SECRETS, manifest)
    except AlreadyExists:
        return


async def _make_group(hands: Actuator, job: Object, view: JobSnapshot) -> None:
    """Create the PodGroup of a job whose scheduler reads one; raise HostError if the cluster does not have that kind.

    There is one per job; after a resize it gets another size.
    """
    kind = group_kind(view.gang, view.naming, hands.native_groups)
    is_resized = view.gang.is_elastic and view.status.resumes > 0
    if kind is None or (view.pods and not is_resized):
        return
    where = Collection(group=kind.group, version=kind.version, plural="podgroups")
    manifest = group_manifest(view.naming, view.gang, kind, owner=owned_by(job))
    try:
        await hands.cluster.create(where, manifest)
    except NotFound:
        # Our own scheduler reads the pods' annotations, and schedules pods of every name.
        if hands.requires_groups and not kind.is_optional:
            raise HostError(why_no_group(kind)) from None
    except AlreadyExists:
        if is_resized:
            # A group that is just being deleted is created again with the next pods.
            with suppress(NotFound):
                await hands.cluster.patch(where, key_of(manifest), {"spec": manifest["spec"]})


async def _make_auxiliary(hands: Actuator, job: Object, view: JobSnapshot, new: AuxiliaryPod) -> None:
    """Create an auxiliary pod, unless it exists."""
    try:
        await hands.cluster.create(PODS, auxiliary_pod_manifest(view.naming, view.gang, new, owner=owned_by(job)))
    except AlreadyExists:
        return


async def _make_claims(hands: Actuator, job: Object, view: JobSnapshot, create: tuple[NewPod, ...]) -> None:
    """Create the claims that hold the members' output until it is uploaded; all attempts share one."""
    for new in create:
        member = view.gang.member(new.place)
        if member.keeping is None or member.keeping.claim is None:
            continue
        manifest = claim_manifest(view.naming, member, member.keeping.claim, owner=owned_by(job))
        try:
            await hands.cluster.create(CLAIMS, manifest)
        except AlreadyExists:
            continue


async def _make_all(
    hands: Actuator, job: Object, view: JobSnapshot, create: tuple[NewPod, ...]
) -> tuple[list[Object], PacelineError | None]:
    """Create pods, at first one, and with every success one more at a time; stop at the first error, and return it.

    So a job that a quota rejects costs one request, and one of a thousand pods few round trips.
    """
    pods: list[Object] = []
    errors: list[PacelineError] = []

    window = asyncio.Semaphore(1)

    async def make(new: NewPod) -> None:
        try:
            pods.append(await _make(hands, job, view, new))
        except PacelineError as error:
            errors.append(error)
        window.release()
        if len(pods) < AT_ONCE:
            window.release()

    async with asyncio.TaskGroup() as group:
        for new in create:
            await window.acquire()
            if errors:
                break
            group.create_task(make(new))
    # After NotFound the job or its namespace is gone.
    if passing := next((error for error in errors if error.retry or isinstance(error, NotFound)), None):
        raise passing
    return pods, errors[0] if errors else None


async def _make(hands: Actuator, job: Object, view: JobSnapshot, new: NewPod) -> Object:
    manifest = pod_manifest(view.naming, view.gang, new, owner=owned_by(job))
    try:
        return await hands.cluster.create(PODS, manifest)
    except AlreadyExists:
        current = await hands.cluster.get(PODS, *key_of(manifest))
        owner = controller_of(current)
        if owner is None or owner["uid"] != uid_of(job):
            raise Conflict(
                f"pod {key_of(manifest)[1]} exists and does not belong to this job; delete it or rename the job"
            ) from None
        return current
