"""What an object gets because of other objects: a pod its priority, a claim its class, a service its address."""

from collections.abc import Callable, Iterator

from paceline.apimachinery.builtin.scheduling import NO_SCHEDULE, NOT_READY, SYSTEM_PRIORITIES
from paceline.apimachinery.builtin.storage_annotations import PROTECTION, VOLUME_PROTECTION, is_default_class
from paceline.apimachinery.meta import Object, annotations_of, name_of, namespace_of
from paceline.apimachinery.name_validation import subdomain_problem
from paceline.apimachinery.pods import spec_containers
from paceline.apimachinery.quantity import parse
from paceline.apimachinery.scheme import Resource, Scheme
from paceline.apiserver.admission.service_allocator import ServiceAllocator
from paceline.apiserver.config import Server
from paceline.apiserver.object_strategy import lookup, read
from paceline.apiserver.paths import prefix_for
from paceline.apiserver.status_errors import forbidden
from paceline.errors import Fault
from paceline.store.store import Store

_ACCOUNT = "default"
CurrentScheme = Callable[[], Scheme]


def _keep_priority(spec: Object, old_spec: Object) -> None:
    for part in ("priority", "preemptionPolicy"):
        if part in old_spec:
            spec.setdefault(part, old_spec[part])


def _taint_not_ready(node: Object) -> None:
    """Taint a new node as not ready; its agent removes the taint."""
    taints = node.setdefault("spec", {}).setdefault("taints", [])
    if not any((taint.get("key"), taint.get("effect")) == (NOT_READY, NO_SCHEDULE) for taint in taints):
        taints.append({"key": NOT_READY, "effect": NO_SCHEDULE})


def _protect(obj: Object, finalizer: str) -> None:
    """Add a finalizer, so that a claim or volume in use is not deleted."""
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


def _storage(claim: Object) -> str | None:
    amount = (((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")
    return None if amount is None else str(amount)


class AdmissionPlugins:
    """Completes objects with values that depend on other objects."""

    def __init__(self, scheme: CurrentScheme, store: Store) -> None:
        self.scheme, self.store, self.allocator = scheme, store, ServiceAllocator(store)

    def admit(self, resource: Resource, obj: Object, old: Object | None, *, dry_run: bool = False) -> tuple[Fault, ...]:
        """Complete an object in place, and return field errors; raise Forbidden if it is rejected."""
        match (resource.group, resource.kind):
            case ("", "Pod") if old is None:
                self._check_service_account(resource, obj)
                self._set_priority(resource, obj)
            case ("", "Pod"):
                _keep_priority(obj["spec"], (old or {}).get("spec") or {})
            case ("", "PersistentVolumeClaim") if old is None:
                self._set_storage_class(obj)
                _protect(obj, PROTECTION)
            case ("", "PersistentVolumeClaim"):
                self._check_expansion(resource, obj, old or {})
            case ("", "Node") if old is None:
                _taint_not_ready(obj)
            case ("", "PersistentVolume") if old is None:
                _protect(obj, VOLUME_PROTECTION)
            case ("", "Service"):
                return self.allocator.allocate(obj, old, dry_run=dry_run)
        return ()

    def _check_service_account(self, resource: Resource, pod: Object) -> None:
        """Reject a pod with an unknown service account; `default` may be created later."""
        name, namespace = str(pod["spec"].get("serviceAccountName")), str(pod["metadata"].get("namespace"))
        if name == _ACCOUNT or self._find("", "serviceaccounts", name, namespace=namespace):
            return
        if subdomain_problem(name):
            # The validation of pods reports this.
            return
        raise forbidden(resource, name_of(pod), f'service account "{namespace}/{name}" not found')

    def _set_priority(self, resource: Resource, pod: Object) -> None:
        spec = pod["spec"]
        name = spec.get("priorityClassName")
        chosen: Object | None
        if name:
            chosen = self._find("scheduling.k8s.io", "priorityclasses", name) or SYSTEM_PRIORITIES.get(name)
            if chosen is None:
                raise forbidden(resource, name_of(pod), f"no PriorityClass with name {name} was found")
        else:
            classes = self._all("scheduling.k8s.io", "priorityclasses")
            defaults = (priority_class for priority_class in classes if priority_class.get("globalDefault"))
            chosen = min(defaults, key=lambda priority_class: int(priority_class.get("value") or 0), default=None)
            if chosen is not None and "priority" not in spec:
                spec["priorityClassName"] = name_of(chosen)
        computed: Object = {
            "priority": (chosen or {}).get("value") or 0,
            "preemptionPolicy": (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority",
        }
        for part in ("priority", "preemptionPolicy"):
            if spec.setdefault(part, computed[part]) != computed[part]:
                reason = f"{part} must not be {spec[part]}; the PriorityClass sets it to {computed[part]}"
                raise forbidden(resource, name_of(pod), reason)

    def _set_storage_class(self, claim: Object) -> None:
        """Set the default StorageClass, the newest one if there are several."""
        spec = claim["spec"]
        if "storageClassName" in spec:
            return
        defaults = list(filter(is_default_class, self._all("storage.k8s.io", "storageclasses")))
        if defaults:
            newest = max(defaults, key=lambda storage_class: str(storage_class["metadata"].get("creationTimestamp")))
            spec["storageClassName"] = name_of(newest)

    def _check_expansion(self, resource: Resource, claim: Object, old: Object) -> None:
        """Reject a larger request if the StorageClass does not allow volume expansion."""
        new_size, old_size = (_storage(obj) for obj in (claim, old))
        is_bound = (old.get("status") or {}).get("phase") == "Bound"
        if not is_bound or new_size is None or old_size is None or parse(new_size) <= parse(old_size):
            return
        chosen = self._find("storage.k8s.io", "storageclasses", str(claim["spec"].get("storageClassName") or ""))
        if not (chosen or {}).get("allowVolumeExpansion"):
            raise forbidden(resource, name_of(claim), "its StorageClass does not allow volume expansion")

    def _find(self, group: str, plural: str, name: str, *, namespace: str = "") -> Object | None:
        return lookup(self.store, self.scheme().find(group, "v1", plural), namespace, name)

    def _all(self, group: str, plural: str) -> Iterator[Object]:
        resource = self.scheme().find(group, "v1", plural)
        for stored in self.store.list(prefix_for(resource)) if resource else ():
            yield read(stored.value)


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
