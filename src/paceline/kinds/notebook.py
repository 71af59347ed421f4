"""Notebook: a JupyterLab on a claim, to look into data and to write the script that the next job runs.

In     a spec whose fields already satisfy their bounds.
Out    its faults, the claims it mounts, and the pod with JupyterLab in it.
Never  starts anything: its controller does.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from paceline.errors import Fault
from paceline.kinds.draft import Draft
from paceline.kinds.fields import Part, Template, about
from paceline.kinds.kind import CannotRun, Claim, ServiceKind
from paceline.kinds.schedule import Scheduler
from paceline.kinds.suspend import DEFAULT_IDLE_SECONDS, IdleSeconds, run_mode_to_suspend
from paceline.kinds.template import Words, check_template, claims_in, literal, with_container
from paceline.objects.gang import Site
from paceline.objects.window import PORT_NAME, Window, prefix_of, secret_name

PLURAL = "notebooks"
CONTAINER = "notebook"
PORT = 8888
# Where T9k's notebooks have the claim that people work in.
WORKING = "/t9k/mnt"
TOKEN_VOLUME, TOKEN_FOLDER = "notebook-token", "/run/secrets/paceline.dev/notebook"
# JupyterLab looks at its kernels and terminals at most every so many seconds.
CULL_SECONDS = 300
PAGE_FOLDER = "/tmp/jupyter-page"  # noqa: S108 - the pod's own
# Its page would hold the token, and send it where proxies expect that of the cluster. Whoever has opened the page with
# the token has a cookie, which does as well. It also asks every newcomer for leave to fetch news from outside.
PAGE = '{"token": "", "disabledExtensions": {"@jupyterlab/apputils-extension:announcements": true}}'
QUIET_PAGE = f"""mkdir -p "$0" && echo '{PAGE}' >"$0/page_config.json" && exec "$@\""""
NO_RSTUDIO = "RStudio is not run here, only JupyterLab; set spec.type to jupyter"


class Ssh(Part, frozen=True, kw_only=True, rename=None):
    """Logging in from outside. Read, but not acted on: `kubectl exec` opens a shell in the notebook."""

    enabled: Annotated[bool, about("Whether an SSH server runs in the notebook.")] = False
    service_type: Annotated[str, about("Type of the service in front of it.")] | None = msgspec.field(
        default=None, name="serviceType"
    )
    # T9k's spelling, on the wire as here.
    authorized_keys: Annotated[Words, about("Secrets with the public keys that may log in.")] = ()


class NotebookSpec(Part, frozen=True, kw_only=True):
    """A JupyterLab in the browser, with a terminal, on a claim."""

    type: Annotated[Literal["jupyter", "Jupyter", "RStudio"], about("Which program it is; jupyter is run here.")] = (
        "jupyter"
    )
    template: Template
    ssh: Annotated[Ssh, about("Logging in from outside.")] | None = None
    suspend: Annotated[bool, about("Stop it and keep the object; may change at any time.")] = False
    idle_seconds: IdleSeconds = DEFAULT_IDLE_SECONDS
    scheduler: Annotated[Scheduler, about("Who places the pod.")] | None = None


class OldNotebook(Part, frozen=True, kw_only=True):
    """What was written until 2024."""

    run_mode: Annotated[Literal["running", "paused"], about("Old form of suspend.")] | None = None


def check(spec: NotebookSpec, path: str) -> tuple[Fault, ...]:
    """Name what breaks a rule between fields."""
    return tuple(check_template(spec.template, f"{path}.template"))


def claims(spec: NotebookSpec, path: str) -> tuple[Claim, ...]:
    """Give the claims it mounts, each with the path that names it."""
    return tuple(claims_in(spec.template, f"{path}.template"))


def expand(spec: NotebookSpec, site: Site) -> Window:
    """Spell out the pod: the author's, with JupyterLab as the program of its notebook container."""
    if spec.type == "RStudio":
        raise CannotRun(NO_RSTUDIO)
    containers = spec.template["spec"]["containers"]
    index = next((place for place, each in enumerate(containers) if each["name"] == CONTAINER), 0)
    template = with_container(spec.template, index, **_program(containers[index], spec, site))
    token = {"name": TOKEN_VOLUME, "secret": {"secretName": secret_name(site.stem)}}
    pod = template["spec"]
    # What fails is started again in its place; what ends well was shut down or has culled itself.
    pod = {**pod, "restartPolicy": "OnFailure", "volumes": [*(pod.get("volumes") or ()), token]}
    return Window(
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


def _program(container: Mapping[str, Any], spec: NotebookSpec, site: Site) -> Mapping[str, Any]:
    """Give what the notebook container lacks; a command of its author's stays, and is told what ours would be."""
    prefix = prefix_of(PLURAL, site.namespace, site.job)
    mounts = container.get("volumeMounts") or ()
    has_working = any(each["mountPath"].rstrip("/") == WORKING for each in mounts)
    folder = container.get("workingDir") or (WORKING if has_working else "")
    has_program = _has_program(container)
    token = {"name": TOKEN_VOLUME, "mountPath": TOKEN_FOLDER, "readOnly": True}
    ours: dict[str, Any] = {
        "env": [*_env(prefix), *(container.get("env") or ()), *_usual(container, site, has_working=has_working)],
        "ports": _ports(container),
        "volumeMounts": [*mounts, token],
        "readinessProbe": container.get("readinessProbe") or _readiness(container, "" if has_program else prefix),
    }
    if has_program:
        return ours
    # Terminals begin where their server began.
    return {**ours, "workingDir": folder or None, "command": _command(prefix, folder, spec.idle_seconds)}


def _command(prefix: str, folder: str, idle_seconds: int) -> list[str]:
    idle = {
        "ServerApp.shutdown_no_activity_timeout": idle_seconds,
        "MappingKernelManager.cull_idle_timeout": idle_seconds,
        "MappingKernelManager.cull_interval": min(CULL_SECONDS, idle_seconds),
        "TerminalManager.cull_inactive_timeout": idle_seconds,
        "TerminalManager.cull_interval": min(CULL_SECONDS, idle_seconds),
    }
    settings = {
        # Only at the pod's own address, and at no other port than the one that is announced.
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
    """Give what JupyterLab must know; its token is in a file, because everybody sees arguments and variables."""
    return [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": "NB_PREFIX", "value": prefix},
        {"name": "JUPYTER_TOKEN_FILE", "value": f"{TOKEN_FOLDER}/token"},
        # Not below the home, which may be a claim that others mount: the token is written there too.
        {"name": "JUPYTER_RUNTIME_DIR", "value": "/tmp/jupyter"},  # noqa: S108 - the pod's own
        {"name": "JUPYTER_CONFIG_PATH", "value": PAGE_FOLDER},
    ]


def _usual(container: Mapping[str, Any], site: Site, *, has_working: bool) -> list[dict[str, str]]:
    """Give T9k's variables, but for those that the author has set."""
    taken = {each["name"] for each in container.get("env") or ()}
    limits = (container.get("resources") or {}).get("limits") or {}
    usual = {"T9K_NAMESPACE": site.namespace}
    if has_working:
        usual["HOME"] = WORKING
    if not any(name.startswith("nvidia.com/") for name in limits):
        # An image made for GPUs would else see all of the machine's.
        usual["NVIDIA_VISIBLE_DEVICES"] = "void"
    return [{"name": name, "value": value} for name, value in usual.items() if name not in taken]


def _ports(container: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Give the container's ports; JupyterLab's too, unless another program runs there that has others."""
    own = list(container.get("ports") or ())
    is_told = any(each["containerPort"] == PORT for each in own) or (own and _has_program(container))
    return own if is_told else [*own, {"name": PORT_NAME, "containerPort": PORT}]


def _port(container: Mapping[str, Any]) -> int:
    """Tell at which port the pages are."""
    if not _has_program(container):
        return PORT
    ports = {each.get("name"): int(each["containerPort"]) for each in reversed(_ports(container))}
    return ports.get(PORT_NAME) or next(reversed(ports.values()))


def _has_program(container: Mapping[str, Any]) -> bool:
    return bool(container.get("command") or container.get("args"))


def _readiness(container: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Ask JupyterLab for its version, which takes no token; of another program only whether it listens."""
    asked: dict[str, Any] = {"tcpSocket": {"port": _port(container)}}
    if prefix:
        asked = {"httpGet": {"path": f"{prefix}/api", "port": PORT}}
    return {**asked, "periodSeconds": 2, "timeoutSeconds": 10}


def modernise(draft: Draft) -> None:
    """Turn `runMode: paused` into `suspend: true`."""
    run_mode_to_suspend(draft)


KIND = ServiceKind(
    kind="Notebook",
    plural=PLURAL,
    short_names=("nb",),
    spec=NotebookSpec,
    check=check,
    expand=expand,
    claims=claims,
    old=OldNotebook,
    modernise=modernise,
)
