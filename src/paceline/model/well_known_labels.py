"""Labels and annotations of our objects: T9k's names where they exist, else our own."""

OWNER_NAME = "tensorstack.dev/owner-name"
OWNER_KIND = "tensorstack.dev/owner-kind"
COMPONENT = "tensorstack.dev/component"
COMPONENT_TYPE = "tensorstack.dev/component-type"
JOB_ROLE = "job-role"
REPLICA_TYPE = "replica-type"
REPLICA_INDEX = "replica-index"

# Read by T9k's scheduler.
QUEUE = "scheduler.tensorstack.dev/queue"
QUEUE_GROUP = "scheduler.tensorstack.dev/group-name"
QUEUE_ROLE = "scheduler.tensorstack.dev/role"

# Purpose of an auxiliary pod, which is not a member of its job.
ERRAND = "paceline.dev/errand"
# Number of the attempt of its member that a pod is, from 0.
ATTEMPT = "paceline.dev/attempt"
# Number of pods of a job that are scheduled together; none is scheduled before all exist (annotation).
GANG_SIZE = "paceline.dev/gang-size"
# Requests a restart of a job: every new value requests one (annotation of the job).
RESTART = "paceline.dev/restart"
# The name of the person who asked for the current spec or the last restart (annotation of jobs, services and
# applications). The embedded API server sets it; on other clusters the client does.
ASKED_BY = "paceline.dev/asked-by"
# What happens to pods on a node that is not ready and cannot report their end: `Restart` elsewhere, or `Wait` until the
# node is back, gone or out of service (annotation of the job).
NODE_LOST = "paceline.dev/node-lost"
# Stop signal of a pod's main containers, instead of their own, such as SIGINT (annotation of the pod).
STOP_SIGNAL = "paceline.dev/stop-signal"
# The job that this one is a rerun of (annotation of the job).
COPY_OF = "paceline.dev/copy-of"
# Priority among the jobs of a queue, from 0 to 100 (annotation).
QUEUE_PRIORITY = "paceline.dev/queue-priority"
# On a service account: `write` allows its pods to write in their namespace, not only to read (annotation).
RIGHTS = "paceline.dev/rights"
# When a TensorBoard or Notebook was last opened or resumed by a user, for clusters where requests are not counted
# (annotation).
OPENED_AT = "paceline.dev/opened-at"
# The application and revision that a job, a record or a claim belongs to.
APP = "paceline.dev/app"
REVISION = "paceline.dev/revision"
# The uid of the job that a record is about (label).
JOB_UID = "paceline.dev/job-uid"
# User-visible name of a claim or of the Secret of a bucket with data (label); its location (annotation).
VOLUME = "paceline.dev/volume"
LOCATION = "paceline.dev/location"
# User-visible name of a ConfigMap that describes a code repository (label).
CODE = "paceline.dev/code"
