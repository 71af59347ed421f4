"""The labels and annotations that tie pods to jobs; T9k's own names first, ours where T9k has none."""

OWNER_NAME = "tensorstack.dev/owner-name"
OWNER_KIND = "tensorstack.dev/owner-kind"
COMPONENT = "tensorstack.dev/component"
COMPONENT_TYPE = "tensorstack.dev/component-type"
JOB_ROLE = "job-role"
REPLICA_TYPE = "replica-type"
REPLICA_INDEX = "replica-index"

# What T9k's scheduler reads.
QUEUE = "scheduler.tensorstack.dev/queue"
QUEUE_GROUP = "scheduler.tensorstack.dev/group-name"
QUEUE_ROLE = "scheduler.tensorstack.dev/role"

# What a pod does that is no member of its job, but does something for all of them.
ERRAND = "paceline.dev/errand"
# Which try of its member a pod is, counted from 0.
ATTEMPT = "paceline.dev/attempt"
# How many pods of one job must be placed together; none is placed before all are there (annotation).
GANG_SIZE = "paceline.dev/gang-size"
# Asks for a restart of a job: each new text means one (annotation of the job).
RESTART = "paceline.dev/restart"
# By which signal a pod's main containers are asked to stop, whatever their own is: SIGINT (annotation of the pod).
STOP_SIGNAL = "paceline.dev/stop-signal"
# Of which job this one is a copy, when it was run once more (annotation of the job).
COPY_OF = "paceline.dev/copy-of"
# Who goes first among jobs that wait for the same queue, from 0 to 100 (annotation).
QUEUE_PRIORITY = "paceline.dev/queue-priority"
# On a service account: `write` lets its pods write in their namespace, not only look around (annotation).
RIGHTS = "paceline.dev/rights"
# When somebody last asked for a TensorBoard or Notebook to go on, or looked into it where requests are not counted
# (annotation).
OPENED_AT = "paceline.dev/opened-at"
# Of which application a job, a record or a claim is, and of which revision of it.
APP = "paceline.dev/app"
REVISION = "paceline.dev/revision"
# By which name people know a claim or the secret of a bucket that holds data (label); where it is (annotation).
VOLUME = "paceline.dev/volume"
LOCATION = "paceline.dev/location"
# By which name people know a config map that says where code is (label).
CODE = "paceline.dev/code"
