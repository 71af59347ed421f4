"""The resources of an application: objects owned by it, its current job or its TensorBoard."""

from collections.abc import Container, Iterable
from dataclasses import dataclass

from paceline.apimachinery.meta import Object, controller_of, uid_of
from paceline.client.interface import CLAIMS, CONFIG_MAPS, PODS, SERVICES, Collection, Select
from paceline.client.sync import DirectCluster
from paceline.sdk.apps.app import VERSION, AppRef
from paceline.sdk.discovery import SERVICE_GROUP
from paceline.sdk.job import JobRef

BOARDS = Collection(group=SERVICE_GROUP, version=VERSION, plural="tensorboards")


@dataclass(frozen=True, slots=True, kw_only=True)
class AppResources:
    """The resources of an application except its job, with the pods of all of them."""

    config_maps: tuple[Object, ...]
    claims: tuple[Object, ...]
    services: tuple[Object, ...]
    boards: tuple[Object, ...]
    pods: tuple[Object, ...]


def belongings_of(cluster: DirectCluster, app: AppRef, job: JobRef | None) -> AppResources:
    """Return all resources that an application owns, directly or through its job and TensorBoard."""
    here = Select(namespace=app.namespace)

    def read(where: Collection, owners: Container[str]) -> tuple[Object, ...]:
        return tuple(owned(cluster.list(where, here).items, owners))

    owners = {app.uid} if job is None else {app.uid, job.uid}
    boards = read(BOARDS, owners)
    behind = {*owners, *map(uid_of, boards)}
    return AppResources(
        config_maps=read(CONFIG_MAPS, owners),
        claims=read(CLAIMS, owners),
        services=read(SERVICES, behind),
        boards=boards,
        pods=read(PODS, behind),
    )


def owned(objects: Iterable[Object], owners: Container[str]) -> Iterable[Object]:
    """Return the objects whose controller is one of the owners."""
    return (obj for obj in objects if (controller_of(obj) or {}).get("uid") in owners)
