"""The OpenAPI schema of a status, derived from its type, with the help that `kubectl explain` shows.

Fields that this version does not know are kept: another version of the controllers may have written them.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from paceline.model.app_status import AppPhase, AppStatus, RecordStatus
from paceline.model.interactive import ServicePhase, ServiceStatus
from paceline.model.job_status import Failure, JobStatus, Phase
from paceline.model.replica_record import ContainerState, ReplicaPhase, ReplicaRecord
from paceline.model.wire_object import WireObject, wire_keys

Schema = dict[str, Any]

KEPT: Schema = {"x-kubernetes-preserve-unknown-fields": True}
_TEXT: Schema = {"type": "string"}
_TYPES: Mapping[Any, Schema] = {
    str: _TEXT,
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    datetime: {"type": "string", "format": "date-time"},
}


def _phases(phases: type[Enum]) -> str:
    return ", ".join(str(phase.value) for phase in phases)


def _fields(**help_texts: str) -> Schema:
    return {name: {**_TEXT, "description": text} for name, text in help_texts.items()}


_CONDITION: Schema = {
    "type": "object",
    "properties": {
        **_fields(
            type="Type of the condition.",
            status="True, False or Unknown.",
            reason="Reason for the last transition, as one word.",
            message="Details of the last transition.",
        ),
        "lastTransitionTime": {**_TYPES[datetime], "description": "When the status of the condition changed."},
    },
    **KEPT,
}
_CONDITIONS: Schema = {"type": "array", "items": _CONDITION, "description": "Conditions, one per type."}
_WAITING = "Why nothing runs yet, as a sentence; empty if nothing is missing."
_OBSERVED = "Generation of the spec that this status describes."

# The help of each field, by type and key.
HELP: Mapping[type[WireObject], Mapping[str, str]] = {
    JobStatus: {
        "phase": f"Phase of the job: {_phases(Phase)}.",
        "observedGeneration": _OBSERVED,
        "attempt": "How often all replicas were started again together.",
        "replicaRecords": "What is known of each replica, also of those that were scaled down.",
        "startAfter": "No pod is created before this time: the back-off after a failure.",
        "startTime": "When the job started.",
        "runningTime": "When all replicas were first running since the job was created or resumed.",
        "completionTime": "When the job ended.",
        "restartGranted": "The last restart request that was fulfilled.",
        "resumes": "Restarts that do not count towards the limit: after a pause, a new size, a request.",
        "pausedSeconds": "Duration of all pauses; they do not count for the deadline.",
        "disruption": "Why the cluster took pods of the job away; empty once it runs again.",
        "disruptions": "How often the cluster took pods of the job away; this does not count towards the limit.",
        "ports": "Ports that were allocated for the replicas, by name.",
        "waiting": _WAITING,
        "failure": "The pod that made the job fail, or the last one that failed.",
        "aggregate": "Number of replicas in each phase.",
        "source": "The resolved commit of the code.",
        "errands": "Restarts of each auxiliary pod.",
        "ending": "Result of the job while its output is still being uploaded.",
    },
    ReplicaRecord: {
        "replica": "Type and index of the replica, such as worker-0.",
        "attempt": "Number of the current attempt; it is part of the pod's name.",
        "restarts": "Restarts that count towards the limits.",
        "uid": "UID of the attempt's pod.",
        "phase": f"Phase of the attempt: {_phases(ReplicaPhase)}.",
        "containers": "Containers that have terminated.",
        "stages": "Init containers that have terminated.",
        "reason": "Reason of the pod's status.",
        "message": "Message of the pod's status.",
        "oomLimit": "Memory limit with which the previous attempt was OOM-killed.",
        "scaledDown": "Whether the replica was scaled down.",
        "hasOutput": "Whether the replica may have output that is not uploaded yet.",
    },
    ContainerState: {
        "name": "Name of the container.",
        "state": "Waiting, Running, Terminated or Unknown.",
        "exitCode": "Exit code.",
        "reason": "Reason of the state.",
        "message": "Details of the state.",
    },
    Failure: {
        "pod": "Name of the pod.",
        "exitCode": "Exit code of the container.",
        "reason": "Reason of the failure, as one word.",
        "message": "Details of the failure.",
        "replica": "Replica of the pod.",
        "container": "Container that determined the result.",
        "lastLines": "Last log lines of the container.",
    },
    ServiceStatus: {
        "phase": f"Phase: {_phases(ServicePhase)}.",
        "observedGeneration": _OBSERVED,
        "url": "URL that opens it in a browser.",
        "address": "Address outside the cluster, which needs no token.",
        "tokenSecret": "Secret with the access token.",
        "waiting": _WAITING,
        "lastActivity": "When it was last used, to the minute.",
        "startAfter": "No pod is created before this time: the back-off after a failure.",
        "suspendedAt": "When it was suspended.",
    },
    AppStatus: {
        "phase": f"Phase of the current revision: {_phases(AppPhase)}.",
        "observedGeneration": _OBSERVED,
        "revision": "Number of the current revision.",
        "updated": "When the current revision started.",
        "stopped": "Whether the job was suspended together with the application.",
        "waiting": _WAITING,
        "message": "Why the current revision failed.",
        "url": "URL of the TensorBoard of all revisions.",
        "history": "The last revisions, newest first.",
    },
    RecordStatus: {
        "phase": f"Phase of the revision: {_phases(AppPhase)}.",
        "startTime": "When the job started.",
        "completionTime": "When the job ended.",
        "commit": "Commit of the code.",
        "message": "Why it failed.",
        "metrics": "Last value of each metric that the trainer logged.",
        "made": "Whether its job has been created.",
        "clusterSpec": "Cluster spec that its members received.",
    },
}
# Fields that another form has than their type, or whose parts have names.
FORMS: Mapping[type[WireObject], Schema] = {
    JobStatus: {
        "conditions": _CONDITIONS,
        "backoffCount": {"type": "integer", "description": "Restarts of all replicas that count."},
        "tasks": {
            "type": "array",
            "description": "Replicas by type, with the phases of their pods and containers.",
            "items": {"type": "object", **KEPT},
        },
        "elastic": {
            "type": "object",
            "description": "Size of an elastic job.",
            "properties": {
                "currentReplicas": {"type": "integer", "description": "Replicas that run."},
                "expectedReplicas": {"type": "integer", "description": "Replicas that are wanted."},
            },
            **KEPT,
        },
        "tensorboard": {"type": "object", "description": "The job's own TensorBoard.", **KEPT},
    },
    ServiceStatus: {
        "conditions": _CONDITIONS,
        "pod": {
            "type": "object",
            "description": "The pod.",
            "properties": {
                "reference": {
                    "type": "object",
                    "description": "Name and UID of the pod.",
                    "properties": _fields(name="Name of the pod.", uid="UID of the pod."),
                },
                **_fields(phase="Phase of the pod."),
            },
            **KEPT,
        },
    },
    AppStatus: {
        "job": {
            "type": "object",
            "description": "Job of the current revision.",
            "properties": _fields(kind="Kind of the job.", name="Name of the job."),
            **KEPT,
        },
    },
}


def status_schema(status: type[WireObject]) -> Schema:
    """Return the schema of a status, or of a part of one."""
    forms, texts = FORMS.get(status, {}), HELP[status]
    hints = get_type_hints(status, include_extras=True)
    fields = {
        key: forms.get(key) or {**_of(hints[name]), "description": texts.get(key, "")}
        for key, name in wire_keys(status).items()
    }
    return {"type": "object", "properties": {**fields, **forms}, **KEPT}


def _of(hint: Any) -> Schema:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    origin, args = get_origin(hint), get_args(hint)
    if origin is UnionType:
        return _of(next(arm for arm in args if arm is not NoneType))
    if origin is tuple:
        return {"type": "array", "items": _of(args[0])}
    if origin is Mapping:
        return (
            {"type": "object", **KEPT} if args[1] is Any else {"type": "object", "additionalProperties": _of(args[1])}
        )
    if isinstance(hint, type) and issubclass(hint, WireObject):
        return status_schema(hint)
    return dict(_TYPES.get(hint, _TEXT))
