"""What an object gets because of other objects: a pod its priority, a claim its class, a service its address."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from paceline.apimachinery.builtin.priority_classes import SYSTEM_PRIORITIES
from paceline.apimachinery.builtin.storage_annotations import PROTECTION, VOLUME_PROTECTION, is_default_class
from paceline.apimachinery.builtin.taints import NO_SCHEDULE, NOT_READY
from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.name_validation import subdomain_problem
from paceline.apimachinery.quantity import parse
from paceline.apimachinery.scheme import Resource, Scheme
from paceline.apiserver.admission.service_allocator import ServiceAllocator
from paceline.apiserver.object_strategy import read
from paceline.apiserver.paths import key_for, prefix_for
from paceline.apiserver.status_errors import forbidden
from paceline.errors import Fault
from paceline.store.store import Store

_ACCOUNT = "default"
_POLICY = "string value of PreemptionPolicy"
# Gives the scheme of this moment.
Now = Callable[[], Scheme]


def _keep_rank(spec: Object, before: Object) -> None:
    for part in ("priority", "preemptionPolicy"):
        if part in before:
            spec.setdefault(part, before[part])


def _keep_away(node: Object) -> None:
    """Keep pods away from a new node until it says that it is ready, whereupon its agent takes this off."""
    taints = node.setdefault("spec", {}).setdefault("taints", [])
    if not any((each.get("key"), each.get("effect")) == (NOT_READY, NO_SCHEDULE) for each in taints):
        taints.append({"key": NOT_READY, "effect": NO_SCHEDULE})


def _protect(obj: Object, finalizer: str) -> None:
    """Let a claim stay while a pod uses it, and a volume while a claim has it; who binds them takes this off."""
    finalizers = obj["metadata"].setdefault("finalizers", [])
    if finalizer not in finalizers:
        finalizers.append(finalizer)


def _storage(claim: Object) -> str | None:
    amount = (((claim.get("spec") or {}).get("resources") or {}).get("requests") or {}).get("storage")
    return None if amount is None else str(amount)


@dataclass(slots=True)
class AdmissionPlugins:
    """Completes objects by what else is there."""

    scheme: Now
    store: Store
    shares: ServiceAllocator = field(init=False)

    def __post_init__(self) -> None:
        """Share out what services share."""
        self.shares = ServiceAllocator(self.store)

    def fit(self, resource: Resource, obj: Object, old: Object | None, *, dry_run: bool = False) -> tuple[Fault, ...]:
        """Complete an object in place; say what it cannot have, or refuse it."""
        match (resource.group, resource.kind):
            case ("", "Pod") if old is None:
                self._account(resource, obj)
                self._rank(resource, obj)
            case ("", "Pod"):
                _keep_rank(obj["spec"], (old or {}).get("spec") or {})
            case ("", "PersistentVolumeClaim") if old is None:
                self._classify(obj)
                _protect(obj, PROTECTION)
            case ("", "PersistentVolumeClaim"):
                self._grow(resource, obj, old or {})
            case ("", "Node") if old is None:
                _keep_away(obj)
            case ("", "PersistentVolume") if old is None:
                _protect(obj, VOLUME_PROTECTION)
            case ("", "Service"):
                return self.shares.give(obj, old, dry_run=dry_run)
        return ()

    def _account(self, resource: Resource, pod: Object) -> None:
        """Refuse a pod that names an account that is not there; the one that every namespace has may come later."""
        name, namespace = str(pod["spec"].get("serviceAccountName")), str(pod["metadata"].get("namespace"))
        if name == _ACCOUNT or self._find("", "serviceaccounts", name, namespace=namespace):
            return
        if subdomain_problem(name):
            # The rules for pods say it better.
            return
        why = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise forbidden(resource, name_of(pod), why)

    def _rank(self, resource: Resource, pod: Object) -> None:
        """Give a pod the priority of its class."""
        spec = pod["spec"]
        name = spec.get("priorityClassName")
        chosen: Object | None
        if name:
            chosen = self._find("scheduling.k8s.io", "priorityclasses", name) or SYSTEM_PRIORITIES.get(name)
            if chosen is None:
                raise forbidden(resource, name_of(pod), f"no PriorityClass with name {name} was found")
        else:
            usual = [each for each in self._all("scheduling.k8s.io", "priorityclasses") if each.get("globalDefault")]
            chosen = min(usual, key=lambda each: int(each.get("value") or 0), default=None)
            if chosen is not None and "priority" not in spec:
                spec["priorityClassName"] = name_of(chosen)
        wanted: Object = {
            "priority": (chosen or {}).get("value") or 0,
            "preemptionPolicy": (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority",
        }
        for part, said in (("priority", "integer value of priority"), ("preemptionPolicy", _POLICY)):
            if spec.setdefault(part, wanted[part]) != wanted[part]:
                computed = f"priority admission controller computed {wanted[part]} from the given PriorityClass name"
                why = f"the {said} ({spec[part]}) must not be provided in pod spec; {computed}"
                raise forbidden(resource, name_of(pod), why)

    def _classify(self, claim: Object) -> None:
        """Give a claim that names no class the default one; the newest, should there be several."""
        spec = claim["spec"]
        if "storageClassName" in spec:
            return
        usual = [each for each in self._all("storage.k8s.io", "storageclasses") if is_default_class(each)]
        if usual:
            newest = max(usual, key=lambda each: str(each["metadata"].get("creationTimestamp")))
            spec["storageClassName"] = name_of(newest)

    def _grow(self, resource: Resource, claim: Object, old: Object) -> None:
        """Refuse to let a claim grow whose class does not know how."""
        asked, had = (_storage(each) for each in (claim, old))
        is_bound = (old.get("status") or {}).get("phase") == "Bound"
        if not is_bound or asked is None or had is None or parse(asked) <= parse(had):
            return
        chosen = self._find("storage.k8s.io", "storageclasses", str(claim["spec"].get("storageClassName") or ""))
        if not (chosen or {}).get("allowVolumeExpansion"):
            said = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must"
            raise forbidden(resource, name_of(claim), f"{said} support resize")

    def _find(self, group: str, plural: str, name: str, *, namespace: str = "") -> Object | None:
        resource = self.scheme().find(group, "v1", plural)
        stored = self.store.get(key_for(resource, namespace, name)) if resource else None
        return read(stored.value) if stored else None

    def _all(self, group: str, plural: str) -> Iterator[Object]:
        resource = self.scheme().find(group, "v1", plural)
        for stored in self.store.list(prefix_for(resource)) if resource else ():
            yield read(stored.value)
