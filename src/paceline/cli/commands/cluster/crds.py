"""`paceline crds`: print the CustomResourceDefinitions for `kubectl apply`."""

import click

from paceline.cli import exit_codes
from paceline.cli.output.console import out


@click.command()
@click.option(
    "--with-controller",
    "image",
    metavar="IMAGE",
    help="Also print a Deployment that runs `paceline controller` from IMAGE, with the RBAC rules it needs.",
)
@click.option(
    "-n", "--namespace", default="", help="With --with-controller, restrict the controller to this namespace."
)
def command(*, image: str | None, namespace: str) -> int:
    r"""Print the CustomResourceDefinitions.

    The output is YAML for `kubectl apply`.

    \b
    Examples:
      paceline crds | kubectl apply --server-side -f -
      paceline crds --with-controller registry.example/paceline:0.1 | kubectl apply --server-side -f -
    """
    from paceline.cli.output.yaml_text import dump
    from paceline.cluster.install_manifests import controller_manifests, definitions

    if namespace and image is None:
        raise click.UsageError("--namespace says where the controller works; name its image: --with-controller IMAGE")
    if image is not None and not image.strip():
        raise click.UsageError("--with-controller needs the name of an image that has the `paceline` command")
    objects = [*definitions(), *(controller_manifests(image, namespace) if image else ())]
    for manifest in objects:
        out().document(f"---\n{dump(manifest)}")
    return exit_codes.OK
