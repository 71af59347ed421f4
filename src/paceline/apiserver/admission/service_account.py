"""What a new pod is given of its account: a token in a volume, and the names of secrets for images."""

from paceline.apimachinery.meta import Object, annotations_of, namespace_of
from paceline.apimachinery.pods import spec_containers
from paceline.apimachinery.scheme import Resource
from paceline.apiserver.config import Server

MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount"
AUTHORITY = "kube-root-ca.crt"
NAME = "kube-api-access-"
SECONDS = 3607
_MIRROR = "kubernetes.io/config.mirror"
_SUFFIX_CHARS = 5


def mount_token(pod: Object, resource: Resource, server: Server) -> None:
    """Mount the token of its service account into a new pod, in place; no manager owns these fields."""
    if (resource.group, resource.kind) != ("", "Pod") or not server.mounts_tokens or server.tokens is None:
        return
    if _MIRROR in annotations_of(pod):
        return
    spec = pod["spec"]
    account = server.tokens.find("serviceaccounts", namespace_of(pod), str(spec.get("serviceAccountName"))) or {}
    if account.get("imagePullSecrets") and not spec.get("imagePullSecrets"):
        spec["imagePullSecrets"] = account["imagePullSecrets"]
    automount = spec.get("automountServiceAccountToken", account.get("automountServiceAccountToken"))
    if automount is not False:
        _mount(spec, f"{NAME}{server.ids.suffix(_SUFFIX_CHARS)}")


def _mount(spec: Object, fresh: str) -> None:
    volumes = spec.get("volumes") or []
    existing = next((item["name"] for item in volumes if str(item.get("name")).startswith(NAME)), None)
    name = existing or fresh
    unmounted = [container for container in spec_containers(spec) if not _has_mount(container)]
    for container in unmounted:
        mount = {"name": name, "readOnly": True, "mountPath": MOUNT_PATH}
        container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]
    if unmounted and existing is None:
        spec["volumes"] = [*volumes, _volume(name)]


def _has_mount(container: Object) -> bool:
    return any(mount.get("mountPath") == MOUNT_PATH for mount in container.get("volumeMounts") or ())


def _volume(name: str) -> Object:
    namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    sources = [
        {"serviceAccountToken": {"expirationSeconds": SECONDS, "path": "token"}},
        {"configMap": {"name": AUTHORITY, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [namespace]}},
    ]
    return {"name": name, "projected": {"sources": sources, "defaultMode": 0o644}}
