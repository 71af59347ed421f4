"""`paceline kube`: run the controllers or the web console for a Kubernetes cluster, and print what to install there."""

from collections.abc import Iterable
from typing import Any

import click

from paceline.apimachinery.meta import Object
from paceline.cli import exit_codes
from paceline.cli.commands.apps.templates import with_values_options
from paceline.cli.output.console import err, out, print_error
from paceline.settings import JSON, TEXT

PULL_POLICY = click.Choice(["", "Always", "IfNotPresent", "Never"])


@click.command()
@click.option(
    "--kubeconfig",
    default="",
    type=click.Path(dir_okay=False),
    help="Kubeconfig file (default: kubectl's kubeconfig, or the cluster of the pod this runs in).",
)
@click.option("--context", default="", help="Kubeconfig context (default: the current one).")
@click.option(
    "-n", "--namespace", default="", help="Namespaces to watch, separated by commas (default: all namespaces)."
)
@click.option(
    "--lease-namespace", default="", help="Namespace of the lease (default: --namespace, or paceline-system)."
)
@click.option(
    "--webhook-bind-address",
    default="",
    metavar="HOST:PORT",
    help="Serve the validating webhook at this address, such as 0.0.0.0:9443 (default: not served).",
)
@click.option("--install-crds", is_flag=True, help="Create or update the CustomResourceDefinitions first.")
@click.option(
    "--metrics-bind-address",
    default="",
    metavar="ADDRESS",
    help="Serve /healthz, /readyz and /metrics at ADDRESS:PORT, or :PORT for all addresses (default: nowhere).",
)
@click.option(
    "--log-format",
    type=click.Choice([TEXT, JSON]),
    default=TEXT,
    help="Format of log lines; with json, everything that is printed is one JSON object per line.",
)
@click.option(
    "--adopt-crds", is_flag=True, help="With --install-crds, also replace CRDs that are someone else's, or newer."
)
@click.option(
    "--podtools-image",
    default="",
    envvar="PACELINE_PODTOOLS_IMAGE",
    help="Image of Paceline's own containers in the pods of jobs, which fetch code and copy data.",
)
@click.option("--podtools-pull-policy", default="", type=PULL_POLICY, help="Pull policy of that image.")
@click.option("--podtools-pull-secrets", default="", help="Pull secrets of that image, separated by commas.")
def controller(**typed: Any) -> int:
    r"""Run the job controller against a Kubernetes cluster.

    Runs until Ctrl-C.

    Of several controllers only the one that holds the lease is active; another takes over when it exits. Jobs keep
    running meanwhile. To run the controller in the cluster, use `paceline kube install`.

    \b
    Examples:
      paceline kube controller --kubeconfig ~/.kube/config --install-crds
      paceline kube controller --kubeconfig ~/.kube/config --context lab --namespace team-a
      paceline kube controller --metrics-bind-address :8080 --log-format json
    """
    import logging
    import os

    from paceline.cluster.external_controllers import Choice, find_access, run_controller
    from paceline.cluster.logs import configure_logging, messages_of
    from paceline.cluster.webhook.server import split_address
    from paceline.errors import PacelineError, ServiceUnavailable
    from paceline.model.gang import PodTools

    if typed["webhook_bind_address"]:
        split_address(typed["webhook_bind_address"])
    choice = Choice(
        access=find_access(typed["kubeconfig"], typed["context"], os.environ),
        namespaces=_words(typed["namespace"]),
        lease_namespace=typed["lease_namespace"],
        installs_kinds=typed["install_crds"],
        webhook=typed["webhook_bind_address"],
        metrics_address=typed["metrics_bind_address"],
        adopts_kinds=typed["adopt_crds"],
        tools=PodTools(
            **({"image": typed["podtools_image"]} if typed["podtools_image"] else {}),
            pull_policy=typed["podtools_pull_policy"],
            pull_secrets=_words(typed["podtools_pull_secrets"]),
        ),
    )
    configure_logging("controller", log_format=typed["log_format"])
    is_json, log = typed["log_format"] == JSON, logging.getLogger("paceline.controller")
    code = exit_codes.OK
    failed: tuple[str, ...] = ()
    try:
        run_controller(choice, log.info if is_json else err().line)
    except* ServiceUnavailable as errors:
        code, failed = exit_codes.NOT_REACHED, messages_of(errors)
    except* PacelineError as errors:
        code, failed = exit_codes.FAILED, messages_of(errors)
    for message in failed:
        for line in (message,) if is_json else message.splitlines():
            (log.error if is_json else print_error)(line)
    return code


def _words(text: str) -> tuple[str, ...]:
    return tuple(word for word in text.split(",") if word)


@click.command()
@click.option("--listen", default="0.0.0.0:8080", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option(
    "--health",
    is_flag=False,
    flag_value="0.0.0.0:8081",
    default="",
    metavar="ADDRESS",
    help="Also answer /healthz, /livez and /readyz at another address (0.0.0.0:8081 if none is given). "
    "/healthz is answered at --listen in any case.",
)
@click.option(
    "--url",
    "urls",
    multiple=True,
    metavar="URL",
    help="Address that people type, such as https://console.example.com (default: http://localhost:PORT, for "
    "`kubectl port-forward`). May be repeated.",
)
@click.option(
    "--apps-host",
    default="",
    metavar="NAME",
    help="Wildcard name for TensorBoards and notebooks, such as '*.console.example.com'.",
)
@click.option(
    "--trust-proxy",
    "proxies",
    multiple=True,
    metavar="CIDR",
    help="Accept the bearer token of a person from an authenticating proxy at this address. May be repeated.",
)
@click.option("--server", default="", metavar="URL", help="API server (default: that of the cluster this pod runs in).")
@click.option(
    "--certificate-authority",
    "ca",
    default="",
    type=click.Path(dir_okay=False),
    help="Certificate authority of the API server (default: the one that Kubernetes mounts into pods).",
)
@click.option(
    "--key-file",
    default="",
    type=click.Path(dir_okay=False),
    help="File with the key of the sessions, the same for all replicas (default: sessions end with the process).",
)
@click.option("--tls-cert", default="", type=click.Path(dir_okay=False), help="Certificate, to serve https itself.")
@click.option("--tls-key", default="", type=click.Path(dir_okay=False), help="Private key of --tls-cert.")
@click.option(
    "--session-hours",
    default=720.0,
    show_default=True,
    type=click.FloatRange(min=0.1, max=8760),
    help="Longest session; it ends earlier with the token.",
)
@click.option("--cluster-name", default="", help="What people call this cluster.")
def console(**typed: Any) -> None:
    r"""Serve the web console to the users of a Kubernetes cluster.

    Runs until Ctrl-C.

    Everybody logs in with a token, such as one of `kubectl create token NAME`, and acts with the rights of this token.
    The console itself needs no rights and no service account token, only the certificate of the API server.

    \b
    Examples:
      paceline kube console --listen 0.0.0.0:8080
      paceline kube console --url https://console.example.com --apps-host '*.console.example.com' --key-file /key/key
    """
    import os
    from pathlib import Path

    from paceline.cluster.console import in_cluster
    from paceline.cluster.logs import configure_logging

    if bool(typed["tls_cert"]) != bool(typed["tls_key"]):
        raise click.UsageError("--tls-cert and --tls-key belong together")
    ca = Path(typed["ca"]) if typed["ca"] else None
    choice = in_cluster.ClusterConsole(
        access=in_cluster.access_of(typed["server"], ca, os.environ),
        listen=in_cluster.parse_address(typed["listen"]),
        health=in_cluster.parse_address(typed["health"]) if typed["health"] else None,
        urls=tuple(in_cluster.parse_url(url) for url in typed["urls"]),
        apps_host=in_cluster.parse_apps_host(typed["apps_host"]) if typed["apps_host"] else "",
        trusted_proxies=tuple(in_cluster.parse_proxy(proxy) for proxy in typed["proxies"]),
        key=in_cluster.read_key(Path(typed["key_file"]), Path.read_bytes) if typed["key_file"] else b"",
        tls=(Path(typed["tls_cert"]), Path(typed["tls_key"])) if typed["tls_cert"] else None,
        session_seconds=typed["session_hours"] * 3600,
        name=typed["cluster_name"],
    )
    configure_logging("console")
    in_cluster.run_in_cluster(choice, err().line)


@click.command()
def crds() -> None:
    r"""Print the CustomResourceDefinitions.

    The output is YAML for `kubectl apply`.

    \b
    Example:
      paceline kube crds | kubectl apply --server-side -f -
    """
    from paceline.cluster.installation.manifests import definitions

    _print(definitions())


@click.command()
@with_values_options
@click.option("-n", "--namespace", default="paceline-system", show_default=True, help="Namespace of the installation.")
def manifests(*, overrides: Any, namespace: str) -> None:
    r"""Print what `paceline kube install` applies.

    The values are those of the Helm chart, charts/paceline.

    \b
    Examples:
      paceline kube manifests --set image=registry.example/paceline:0.1.0 > paceline.yaml
      paceline kube manifests --set image=registry.example/paceline:0.1.0 --set 'namespaces={team-a,team-b}'
    """
    from paceline.cluster.installation import installer
    from paceline.cluster.installation.values import check_values, default_values

    _print(installer.manifests(check_values(overrides.over(default_values())), namespace))


@click.command()
@with_values_options
@click.option(
    "--kubeconfig",
    default="",
    type=click.Path(dir_okay=False),
    help="Kubeconfig file (default: kubectl's kubeconfig).",
)
@click.option("--context", default="", help="Kubeconfig context (default: the current one).")
@click.option("-n", "--namespace", default="paceline-system", show_default=True, help="Namespace of the installation.")
def install(*, overrides: Any, kubeconfig: str, context: str, namespace: str) -> None:
    r"""Install Paceline in a Kubernetes cluster, or update it.

    Creates the CustomResourceDefinitions, the permissions, two controllers and the web console. Jobs keep running
    during an update. The values are those of the Helm chart, charts/paceline; `paceline kube manifests` prints what is
    applied. CRDs of the same name that someone else created, and newer ones, are not replaced.

    \b
    Examples:
      paceline kube install --set image=registry.example/paceline:0.1.0
      paceline kube install -f values.yaml --context lab
    """
    import os

    from paceline.cluster.external_controllers import find_access
    from paceline.cluster.installation import installer
    from paceline.cluster.installation.values import check_values, default_values

    values = check_values(overrides.over(default_values()))
    installer.install(find_access(kubeconfig, context, os.environ), values, namespace, err().line)


def _print(objects: Iterable[Object]) -> None:
    from paceline.cli.output.yaml_text import dump

    for manifest in objects:
        out().document(f"---\n{dump(manifest)}")
