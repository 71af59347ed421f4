"""Jobs of the past: the records that every job leaves."""

from paceline.apimachinery.meta import Object, name_of
from paceline.client.interface import Collection, Select
from paceline.client.sync import DirectCluster
from paceline.errors import NotFound
from paceline.kinds.apps.job_record import PLURAL
from paceline.kinds.kind_types import OWN_GROUP, VERSION
from paceline.model import well_known_labels

RECORDS = Collection(group=OWN_GROUP, version=VERSION, plural=PLURAL)


def job_records(cluster: DirectCluster, namespace: str, job: str = "") -> tuple[Object, ...]:
    """Return the records of a namespace (all if empty), the latest first; with `job`, those of jobs of that name."""
    records = cluster.list(RECORDS, Select(namespace=namespace, labels=well_known_labels.JOB_UID)).items
    mine = [record for record in records if not job or job in (record["spec"]["job"].get("name"), name_of(record))]
    return tuple(sorted(mine, key=lambda record: str(record["spec"].get("created") or ""), reverse=True))


def job_record(cluster: DirectCluster, namespace: str, name: str) -> Object:
    """Return the latest record of a job, or the record of that name."""
    records = job_records(cluster, namespace, name.rpartition("/")[2])
    if not records:
        raise NotFound(f"no job {name!r} was recorded in namespace {namespace!r}; to list all: paceline history")
    return records[0]
