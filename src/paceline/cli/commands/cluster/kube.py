"""`paceline kube`: run the controllers against a Kubernetes cluster, and print what to install there."""

from typing import Any

import click

from paceline.cli import exit_codes
from paceline.cli.output.console import err, out, print_error


@click.command()
@click.option(
    "--kubeconfig",
    default="",
    type=click.Path(dir_okay=False),
    help="Kubeconfig file (default: kubectl's kubeconfig, or the cluster of the pod this runs in).",
)
@click.option("--context", default="", help="Kubeconfig context (default: the current one).")
@click.option("-n", "--namespace", default="", help="Namespace to watch (default: all namespaces).")
@click.option(
    "--lease-namespace", default="", help="Namespace of the lease (default: --namespace, or paceline-system)."
)
@click.option("--install-crds", is_flag=True, help="Create or update the CustomResourceDefinitions first.")
def controller(**typed: Any) -> int:
    r"""Run the job controller against a Kubernetes cluster.

    Runs until Ctrl-C.

    Of several controllers only the one that holds the lease is active; another takes over when it exits. Jobs keep
    running meanwhile. To run the controller in the cluster, use `paceline kube crds --with-controller IMAGE`.

    \b
    Examples:
      paceline kube controller --kubeconfig ~/.kube/config --install-crds
      paceline kube controller --kubeconfig ~/.kube/config --context lab --namespace team-a
    """
    import os

    from paceline.cluster.external_controllers import Choice, find_access, run_controller
    from paceline.cluster.logs import configure_logging, messages_of
    from paceline.errors import PacelineError, ServiceUnavailable

    choice = Choice(
        access=find_access(typed["kubeconfig"], typed["context"], os.environ),
        namespace=typed["namespace"],
        lease_namespace=typed["lease_namespace"],
        installs_kinds=typed["install_crds"],
    )
    configure_logging("controller")
    code = exit_codes.OK
    failed: tuple[str, ...] = ()
    try:
        run_controller(choice, err().line)
    except* ServiceUnavailable as errors:
        code, failed = exit_codes.NOT_REACHED, messages_of(errors)
    except* PacelineError as errors:
        code, failed = exit_codes.FAILED, messages_of(errors)
    for message in failed:
        for line in message.splitlines():
            print_error(line)
    return code


@click.command()
@click.option(
    "--with-controller",
    "image",
    metavar="IMAGE",
    help="Also print a Deployment that runs `paceline kube controller` from IMAGE, with the RBAC rules it needs.",
)
@click.option(
    "-n", "--namespace", default="", help="With --with-controller, restrict the controller to this namespace."
)
def crds(*, image: str | None, namespace: str) -> None:
    r"""Print the CustomResourceDefinitions.

    The output is YAML for `kubectl apply`.

    \b
    Examples:
      paceline kube crds | kubectl apply --server-side -f -
      paceline kube crds --with-controller registry.example/paceline:0.1 | kubectl apply --server-side -f -
    """
    from paceline.cli.output.yaml_text import dump
    from paceline.cluster.install_manifests import controller_manifests, definitions

    if namespace and image is None:
        raise click.UsageError("--namespace restricts the controller; add --with-controller IMAGE")
    if image is not None and not image.strip():
        raise click.UsageError("--with-controller needs the name of an image that has the `paceline` command")
    objects = [*definitions(), *(controller_manifests(image, namespace) if image else ())]
    for manifest in objects:
        out().document(f"---\n{dump(manifest)}")
