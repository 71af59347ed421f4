"""The claims of a job and the folders behind them."""

from collections.abc import Iterable

from paceline.apimachinery.meta import Object
from paceline.client.interface import CLAIMS, VOLUMES
from paceline.sdk.client import Session
from paceline.sdk.job_summary import replica_specs


def claims_of(job: Object) -> tuple[tuple[str, str], ...]:
    """Return every claim that a job mounts with its mount path, without duplicates."""
    mounts = []
    for replica in replica_specs(job):
        spec = (replica.get("template") or {}).get("spec") or {}
        claims = {
            volume["name"]: volume["persistentVolumeClaim"].get("claimName")
            for volume in spec.get("volumes") or ()
            if volume.get("persistentVolumeClaim")
        }
        mounts += [(claims[name], path) for name, path in _mounts(spec.get("containers") or ()) if name in claims]
    return tuple(dict.fromkeys(mounts))


def folder_of(session: Session, claim: str) -> str:
    """Return the folder behind a claim; empty if it is not a folder of this machine."""
    volume = (session.cluster.get(CLAIMS, session.namespace, claim).get("spec") or {}).get("volumeName")
    if not volume:
        return ""
    spec = session.cluster.get(VOLUMES, "", volume).get("spec") or {}
    return str((spec.get("hostPath") or {}).get("path") or "")


def _mounts(containers: Iterable[Object]) -> list[tuple[str, str]]:
    return [
        (str(mount.get("name")), str(mount.get("mountPath")))
        for container in containers
        for mount in container.get("volumeMounts") or ()
    ]
