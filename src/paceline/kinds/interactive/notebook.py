"""Notebook: JupyterLab on a claim, to explore data and to write the script of the next job.

In     a spec whose fields already satisfy their bounds.
Out    its faults, the claims it mounts, and the pod that runs JupyterLab.
Never  starts anything: its controller does.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from paceline.errors import Fault
from paceline.kinds.interactive.spec import DEFAULT_IDLE_SECONDS, IdleSeconds, OldRunMode, run_mode_to_suspend
from paceline.kinds.kind_types import CannotRun, Claim, ServiceKind
from paceline.kinds.name_rules import service_name_rules
from paceline.kinds.spec.fields import Part, Template, about
from paceline.kinds.spec.pod_template import Words, check_template, claims_in, literal, with_container
from paceline.kinds.spec.run_policy import Scheduler
from paceline.model.gang import JobNaming
from paceline.model.interactive import PORT_NAME, SHORT, InteractiveWorkload, prefix_of, secret_name

PLURAL = "notebooks"
CONTAINER = "notebook"
PORT = 8888
# Path at which T9k's notebooks mount the user's working directory.
WORKING = "/t9k/mnt"
TOKEN_VOLUME, TOKEN_FOLDER = "notebook-token", "/run/secrets/paceline.dev/notebook"
# Interval in which JupyterLab looks for idle kernels and terminals.
CULL_SECONDS = 300
PAGE_FOLDER = "/tmp/jupyter-page"  # noqa: S108 - the pod's own
# By default the page contains the token, and sends it in the header in which proxies expect the cluster's token. The
# cookie of a browser that opened the page with the token is enough. Announcements would ask every new user for
# permission to fetch news from the internet.
PAGE = '{"token": "", "disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}'
QUIET_PAGE = f"""mkdir -p "$0" && echo '{PAGE}' >"$0/page_config.json" && exec "$@\""""
NO_RSTUDIO = "RStudio is not supported, only JupyterLab; set spec.type to jupyter"


class Ssh(Part, frozen=True, kw_only=True, rename=None):
    """SSH access. It is accepted but has no effect: `kubectl exec` opens a shell in the notebook."""

    enabled: Annotated[bool, about("Whether an SSH server runs in the notebook. Not used.")] = False
    service_type: Annotated[str | None, about("Type of the Service for SSH. Not used.")] = msgspec.field(
        default=None, name="serviceType"
    )
    # T9k's spelling, also on the wire.
    authorized_keys: Annotated[Words, about("Secrets with the public keys that may log in. Not used.")] = ()


class NotebookSpec(Part, frozen=True, kw_only=True):
    """JupyterLab with a terminal, in the browser, on a claim."""

    type: Annotated[
        Literal["jupyter", "Jupyter", "RStudio"], about("Program of the notebook; only jupyter is supported.")
    ] = "jupyter"
    template: Template
    ssh: Annotated[Ssh | None, about("SSH access. Not used.")] = None
    suspend: Annotated[bool, about("Delete the pod and keep the object; may change at any time.")] = False
    idle_seconds: IdleSeconds = DEFAULT_IDLE_SECONDS
    scheduler: Annotated[Scheduler | None, about("Scheduler of the pod.")] = None


def check(spec: NotebookSpec, path: str) -> tuple[Fault, ...]:
    """Return the broken rules between fields."""
    return tuple(check_template(spec.template, f"{path}.template"))


def claims(spec: NotebookSpec, path: str) -> tuple[Claim, ...]:
    """Return the claims it mounts, each with the path that names it."""
    return tuple(claims_in(spec.template, f"{path}.template"))


def expand(spec: NotebookSpec, site: JobNaming) -> InteractiveWorkload:
    """Return the pod: that of the template, with JupyterLab as the command of its notebook container."""
    if spec.type == "RStudio":
        raise CannotRun(NO_RSTUDIO)
    containers = spec.template["spec"]["containers"]
    index = next((position for position, container in enumerate(containers) if container["name"] == CONTAINER), 0)
    template = with_container(spec.template, index, **_program(containers[index], spec, site))
    token = {"name": TOKEN_VOLUME, "secret": {"secretName": secret_name(site.stem)}}
    pod = template["spec"]
    # A failed JupyterLab is restarted; exit code 0 means that a user shut it down or that it was idle for too long.
    pod = {**pod, "restartPolicy": "OnFailure", "volumes": [*(pod.get("volumes") or ()), token]}
    return InteractiveWorkload(
        plural=PLURAL,
        name=site.job,
        namespace=site.namespace,
        stem=site.stem,
        template={**template, "spec": pod},
        port=_port(containers[index]),
        page="lab",
        is_suspended=spec.suspend,
        idle_seconds=spec.idle_seconds,
        ends_by_itself=True,
        has_token=True,
    )


def _program(container: Mapping[str, Any], spec: NotebookSpec, site: JobNaming) -> Mapping[str, Any]:
    """Return the fields to set in the notebook container; a command of the template is kept, and gets our variables."""
    prefix = prefix_of(PLURAL, site.namespace, site.job)
    mounts = container.get("volumeMounts") or ()
    has_working = any(mount["mountPath"].rstrip("/") == WORKING for mount in mounts)
    folder = container.get("workingDir") or (WORKING if has_working else "")
    has_program = _has_program(container)
    token = {"name": TOKEN_VOLUME, "mountPath": TOKEN_FOLDER, "readOnly": True}
    fields: dict[str, Any] = {
        "env": [*_env(prefix), *(container.get("env") or ()), *_usual(container, site, has_working=has_working)],
        "ports": _ports(container),
        "volumeMounts": [*mounts, token],
        "readinessProbe": container.get("readinessProbe") or _readiness(container, "" if has_program else prefix),
    }
    if has_program:
        return fields
    # Terminals start in the working directory of the server.
    return {**fields, "workingDir": folder or None, "command": _command(prefix, folder, spec.idle_seconds)}


def _command(prefix: str, folder: str, idle_seconds: int) -> list[str]:
    idle = {
        "ServerApp.shutdown_no_activity_timeout": idle_seconds,
        "MappingKernelManager.cull_idle_timeout": idle_seconds,
        "MappingKernelManager.cull_interval": min(CULL_SECONDS, idle_seconds),
        "TerminalManager.cull_inactive_timeout": idle_seconds,
        "TerminalManager.cull_interval": min(CULL_SECONDS, idle_seconds),
    }
    settings = {
        # Listen only on the pod's address, and on no other port than the one that the Service uses.
        "ServerApp.ip": "$(POD_IP)",
        "ServerApp.port": PORT,
        "ServerApp.port_retries": 0,
        "ServerApp.base_url": f"{prefix}/",
        "ServerApp.allow_remote_access": True,
        "ServerApp.allow_root": True,
        **({"ServerApp.root_dir": literal(folder)} if folder else {}),
        **(idle if idle_seconds else {}),
    }
    program = ["jupyter", "lab", "--no-browser", *(f"--{name}={value}" for name, value in settings.items())]
    return ["sh", "-c", QUIET_PAGE, f"{PAGE_FOLDER}/labconfig", *program]


def _env(prefix: str) -> list[dict[str, Any]]:
    """Return variables for JupyterLab; the token is in a file, because others can see arguments and variables."""
    return [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "NB_PREFIX", "value": prefix},
        {"name": "JUPYTER_TOKEN_FILE", "value": f"{TOKEN_FOLDER}/token"},
        # Not below the home directory, which may be a shared claim: JupyterLab writes the token there.
        {"name": "JUPYTER_RUNTIME_DIR", "value": "/tmp/jupyter"},  # noqa: S108 - the pod's own
        {"name": "JUPYTER_CONFIG_PATH", "value": PAGE_FOLDER},
    ]


def _usual(container: Mapping[str, Any], site: JobNaming, *, has_working: bool) -> list[dict[str, str]]:
    """Return T9k's variables, except for those that the template sets."""
    existing = {variable["name"] for variable in container.get("env") or ()}
    limits = (container.get("resources") or {}).get("limits") or {}
    usual = {"T9K_NAMESPACE": site.namespace}
    if has_working:
        usual["HOME"] = WORKING
    if not any(name.startswith("nvidia.com/") for name in limits):
        # Otherwise an image for GPUs would see all GPUs of the node.
        usual["NVIDIA_VISIBLE_DEVICES"] = "void"
    return [{"name": name, "value": value} for name, value in usual.items() if name not in existing]


def _ports(container: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the container's ports, and JupyterLab's unless the container runs another program with its own ports."""
    ports = list(container.get("ports") or ())
    is_complete = any(port["containerPort"] == PORT for port in ports) or (ports and _has_program(container))
    return ports if is_complete else [*ports, {"name": PORT_NAME, "containerPort": PORT}]


def _port(container: Mapping[str, Any]) -> int:
    """Return the port of the HTTP server."""
    if not _has_program(container):
        return PORT
    ports = {port.get("name"): int(port["containerPort"]) for port in reversed(_ports(container))}
    return ports.get(PORT_NAME) or next(reversed(ports.values()))


def _has_program(container: Mapping[str, Any]) -> bool:
    return bool(container.get("command") or container.get("args"))


def _readiness(container: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Return the readiness probe: JupyterLab's version, which needs no token, or the open port of another program."""
    check: dict[str, Any] = {"tcpSocket": {"port": _port(container)}}
    if prefix:
        check = {"httpGet": {"path": f"{prefix}/api", "port": PORT}}
    return {**check, "periodSeconds": 2, "timeoutSeconds": 10}


KIND = ServiceKind(
    kind="Notebook",
    plural=PLURAL,
    short_names=("nb",),
    spec=NotebookSpec,
    name_rules=service_name_rules(SHORT[PLURAL]),
    check=check,
    expand=expand,
    claims=claims,
    old=OldRunMode,
    migrate=run_mode_to_suspend,
)
