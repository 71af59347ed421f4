"""The closed list of reasons in conditions and events. docs/concepts/rules.md explains every one of them.

A pending pod's own reason is passed on unchanged, so a condition or event may also have any reason of a pod.
"""

# T9k's reason where there is nothing to explain.
NONE = "-"

# Jobs: life cycle.
CREATED = "Created"
NEW_REPLICA = "NewReplica"
START = "Start"
RUNNING = "Running"
NOT_FINISHED = "NotFinished"
SUCCEEDED = "Succeeded"
FAILED = "Failed"
EXPIRED = "Expired"
PAUSED = "Paused"
RESUMING = "Resuming"
SUSPENDED = "Suspended"
JOB_SUSPENDED = "JobSuspended"
JOB_RESUMED = "JobResumed"
RESIZED = "Resized"
RESTARTING = "Restarting"
PREEMPTED = "Preempted"
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

ALL = frozenset(value for name, value in tuple(globals().items()) if name.isupper())

# Reasons of events and statuses that the node agent writes, as the kubelet does; the last three are our own.
NODE = frozenset(
    {
        "BackOff",
        "ContainerStatusUnknown",
        "ContainersNotInitialized",
        "ContainersNotReady",
        "CrashLoopBackOff",
        "Created",
        "Failed",
        "Killing",
        "PodCompleted",
        "PodFailed",
        "Pulled",
        "Pulling",
        "ReadinessGatesNotReady",
        "Started",
        "Unhealthy",
        "VolumeFailedDelete",
        "HistoryPruned",
        "NotRenewed",
        "PortNotOpen",
    }
)
