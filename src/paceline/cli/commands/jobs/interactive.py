"""`paceline tensorboard` and `paceline notebook`: open an interactive workload in a local browser."""

from base64 import b64decode
from contextlib import closing

import click

from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.output.console import err, out
from paceline.cli.sessions import open_session
from paceline.errors import NotFound
from paceline.host.clock import RealClock
from paceline.model.interactive import page_path
from paceline.presentation.apps.app_summary import is_paused
from paceline.sdk.client import Session
from paceline.sdk.interactive import ServiceRef

TENSORBOARD_PORT = 6006
NOTEBOOK_PORT = 8888


@click.command()
@click.argument("name", metavar="NAME")
@click.option(
    "--port", default=TENSORBOARD_PORT, type=click.IntRange(0, 65535), help="Local port; 0 chooses a free one."
)
@with_cluster_options
def tensorboard(*, cluster: ClusterOptions, name: str, port: int) -> None:
    r"""Open the TensorBoard of a job in your browser.

    NAME is an application, a job that has a TensorBoard, or a TensorBoard. Prints a local URL and serves the
    TensorBoard there, to this machine only, until Ctrl-C. A suspended TensorBoard is resumed.

    \b
    Examples:
      paceline tensorboard mnist
      paceline tensorboard mnist-tensorboard0 --port 6007
    """
    from paceline.sdk.local_proxy import LocalProxy, ProxiedSite

    with open_session(cluster) as session:
        ref = board_of(session, name)
        board = session.cluster.get(ref.kind.where, ref.namespace, ref.name)
        status = board.get("status") or {}
        page, address = (str(status.get(name) or "") for name in ("url", "address"))
        if not page:
            raise NotFound(f"{ref} is not ready yet; try again in a moment")
        if is_paused(board):
            ref.resume(RealClock().now())
        with closing(LocalProxy(session.dial, ProxiedSite(page=page_path(page)), port)) as front:
            out().line(front.url)
            err().line("Press Ctrl-C to stop; the TensorBoard keeps running.", "dim")
            if address:
                err().line(f"It can also be opened without Paceline at {address}", "dim")
            front.serve()


def board_of(session: Session, name: str) -> ServiceRef:
    """Return the TensorBoard of this name, or that of the application or job of this name."""
    kind = session.kinds.named("tensorboards")
    bare = name.rpartition("/")[2]
    app = session.app(name)
    candidates = [bare, *([app.board] if app is not None else [])]
    try:
        tensorboard = session.job(name).status().tensorboard
        candidates.append(str((tensorboard.get("dependent") or {}).get("name") or bare))
    except NotFound:
        pass
    for candidate in dict.fromkeys(candidates):
        try:
            return session.service_ref(kind, session.cluster.get(kind.where, session.namespace, candidate))
        except NotFound:
            continue
    raise NotFound(
        f"there is no TensorBoard of {name!r} in namespace {session.namespace!r}; to list them: paceline get tb"
    )


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--port", default=NOTEBOOK_PORT, type=click.IntRange(0, 65535), help="Local port; 0 chooses a free one.")
@with_cluster_options
def notebook(*, cluster: ClusterOptions, name: str, port: int) -> None:
    r"""Open a notebook in your browser.

    Prints a local URL and serves the notebook there until Ctrl-C. The URL contains a key, so other users of this
    machine cannot open it; JupyterLab's token is added automatically. A suspended notebook is resumed.

    \b
    Examples:
      paceline notebook desk
      paceline notebook desk --port 8889
    """
    from paceline.host.effects import RealIds
    from paceline.sdk.local_proxy import LocalProxy, ProxiedSite

    with open_session(cluster) as session:
        kind = session.kinds.named("notebooks")
        notebook = session.cluster.get(kind.where, session.namespace, name.rpartition("/")[2])
        ref = session.service_ref(kind, notebook)
        status = notebook.get("status") or {}
        page, secret = (str(status.get(field) or "") for field in ("url", "tokenSecret"))
        if not page or not secret:
            raise NotFound(f"{ref} is not ready yet; try again in a moment")
        if is_paused(notebook):
            ref.resume(RealClock().now())
        site = ProxiedSite(page=page_path(page), token=token_in(session, ref.namespace, secret), key=RealIds().secret())
        with closing(LocalProxy(session.dial, site, port)) as front:
            out().line(front.url)
            err().line("Press Ctrl-C to stop; the notebook keeps running.", "dim")
            front.serve()


def token_in(session: Session, namespace: str, secret: str) -> str:
    """Return JupyterLab's token, which the notebook controller created."""
    where = session.kinds.named("secrets").where
    data = session.cluster.get(where, namespace, secret).get("data") or {}
    return b64decode(str(data.get("token") or "")).decode()
