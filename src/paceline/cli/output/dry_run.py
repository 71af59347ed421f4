"""The rendered application as YAML, for `--dry-run` and `paceline template render`."""

from paceline.apimachinery.meta import Object
from paceline.cli.output.console import out
from paceline.cli.output.yaml_text import dump
from paceline.sdk.apps.values import parts_of


def print_plan(app: Object, *, namespace: str = "", is_full: bool = False) -> None:
    """Print the application; with `is_full`, also the job of its first revision and its resources."""
    to = out()
    to.document(dump(app))
    if not is_full:
        return
    placed = {**app, "metadata": {**app["metadata"], "namespace": namespace or "default"}}
    job, parts = parts_of(placed)
    to.document(f"---\n# The job of its first revision.\n{dump(job)}")
    for name, spec in parts.claims.items():
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": dict(spec)}
        to.document(f"---\n# The claim that all revisions share.\n{dump(claim)}")
    for name, spec in parts.boards.items():
        board = {
            "apiVersion": "tensorstack.dev/v1beta1",
            "kind": "TensorBoard",
            "metadata": {"name": name},
            "spec": dict(spec),
        }
        to.document(f"---\n# A TensorBoard that all revisions share.\n{dump(board)}")
