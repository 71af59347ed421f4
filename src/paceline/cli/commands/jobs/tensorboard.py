"""`paceline tensorboard`: open the TensorBoard of a job or application in a local browser."""

from contextlib import closing

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import err, out
from paceline.cli.sessions import session as session_with
from paceline.errors import NotFound
from paceline.host.clock import RealClock
from paceline.sdk.client import Session
from paceline.sdk.interactive import ServiceRef, is_at_rest

USUAL_PORT = 6006


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--port", default=USUAL_PORT, type=click.IntRange(0, 65535), help="Local port; 0 chooses a free one.")
@reaches_cluster
def command(*, reach: ClusterOptions, name: str, port: int) -> int:
    r"""Open the TensorBoard of a job or application in your browser.

    NAME is an application, a job that has a TensorBoard, or a TensorBoard. Prints a local URL and serves the
    TensorBoard there, to this machine only, until Ctrl-C. A suspended TensorBoard is resumed.

    \b
    Examples:
      paceline tensorboard mnist
      paceline tensorboard mnist-tensorboard0 --port 6007
    """
    from paceline.sdk.local_proxy import LocalProxy, Site

    with session_with(reach) as session:
        ref = board_of(session, name)
        board = session.cluster.get(ref.kind.where, ref.namespace, ref.name)
        status = board.get("status") or {}
        page, address = (str(status.get(name) or "") for name in ("url", "address"))
        if not page:
            raise NotFound(f"{ref} is not ready yet; try again in a moment")
        if is_at_rest(board):
            ref.resume(RealClock().now())
        with closing(LocalProxy(session.dial, Site(page=page), port)) as front:
            out().line(front.url)
            err().line("Press Ctrl-C to stop; the TensorBoard keeps running.", "dim")
            if address:
                err().line(f"It can also be opened without Paceline at {address}", "dim")
            front.serve()
    return exit_codes.OK


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
        f"there is no TensorBoard of {name!r} in namespace {session.namespace!r}; `paceline get tb` lists them"
    )
