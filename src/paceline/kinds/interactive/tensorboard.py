"""TensorBoard: shows the metrics of trainings, from logs that outlive the jobs.

In     a spec whose fields already satisfy their bounds.
Out    its faults, the claims it reads, and the pod that shows them.
Never  starts anything: its controller does.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from paceline.errors import Fault
from paceline.kinds.interactive.spec import (
    CLAIMS,
    LogSet,
    OldRunMode,
    TensorBoardSpec,
    check_logs,
    log_claims,
    log_sets,
    run_mode_to_suspend,
)
from paceline.kinds.kind_types import OUTSIDE_COLUMNS, CannotRun, ServiceKind
from paceline.kinds.name_rules import service_name_rules
from paceline.kinds.spec.pod_template import literal
from paceline.model.gang import JobNaming
from paceline.model.interactive import PORT_NAME, SHORT, InteractiveWorkload

PLURAL = "tensorboards"
IMAGE = "t9kpublic/tensorboard:2.17.0"
PORT = 6006
# Part of the digest: earlier versions served below a path, so their pods must be replaced.
LAYOUT = "root-"
# With too little CPU it takes minutes to start. A namespace with a quota accepts only containers that have requests and
# limits of what it counts.
RESOURCES: Mapping[str, Any] = {
    "requests": {"cpu": "100m", "memory": "256Mi"},
    "limits": {"cpu": "2", "memory": "4Gi"},
}
# TensorBoard says of its first page that its encoding is `identity`, which means none. Kubernetes' API server takes
# that for one that it does not know, and closes the page before it has read it (kubernetes/kubernetes#124194).
WITHOUT_IDENTITY = """\
import sys
from tensorboard import main
from tensorboard.backend import http_util

respond = http_util.Respond


def respond_without_identity(*args, **options):
    response = respond(*args, **options)
    if response.headers.get("Content-Encoding") == "identity":
        del response.headers["Content-Encoding"]
    return response


http_util.Respond = respond_without_identity
sys.exit(main.run_main())
"""
NO_WEB = (
    "spec.logDir.http is not supported: TensorBoard cannot read logs from the web; "
    "copy them to a claim and set spec.logDir.pvc"
)


def check(spec: TensorBoardSpec, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between fields."""
    return tuple(check_logs(spec, path))


def expand(spec: TensorBoardSpec, site: JobNaming) -> InteractiveWorkload:
    """Return the pod: TensorBoard with all logs, mounted read-only."""
    if spec.log_dir is not None and spec.log_dir.http is not None:
        raise CannotRun(NO_WEB)
    sets = log_sets(spec)
    claims = dict.fromkeys(logs.claim for logs in sets if logs.claim)
    secrets = dict.fromkeys(logs.secret for logs in sets if logs.secret)
    # Listen only on the pod's address: pods may share the host's network.
    options = (*_options(sets), f"--window_title={site.job}", "--host=$(POD_IP)", f"--port={PORT}")
    container = {
        "name": "tensorboard",
        "image": spec.image or IMAGE,
        "command": ["tensorboard", *options],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "envFrom": [{"secretRef": {"name": name}} for name in secrets],
        "ports": [{"name": PORT_NAME, "containerPort": PORT}],
        "resources": spec.resources or RESOURCES,
        "readinessProbe": {
            "httpGet": {"path": "/", "port": PORT_NAME},
            "periodSeconds": 2,
            "timeoutSeconds": 10,
        },
        "volumeMounts": [
            {"name": f"logs-{index}", "mountPath": f"{CLAIMS}/{claim}", "readOnly": True}
            for index, claim in enumerate(claims)
        ],
    }
    volumes = [
        {"name": f"logs-{index}", "persistentVolumeClaim": {"claimName": claim}} for index, claim in enumerate(claims)
    ]
    pod = {"restartPolicy": "Always", "enableServiceLinks": False, "containers": [container], "volumes": volumes}
    return InteractiveWorkload(
        plural=PLURAL,
        name=site.job,
        namespace=site.namespace,
        stem=site.stem,
        template={"spec": pod},
        port=PORT,
        proxied_command=("python3", "-c", WITHOUT_IDENTITY, *options),
        service_type=spec.service_type,
        digest=LAYOUT,
        is_confinable=True,
        is_suspended=spec.suspend,
        idle_seconds=spec.idle_seconds,
    )


def _options(sets: tuple[LogSet, ...]) -> Iterator[str]:
    """Yield the options for the logs; runs of several locations get the location's label as a prefix."""
    if len(sets) == 1:
        yield f"--logdir={literal(sets[0].path)}"
    else:
        # A name ends at the first colon; the path after it may contain more.
        named = (f"{logs.label.replace(':', '-')}:{logs.path}" for logs in sets)
        yield f"--logdir_spec={literal(','.join(named))}"


KIND = ServiceKind(
    kind="TensorBoard",
    plural=PLURAL,
    short_names=("tb",),
    spec=TensorBoardSpec,
    name_rules=service_name_rules(SHORT[PLURAL]),
    check=check,
    expand=expand,
    claims=log_claims,
    columns=OUTSIDE_COLUMNS,
    old=OldRunMode,
    migrate=run_mode_to_suspend,
)
