"""The manifests of what an application owns: records, claims, the trainer, the TensorBoard, the cluster spec."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from paceline.apimachinery.meta import Object, owned_metadata
from paceline.apimachinery.quantity import parse
from paceline.model import well_known_labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """The owner of an object: its reference, its namespace, its labels, and who asked for it."""

    reference: Mapping[str, Any]
    namespace: str
    stem: str
    asked_by: str = ""

    def metadata(self, name: str, **labels: str) -> Object:
        """Return the metadata of an owned object."""
        return owned_metadata(name, self.namespace, {well_known_labels.APP: self.stem, **labels}, self.reference)

    def revision_metadata(self, name: str, revision: int) -> Object:
        """Return the metadata of what belongs to one revision, with who asked for it."""
        metadata = self.metadata(name, **{well_known_labels.REVISION: str(revision)})
        return {**metadata, "annotations": {well_known_labels.ASKED_BY: self.asked_by}} if self.asked_by else metadata


def record_manifest(owner: Owner, api_version: str, spec: Mapping[str, Any]) -> Object:
    """Return the record of a revision; it stays when the job is deleted."""
    return {
        "apiVersion": api_version,
        "kind": "JobRecord",
        "metadata": owner.revision_metadata(str(spec["job"]["name"]), spec["revision"]),
        "spec": dict(spec),
    }


def owned_job(owner: Owner, api_version: str, record: Mapping[str, Any]) -> Object:
    """Return the job of a record."""
    job = record["job"]
    return {
        "apiVersion": api_version,
        "kind": job["kind"],
        "metadata": owner.revision_metadata(str(job["name"]), record["revision"]),
        "spec": dict(job["spec"]),
    }


def claim_manifest(owner: Owner, name: str, spec: Mapping[str, Any]) -> Object:
    """Return a claim that all revisions share."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": owner.metadata(name),
        "spec": dict(spec),
    }


def claim_change(claim: Object, spec: Mapping[str, Any]) -> str:
    """Return which immutable part of a claim differs from the spec; empty when none does."""
    current = claim["spec"]
    if current.get("selector") != spec.get("selector"):
        return "the labels of its volume"
    if "storageClassName" in spec and current.get("storageClassName") != spec["storageClassName"]:
        return "its storage class"
    sizes = [parse(claim_spec["resources"]["requests"]["storage"]) for claim_spec in (current, spec)]
    return "" if sizes[0] == sizes[1] else "its size"


def files_manifest(owner: Owner, name: str, files: Mapping[str, str]) -> Object:
    """Return a ConfigMap with files."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": owner.metadata(name), "data": dict(files)}


def app_board_manifest(owner: Owner, api_version: str, name: str, spec: Mapping[str, Any]) -> Object:
    """Return the TensorBoard of an application."""
    return {
        "apiVersion": api_version,
        "kind": "TensorBoard",
        "metadata": owner.metadata(name),
        "spec": dict(spec),
    }


def cluster_manifest(namespace: str, stem: str, text: str, *, owner: Mapping[str, Any]) -> Object:
    """Return the ConfigMap with the cluster spec of the members; it is deleted with the job."""
    mine = Owner(reference=owner, namespace=namespace, stem=stem)
    return files_manifest(mine, f"{owner['name']}-tf-cluster-spec", {"cluster": text})
