"""Named volumes: a folder of this machine, a new claim, or a bucket whose keys are never shown again."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from paceline.apimachinery.field_errors import invalid
from paceline.apimachinery.meta import Object, annotations_of, labels_of, name_of
from paceline.apimachinery.quantity import parse
from paceline.client.interface import CLAIMS, SECRETS, VOLUMES, Select
from paceline.client.sync import DirectCluster
from paceline.errors import AlreadyExists, Invalid, PacelineError
from paceline.kinds.spec import data
from paceline.model.well_known_labels import LOCATION, VOLUME
from paceline.sdk.code_repositories import check_new, pick

# A folder has no fixed size, but a claim must request one.
FOLDER_SIZE = "1Ti"
# Field paths and the CLI options that set them.
OPTIONS = {"-.url": "--bucket", "-.endpoint": "--endpoint"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketOptions:
    """A bucket and its access keys."""

    url: str
    endpoint: str = ""
    region: str = ""
    key_id: str = ""
    key_secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedVolume:
    """A named volume."""

    name: str
    # folder, claim or bucket.
    type: str
    location: str
    phase: str
    object: Object

    @property
    def values(self) -> dict[str, str]:
        """Return the values for a template."""
        if self.type == "bucket":
            return {"secret": name_of(self.object), "bucket": self.location}
        return {"claim": name_of(self.object)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Volumes:
    """The named volumes of one namespace."""

    cluster: DirectCluster
    namespace: str

    def all(self) -> tuple[NamedVolume, ...]:
        """Return all named volumes, without access keys."""
        return tuple(sorted(self._found(), key=lambda volume: volume.name))

    def named(self, name: str) -> NamedVolume:
        """Return a named volume; NotFound suggests a similar name."""
        return pick(name, self.all(), noun="volume", namespace=self.namespace)

    def create_folder(self, name: str, path: str) -> NamedVolume:
        """Create a named volume for a folder of this machine."""
        self._check(name)
        if problem := _folder_problem(path):
            raise Invalid((invalid("--dir", path, problem),))
        mode = {"accessModes": ["ReadWriteMany"]}
        claim_ref = {"namespace": self.namespace, "name": name, "kind": "PersistentVolumeClaim", "apiVersion": "v1"}
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": self._volume_name(name), "labels": {VOLUME: name}},
            "spec": {
                **mode,
                "capacity": {"storage": FOLDER_SIZE},
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                "hostPath": {"path": path, "type": "Directory"},
                "claimRef": claim_ref,
            },
        }
        claim_spec = {**mode, "resources": {"requests": {"storage": FOLDER_SIZE}}, "storageClassName": ""}
        try:
            self.cluster.create(VOLUMES, volume)
        except AlreadyExists as error:
            raise AlreadyExists(f"volume {name} already exists") from error
        try:
            return self._claim(name, {**claim_spec, "volumeName": self._volume_name(name)}, path)
        except PacelineError:
            # Without its claim the volume could not be found again.
            self.cluster.delete(VOLUMES, ("", self._volume_name(name)))
            raise

    def create_claim(self, name: str, size: str) -> NamedVolume:
        """Create a new, empty volume."""
        self._check(name)
        if not _is_size(size):
            raise Invalid((invalid("--size", size, "write a size, such as 10Gi"),))
        claim_spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": size}}}
        return self._claim(name, claim_spec, size)

    def create_bucket(self, name: str, bucket: BucketOptions) -> NamedVolume:
        """Create a named volume for a bucket; its keys are stored in a secret and not shown again."""
        self._check(name)
        described = data.Bucket(url=bucket.url, endpoint=bucket.endpoint)
        if faults := tuple(data.check_bucket(described, "-")):
            raise Invalid(tuple(replace(fault, path=OPTIONS[fault.path]) for fault in faults))
        entries = {
            "url": bucket.url,
            "endpoint": bucket.endpoint,
            "region": bucket.region,
            "accessKeyId": bucket.key_id,
            "accessKeySecret": bucket.key_secret,
            # The variables that TensorBoard reads.
            "AWS_ACCESS_KEY_ID": bucket.key_id,
            "AWS_SECRET_ACCESS_KEY": bucket.key_secret,
            "AWS_REGION": bucket.region,
            "S3_ENDPOINT": bucket.endpoint,
        }
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": self._metadata(name, bucket.url),
            "stringData": {key: value for key, value in entries.items() if value},
        }
        try:
            created = self.cluster.create(SECRETS, secret)
        except AlreadyExists as error:
            raise AlreadyExists(f"volume {name}, or another secret of that name, already exists") from error
        return _bucket(created)

    def delete(self, volume: NamedVolume) -> None:
        """Delete a named volume; files in a folder or bucket are kept."""
        if volume.type == "bucket":
            self.cluster.delete(SECRETS, (self.namespace, name_of(volume.object)))
            return
        self.cluster.delete(CLAIMS, (self.namespace, name_of(volume.object)))
        if volume.type == "folder":
            self.cluster.delete(VOLUMES, ("", str(volume.object["spec"]["volumeName"])))

    def for_folder(self, path: str) -> NamedVolume:
        """Return the volume of a folder, created if there is none yet."""
        for volume in self.all():
            if volume.type == "folder" and volume.location == path:
                return volume
        return self.create_folder(f"dir-{hashlib.sha256(path.encode()).hexdigest()[:8]}", path)

    def _claim(self, name: str, spec: Object, location: str) -> NamedVolume:
        metadata = self._metadata(name, location)
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
        try:
            return _claimed(self.cluster.create(CLAIMS, claim))
        except AlreadyExists as error:
            raise AlreadyExists(f"volume {name}, or another claim of that name, already exists") from error

    def _check(self, name: str) -> None:
        check_new(name, self.all(), noun="volume")

    def _found(self) -> Iterator[NamedVolume]:
        ours = Select(namespace=self.namespace, labels=VOLUME)
        yield from (_claimed(obj) for obj in self.cluster.list(CLAIMS, ours).items)
        yield from (_bucket(obj) for obj in self.cluster.list(SECRETS, ours).items)

    def _metadata(self, name: str, location: str) -> Object:
        return {
            "name": name,
            "namespace": self.namespace,
            "labels": {VOLUME: name},
            "annotations": {LOCATION: location},
        }

    def _volume_name(self, name: str) -> str:
        return f"{self.namespace}-{name}"


def _claimed(claim: Object) -> NamedVolume:
    location = annotations_of(claim).get(LOCATION, "")
    is_folder = location.startswith("/")
    phase = str((claim.get("status") or {}).get("phase") or "Pending")
    kind = "folder" if is_folder else "claim"
    return NamedVolume(name=labels_of(claim)[VOLUME], type=kind, location=location, phase=phase, object=claim)


def _bucket(secret: Object) -> NamedVolume:
    public = {key: value for key, value in secret.items() if key not in ("data", "stringData")}
    location = annotations_of(secret).get(LOCATION, "")
    return NamedVolume(name=labels_of(secret)[VOLUME], type="bucket", location=location, phase="Ready", object=public)


def _is_size(size: str) -> bool:
    try:
        return parse(size) > 0
    except ValueError:
        return False


def _folder_problem(path: str) -> str:
    if not path.startswith("/"):
        return f"write an absolute path, such as /home/me/{path.removeprefix('./')}"
    if ".." in path.split("/"):
        return "write the path without .."
    return "name a folder, not the whole disk" if not path.strip("/") else ""
