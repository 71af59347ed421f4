"""Read access to a cluster: kinds, objects and server-side tables."""

from dataclasses import dataclass
from typing import Self

from paceline.apimachinery.meta import Object
from paceline.client import requests, responses
from paceline.client.interface import CONFIG_MAPS, Page, Select
from paceline.client.sync import DirectCluster
from paceline.errors import Forbidden, NotFound
from paceline.model.scheduling_queue import EMPTY, NAME, NAMESPACE, SchedulingQueue, read_queue
from paceline.sdk.connection import ClusterConnection
from paceline.sdk.discovery import Kinds, ResourceKind

# A server without table support responds with the list itself.
AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectEvent:
    """An existing or deleted object of a watched kind."""

    kind: ResourceKind
    object: Object
    is_gone: bool = False


def scheduling_queue(cluster: DirectCluster) -> SchedulingQueue:
    """Return the scheduling queue; empty on a cluster that publishes none, or if we may not read it."""
    try:
        return read_queue(cluster.get(CONFIG_MAPS, NAMESPACE, NAME))
    except (Forbidden, NotFound):
        return EMPTY


class Reader:
    """A cluster and its default namespace. Not thread-safe; close it after use."""

    def __init__(self, dial: ClusterConnection, namespace: str) -> None:
        self.dial = dial
        self.namespace = namespace
        self.cluster: DirectCluster = dial()
        self.kinds = Kinds(self.ask)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.cluster.close()

    def ask(self, path: str) -> Object:
        """Return the JSON at any path of the API."""
        return responses.read_object(self.cluster.send(requests.Request(method="GET", path=path)))

    def list(self, kind: ResourceKind, *, everywhere: bool = False) -> Page:
        """Return all objects of a kind."""
        return self.cluster.list(kind.where, self.select(kind, everywhere=everywhere))

    def table(self, kind: ResourceKind, name: str = "", *, everywhere: bool = False) -> Object:
        """Return a kind, or one object, as the server-side table; a plain list if the server does not print tables."""
        where = kind.where
        namespace = self.select(kind, everywhere=everywhere and not name).namespace
        request = requests.Request(method="GET", path=where.path(namespace, name), headers=(("Accept", AS_TABLE),))
        return responses.read_object(self.cluster.send(request))

    def select(self, kind: ResourceKind, *, everywhere: bool, name: str = "") -> Select:
        """Return the selection of objects of a kind."""
        is_inside = kind.where.namespaced and not everywhere
        return Select(
            namespace=self.namespace if is_inside else "",
            fields=f"metadata.name={name}" if name else "",
        )
