"""The small API server of the SDK's tests, for commands that need a cluster."""

from tests.unit.sdk.conftest import job_object, pod_object, stage

__all__ = ["job_object", "pod_object", "stage"]
