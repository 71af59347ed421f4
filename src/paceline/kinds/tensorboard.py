"""TensorBoard: curves of trainings, over logs that outlive the jobs that wrote them.

In     a spec whose fields already satisfy their bounds.
Out    its faults, the claims it reads, and the pod that shows them.
Never  starts anything: its controller does.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from paceline.errors import Fault
from paceline.kinds.draft import Draft
from paceline.kinds.fields import Part, about
from paceline.kinds.kind import OUTSIDE_COLUMNS, CannotRun, ServiceKind
from paceline.kinds.suspend import run_mode_to_suspend
from paceline.kinds.template import literal
from paceline.kinds.tensorboardspec import CLAIMS, LogSet, TensorBoardSpec, check_logs, log_claims, log_sets
from paceline.objects.gang import Site
from paceline.objects.window import PORT_NAME, Window

PLURAL = "tensorboards"
IMAGE = "t9kpublic/tensorboard:2.17.0"
PORT = 6006
# Told in the digest: pods of earlier versions lay below a path, and are made anew.
LAYOUT = "root-"
# A limit for memory only: with too little CPU it takes minutes to start.
RESOURCES: Mapping[str, Any] = {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "4Gi"}}
NO_WEB = (
    "logs on the web are not read: TensorBoard itself cannot; copy them into a claim and name it in spec.logDir.pvc"
)


class OldTensorBoard(Part, frozen=True, kw_only=True):
    """What was written until 2024."""

    run_mode: Annotated[Literal["running", "paused"], about("Old form of suspend.")] | None = None


def check(spec: TensorBoardSpec, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between fields."""
    return tuple(check_logs(spec, path))


def expand(spec: TensorBoardSpec, site: Site) -> Window:
    """Spell out the pod: TensorBoard over all places with logs, which it cannot change."""
    if spec.log_dir is not None and spec.log_dir.http is not None:
        raise CannotRun(NO_WEB)
    sets = log_sets(spec)
    claims = dict.fromkeys(each.claim for each in sets if each.claim)
    secrets = dict.fromkeys(each.secret for each in sets if each.secret)
    options = (*_options(sets), f"--window_title={site.job}")
    container = {
        "name": "tensorboard",
        "image": spec.image or IMAGE,
        # Only at the pod's own address: where pods share the machine's network, nobody else is to look in.
        "command": ["tensorboard", *options, "--host=$(POD_IP)", f"--port={PORT}"],
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
    return Window(
        plural=PLURAL,
        name=site.job,
        namespace=site.namespace,
        stem=site.stem,
        template={"spec": pod},
        port=PORT,
        service_type=spec.service_type,
        digest=LAYOUT,
        is_suspended=spec.suspend,
        idle_seconds=spec.idle_seconds,
    )


def _options(sets: tuple[LogSet, ...]) -> Iterator[str]:
    """Say where the logs lie; the runs of several places are told apart by what their place is called."""
    if len(sets) == 1:
        yield f"--logdir={literal(sets[0].path)}"
    else:
        # A name ends at the first colon; what comes after it may have others.
        named = (f"{each.label.replace(':', '-')}:{each.path}" for each in sets)
        yield f"--logdir_spec={literal(','.join(named))}"


def modernise(draft: Draft) -> None:
    """Turn `runMode: paused` into `suspend: true`."""
    run_mode_to_suspend(draft)


KIND = ServiceKind(
    kind="TensorBoard",
    plural=PLURAL,
    short_names=("tb",),
    spec=TensorBoardSpec,
    check=check,
    expand=expand,
    claims=log_claims,
    columns=OUTSIDE_COLUMNS,
    old=OldTensorBoard,
    modernise=modernise,
)
