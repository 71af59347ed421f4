"""Explorer: serves the files and training curves of one claim, and sleeps while idle.

In     a spec whose fields already satisfy their bounds.
Out    its faults, the claim it serves, and the pod that serves it.
Never  starts anything: its controller does.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from paceline.apimachinery.field_errors import invalid
from paceline.apimachinery.name_validation import subdomain_problem
from paceline.errors import Fault
from paceline.kinds.interactive.spec import OldRunMode, run_mode_to_suspend
from paceline.kinds.kind_types import Claim, ServiceKind
from paceline.kinds.pod_injection import PROGRAM
from paceline.kinds.spec.fields import Count, Part, about
from paceline.kinds.spec.run_policy import Scheduler
from paceline.model.gang import JobNaming
from paceline.model.interactive import PORT_NAME, InteractiveWorkload, secret_name

PLURAL = "explorers"
PORT = 8080
# Where the claim and the token are mounted.
ROOT, TOKEN_FOLDER, TOKEN_VOLUME = "/volume", "/paceline-token", "token"
DEFAULT_IDLE_SECONDS = 600
# A namespace with a quota accepts only containers that have requests and limits of what it counts.
RESOURCES: Mapping[str, Any] = {
    "requests": {"cpu": "10m", "memory": "64Mi"},
    "limits": {"cpu": "1", "memory": "512Mi"},
}
# It must read and write the files of any user, and give new ones to the owner of their folder; nothing else.
CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER")


class ExplorerSpec(Part, frozen=True, kw_only=True):
    """The files of a claim."""

    storage_type: Annotated[Literal["pvc"], about("Type of the storage; only pvc.")] = "pvc"
    storage_name: Annotated[str, about("Name of the claim.")]
    suspend: Annotated[bool, about("Delete the pod and keep the object; may change at any time.")] = False
    idle_seconds: Annotated[
        Count, about("Seconds without a request after which its pod ends; the next use starts it again. 0: never.")
    ] = DEFAULT_IDLE_SECONDS
    scheduler: Annotated[Scheduler | None, about("Scheduler of the pod.")] = None


def check(spec: ExplorerSpec, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between fields."""
    problem = subdomain_problem(spec.storage_name)
    return (invalid(f"{path}.storageName", spec.storage_name, problem),) if problem else ()


def claims(spec: ExplorerSpec, path: str) -> tuple[Claim, ...]:
    """Return the claim, with the path that names it."""
    return ((f"{path}.storageName", spec.storage_name),)


def expand(spec: ExplorerSpec, site: JobNaming) -> InteractiveWorkload:
    """Return the pod: our file server with the claim and its token, and no credentials of the cluster."""
    container = {
        "name": "files",
        **site.tools.image_fields,
        # Listen only on the pod's address: pods may share the host's network.
        "command": [
            *(*PROGRAM, "files", f"--root={ROOT}", "--host=$(POD_IP)", f"--port={PORT}"),
            *(f"--idle-seconds={spec.idle_seconds}", f"--secret={TOKEN_FOLDER}"),
        ],
        "env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "ports": [{"name": PORT_NAME, "containerPort": PORT}],
        "resources": RESOURCES,
        "readinessProbe": {"httpGet": {"path": "/healthz", "port": PORT_NAME}, "periodSeconds": 1, "timeoutSeconds": 5},
        "securityContext": {
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": list(CAPABILITIES)},
        },
        "volumeMounts": [
            {"name": "volume", "mountPath": ROOT},
            {"name": TOKEN_VOLUME, "mountPath": TOKEN_FOLDER, "readOnly": True},
        ],
    }
    pod = {
        # A failed server is restarted; exit code 0 means that it was idle.
        "restartPolicy": "OnFailure",
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        **site.tools.pull_secret_fields({}),
        "volumes": [
            {"name": "volume", "persistentVolumeClaim": {"claimName": spec.storage_name}},
            {"name": TOKEN_VOLUME, "secret": {"secretName": secret_name(site.stem)}},
        ],
    }
    return InteractiveWorkload(
        plural=PLURAL,
        name=site.job,
        namespace=site.namespace,
        stem=site.stem,
        template={"spec": pod},
        port=PORT,
        is_suspended=spec.suspend,
        idle_seconds=spec.idle_seconds,
        ends_by_itself=True,
        has_token=True,
        is_confinable=True,
    )


KIND = ServiceKind(
    kind="Explorer",
    plural=PLURAL,
    short_names=("ex",),
    spec=ExplorerSpec,
    check=check,
    expand=expand,
    claims=claims,
    old=OldRunMode,
    migrate=run_mode_to_suspend,
)
