"""`kubectl explain JOB.status`: every field that a controller writes is declared, with help."""

import pytest

from paceline.model.job_status import JobStatus
from paceline.model.status_schema import FORMS, HELP, status_schema
from paceline.model.wire_object import wire_keys


@pytest.mark.parametrize("status", HELP, ids=lambda status: status.__name__)
def test_every_field_of_a_status_has_help(status):
    declared = status_schema(status)["properties"]

    assert declared.keys() >= wire_keys(status).keys()
    assert [key for key, field in declared.items() if not field["description"]] == []
    assert HELP[status].keys() | FORMS.get(status, {}).keys() == declared.keys()


def test_what_another_version_writes_is_kept():
    schema = status_schema(JobStatus)
    record = schema["properties"]["replicaRecords"]["items"]

    assert schema["x-kubernetes-preserve-unknown-fields"]
    assert record["x-kubernetes-preserve-unknown-fields"]
    assert record["properties"]["containers"]["items"]["properties"]["exitCode"]["type"] == "integer"
