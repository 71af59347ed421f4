"""What service accounts may not write: objects that lift the confinement of containers.

A job is as good as a pod: controllers make its pods with rights of their own, so whoever writes the job is asked. The
fields are looked for at any depth, because each kind keeps its pod templates in places of its own.
"""

from collections.abc import Iterator
from typing import Any

from paceline.apimachinery.meta import Object, name_of
from paceline.apimachinery.scheme import Resource
from paceline.apiserver import status_errors
from paceline.apiserver.admission.chain import Admission

PROFILE, CONTEXT = "seccompProfile", "securityContext"
# Capabilities that service accounts may add: the default ones, and IPC_LOCK, which RDMA needs and memory limits bound.
# Others allow blocked system calls, or access to other containers' traffic or to the host.
HARMLESS = frozenset(
    (
        *("AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "IPC_LOCK", "KILL", "NET_BIND_SERVICE"),
        *("SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT"),
    )
)


class ServiceAccountAdmission(Admission):
    """Admission of objects that a service account writes."""

    def __init__(self, admission: Admission) -> None:
        # Share everything else, in particular the ServiceAllocator.
        self.__dict__.update(admission.__dict__)

    def check(self, resource: Resource, obj: Object, old: Object | None = None, *, dry_run: bool = False) -> None:
        """Also reject objects that weaken the isolation of containers, unless the spec is unchanged."""
        spec = obj.get("spec")
        if (old is None or spec != old.get("spec")) and (field := next(unconfined_fields(spec, "spec"), None)):
            path, value = field
            reason = "service accounts may not lift the confinement of containers; the cluster's admin may"
            cause = {"reason": "FieldValueForbidden", "message": f"Forbidden: {reason}", "field": path}
            raise status_errors.forbidden(resource, name_of(obj), f"{path}: {value}: {reason}", causes=[cause])
        super().check(resource, obj, old, dry_run=dry_run)


def unconfined_fields(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield path and value of every field that weakens the isolation of containers."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from unconfined_fields(item, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        place = f"{path}.{key}"
        if isinstance(item, dict) and key == PROFILE and item.get("type") == "Unconfined":
            yield f"{place}.type", "Unconfined"
        if isinstance(item, dict) and key == CONTEXT:
            if item.get("privileged"):
                yield f"{place}.privileged", "true"
            if item.get("procMount") == "Unmasked":
                yield f"{place}.procMount", "Unmasked"
            yield from _added(item.get("capabilities"), f"{place}.capabilities.add")
        yield from unconfined_fields(item, place)


def _added(capabilities: Any, path: str) -> Iterator[tuple[str, str]]:
    added = capabilities.get("add") if isinstance(capabilities, dict) else None
    for index, name in enumerate(added if isinstance(added, list) else ()):
        if str(name).upper().removeprefix("CAP_") not in HARMLESS:
            yield f"{path}[{index}]", str(name)
