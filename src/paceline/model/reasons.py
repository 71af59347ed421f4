"""The closed list of reasons in conditions and events, each with its meaning (docs/reference/reasons.md).

A pending pod's own reason is passed on unchanged, so a condition or event may also have any reason of a pod.
"""

from collections.abc import Mapping

# T9k's reason where there is nothing to explain.
NONE = "-"

# Jobs: life cycle.
CREATED = "Created"
NEW_REPLICA = "NewReplica"
START = "Start"
STARTS_SINGLY = "StartsSingly"
RUNNING = "Running"
NOT_FINISHED = "NotFinished"
SUCCEEDED = "Succeeded"
FAILED = "Failed"
EXPIRED = "Expired"
PAUSED = "Paused"
RESUMING = "Resuming"
SUSPENDED = "Suspended"
QUEUED = "Queued"
JOB_SUSPENDED = "JobSuspended"
JOB_RESUMED = "JobResumed"
RESIZED = "Resized"
RESTARTING = "Restarting"
PREEMPTED = "Preempted"
DISRUPTED = "Disrupted"
NODE_LOST = "NodeLost"
REMADE = "Remade"
KEEPING_OUTPUT = "KeepingOutput"
SOURCE_RESOLVED = "SourceResolved"
# Jobs: failures.
ERROR_IN_POD = "ErrorInPod"
DELETED = "Deleted"
REPLICA_LOST = "ReplicaLost"
OUT_OF_MEMORY = "OutOfMemory"
DEADLINE_EXCEEDED = "DeadlineExceeded"
STARTING_DEADLINE_EXCEEDED = "StartingDeadlineExceeded"
STALLED = "Stalled"
SOURCE_NOT_FOUND = "SourceNotFound"
# Any object of ours.
DELETE_REQUESTED = "DeleteRequested"
# Any object of ours that its author or an administrator must change.
INVALID = "Invalid"
REFUSED = "Refused"
UNREADABLE = "Unreadable"
TENSORBOARD_REFUSED = "TensorBoardRefused"

# TensorBoards and Notebooks.
RESUMED = "Resumed"
IDLE = "Idle"
ENDED = "Ended"
NOT_USED = "NotUsed"

# Applications.
REVISION = "Revision"
STOPPED = "Stopped"

# Scheduling, as in Kubernetes.
SCHEDULED = "Scheduled"
FAILED_SCHEDULING = "FailedScheduling"
UNSCHEDULABLE = "Unschedulable"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"
OVERCOMMITTED = "Overcommitted"

# Volumes and garbage collection, as in Kubernetes.
CLAIM_LOST = "ClaimLost"
CLAIM_MISBOUND = "ClaimMisbound"
EXTERNAL_PROVISIONING = "ExternalProvisioning"
FAILED_BINDING = "FailedBinding"
PROVISIONING_FAILED = "ProvisioningFailed"
PROVISIONING_SUCCEEDED = "ProvisioningSucceeded"
VOLUME_FAILED_DELETE = "VolumeFailedDelete"
VOLUME_FAILED_RECYCLE = "VolumeFailedRecycle"
VOLUME_MISMATCH = "VolumeMismatch"
VOLUME_RESIZE_SUCCESSFUL = "VolumeResizeSuccessful"
WAIT_FOR_FIRST_CONSUMER = "WaitForFirstConsumer"
OWNER_REF_INVALID_NAMESPACE = "OwnerRefInvalidNamespace"

MEANINGS: Mapping[str, str] = {
    NONE: "Nothing to explain.",
    CREATED: "The job is new.",
    NEW_REPLICA: "A pod of the job was created.",
    START: "All pods of the job exist.",
    STARTS_SINGLY: "No gang scheduler looks after the job: its pods start one by one, as each finds room.",
    RUNNING: "Enough pods run.",
    NOT_FINISHED: "The job has not ended.",
    SUCCEEDED: "The job has succeeded.",
    FAILED: "The job has failed; the message names the replica, its exit code and its last line.",
    EXPIRED: "The job is deleted because of `ttlSecondsAfterFinished`.",
    PAUSED: "The job is paused by `runMode.pause`.",
    RESUMING: "A paused job continues.",
    SUSPENDED: "A job, TensorBoard or Notebook is suspended by `spec.suspend`.",
    QUEUED: "The job waits in its queue, or was evicted from it; the message says why.",
    JOB_SUSPENDED: "The condition `Suspended` of a job is true.",
    JOB_RESUMED: "The condition `Suspended` of a job is false again.",
    RESIZED: "The expected number of replicas of an elastic job has changed.",
    RESTARTING: "Replicas are restarted, or pods of an earlier attempt have not ended yet.",
    PREEMPTED: "Pods were preempted by others with a higher priority; no restart is counted.",
    DISRUPTED: "The cluster took pods away (drain, eviction, taint, node shut down or deleted); the message has the "
    "reason of their condition `DisruptionTarget`. No restart is counted.",
    NODE_LOST: "A pod did not end on a node that is not ready or gone, and is deleted by force. No restart is counted.",
    REMADE: "A pod was deleted before anything ran, and is created again; no restart is counted.",
    KEEPING_OUTPUT: "The result is known, and output is still being uploaded.",
    SOURCE_RESOLVED: "The git revision was resolved to a commit.",
    ERROR_IN_POD: "A pod failed.",
    DELETED: "A pod was deleted before it ended.",
    REPLICA_LOST: "A replica is not restarted: no restart is left, or its policy forbids it.",
    OUT_OF_MEMORY: "A replica was OOM-killed twice in a row with the same limit; raise the limit.",
    DEADLINE_EXCEEDED: "The job did not end within `activeDeadlineSeconds`.",
    STARTING_DEADLINE_EXCEEDED: "The job did not start within `startingDeadlineSeconds`.",
    STALLED: "No replica has written a log line for `stallSeconds`.",
    SOURCE_NOT_FOUND: "There is no such git revision, or the repository cannot be read; the message is git's.",
    DELETE_REQUESTED: "A person has deleted the object; the message says who.",
    INVALID: "The spec breaks a rule; its author must change it.",
    REFUSED: "The cluster rejects an object that is needed (quota, policy); Paceline retries.",
    UNREADABLE: "A field is malformed; its author must correct it.",
    TENSORBOARD_REFUSED: "The cluster rejects the TensorBoard of a job; Paceline retries.",
    RESUMED: "A TensorBoard or Notebook continues.",
    IDLE: "A TensorBoard or Notebook is suspended because it was idle.",
    ENDED: "A TensorBoard or Notebook is suspended because its program ended.",
    NOT_USED: "A TensorBoard or Notebook was not used for an hour.",
    REVISION: "An application has a new revision.",
    STOPPED: "An application is stopped.",
    SCHEDULED: "A pod was assigned to a node.",
    FAILED_SCHEDULING: "A pod does not fit now; the message says what is missing.",
    UNSCHEDULABLE: "The condition `PodScheduled` of a pod that does not fit.",
    PREEMPTION_BY_SCHEDULER: "The condition `DisruptionTarget` of a pod that is preempted.",
    OVERCOMMITTED: "A pod asks for more CPUs than are free; on the embedded cluster it runs, and pods share the CPUs.",
    CLAIM_LOST: "The volume of a claim is gone.",
    CLAIM_MISBOUND: "A claim names a volume that belongs to another claim.",
    EXTERNAL_PROVISIONING: "A claim waits for a provisioner that is not part of this cluster.",
    FAILED_BINDING: "No volume fits a claim, and no storage class creates one.",
    PROVISIONING_FAILED: "The volume of a claim could not be created.",
    PROVISIONING_SUCCEEDED: "The volume of a claim was created.",
    VOLUME_FAILED_DELETE: "The folder of a volume was not removed.",
    VOLUME_FAILED_RECYCLE: "A volume has the reclaim policy `Recycle`, which is not supported.",
    VOLUME_MISMATCH: "A claim names a volume that does not fit it.",
    VOLUME_RESIZE_SUCCESSFUL: "A claim has its new size.",
    WAIT_FOR_FIRST_CONSUMER: "A claim waits until a pod uses it.",
    OWNER_REF_INVALID_NAMESPACE: "An owner reference names an object of another namespace.",
}
ALL = frozenset(MEANINGS)

# Reasons of events and statuses that the node agent writes, as the kubelet does; the last three are our own.
NODE: Mapping[str, str] = {
    "BackOff": "A container or an environment is tried again after a pause.",
    "ContainerStatusUnknown": "How a container ended is not known.",
    "ContainersNotInitialized": "Init containers have not ended yet.",
    "ContainersNotReady": "Containers are not ready.",
    "CrashLoopBackOff": "A container ends again and again; the next start comes after a pause.",
    "Created": "A container was created.",
    "Failed": "A container or an environment could not be started.",
    "Killing": "A container is stopped.",
    "PodCompleted": "All containers of a pod have ended with exit code 0.",
    "PodFailed": "A container of a pod has failed.",
    "Pulled": "The environment of an image is there; the message names it.",
    "Pulling": "The environment of an image is being built.",
    "ReadinessGatesNotReady": "A readiness gate of a pod is not true.",
    "Started": "A container was started.",
    "Unhealthy": "A probe has failed.",
    "VolumeFailedDelete": "The folder of a volume was not removed.",
    "HistoryPruned": "Logs of deleted pods were removed to keep to the limits of `history`.",
    "NotRenewed": "No package index can be reached; the environment that was built before is used.",
    "PortNotOpen": "A port of a Service is not available; the message says why and what to do.",
}
