"""Installs Paceline in a cluster: checks everything first, and then applies the manifests server-side."""

from collections.abc import Callable, Iterable

import uvloop

from paceline.apimachinery.meta import Object, name_of
from paceline.client.http.cluster import HttpTransport
from paceline.client.interface import ACCOUNTS, CRDS, NAMESPACES, SERVICES, Cluster, Collection
from paceline.client.rest import Verbs
from paceline.client.rest_config import Access
from paceline.cluster.crd_install import check_kinds
from paceline.cluster.external_controllers import server_version, version_problem
from paceline.cluster.installation.manifests import definitions, installation, namespace_manifest
from paceline.cluster.installation.values import InstallValues
from paceline.errors import HostError, NotFound
from paceline.host.effects import real_world

_RBAC = "rbac.authorization.k8s.io"
WHERE = {
    "CustomResourceDefinition": CRDS,
    "Namespace": NAMESPACES,
    "ServiceAccount": ACCOUNTS,
    "Service": SERVICES,
    "Deployment": Collection(group="apps", version="v1", plural="deployments"),
    "PodDisruptionBudget": Collection(group="policy", version="v1", plural="poddisruptionbudgets"),
    "NetworkPolicy": Collection(group="networking.k8s.io", version="v1", plural="networkpolicies"),
    "ServiceMonitor": Collection(group="monitoring.coreos.com", version="v1", plural="servicemonitors"),
    "Role": Collection(group=_RBAC, version="v1", plural="roles"),
    "RoleBinding": Collection(group=_RBAC, version="v1", plural="rolebindings"),
    "ClusterRole": Collection(group=_RBAC, version="v1", plural="clusterroles", namespaced=False),
    "ClusterRoleBinding": Collection(group=_RBAC, version="v1", plural="clusterrolebindings", namespaced=False),
}
# The field manager of what the command applies.
AUTHOR = "paceline-install"

Say = Callable[[str], None]


def manifests(values: InstallValues, namespace: str) -> tuple[Object, ...]:
    """Return everything that is installed, in the order in which it is applied."""
    crds = definitions() if values.crds.install else ()
    return (*crds, namespace_manifest(namespace), *installation(values, namespace))


def install(access: Access, values: InstallValues, namespace: str, say: Say) -> None:
    """Install Paceline; raise HostError, before anything is changed, if the cluster is not fit for it."""
    uvloop.run(_connected(access, values, namespace, say))


async def _connected(access: Access, values: InstallValues, namespace: str, say: Say) -> None:
    transport = HttpTransport(access, real_world().chance)
    try:
        await apply_all(Verbs(transport), values, namespace, say)
    finally:
        await transport.close()


async def apply_all(cluster: Cluster, values: InstallValues, namespace: str, say: Say) -> None:
    """Check the cluster, then apply every manifest; a second time changes nothing."""
    version = await server_version(cluster)
    if reason := version_problem(version):
        raise HostError(f"the cluster is Kubernetes {version}: {reason}")
    if values.crds.install and not values.crds.adopt:
        await check_kinds(cluster, how="--set crds.adopt=true replaces them")
    objects = manifests(values, namespace)
    await _apply(cluster, objects)
    replaced = "the CustomResourceDefinitions, " if values.crds.install else ""
    say(f"applied {replaced}permissions, controllers and the rest: {len(objects)} objects, in namespace {namespace}")


async def _apply(cluster: Cluster, objects: Iterable[Object]) -> None:
    for manifest in objects:
        kind = str(manifest["kind"])
        try:
            await cluster.apply(WHERE[kind], manifest, author=AUTHOR, force=True)
        except NotFound as error:
            raise HostError(f"{kind} {name_of(manifest)} cannot be applied: the cluster has no such kind") from error
