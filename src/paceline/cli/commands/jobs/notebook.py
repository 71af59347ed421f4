"""`paceline notebook`: open JupyterLab in a local browser."""

from base64 import b64decode
from contextlib import closing

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import err, out
from paceline.cli.sessions import session as session_with
from paceline.errors import NotFound
from paceline.host.clock import RealClock
from paceline.sdk.client import Session
from paceline.sdk.interactive import is_at_rest

USUAL_PORT = 8888


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--port", default=USUAL_PORT, type=click.IntRange(0, 65535), help="Local port; 0 chooses a free one.")
@reaches_cluster
def command(*, reach: ClusterOptions, name: str, port: int) -> int:
    r"""Open a notebook in your browser.

    Prints a local URL and serves the notebook there until Ctrl-C. The URL contains a key, so other users of this
    machine cannot open it; JupyterLab's token is added automatically. A suspended notebook is resumed.

    \b
    Examples:
      paceline notebook desk
      paceline notebook desk --port 8889
    """
    from paceline.host.effects import RealIds
    from paceline.sdk.local_proxy import LocalProxy, Site

    with session_with(reach) as session:
        kind = session.kinds.named("notebooks")
        notebook = session.cluster.get(kind.where, session.namespace, name.rpartition("/")[2])
        ref = session.service_ref(kind, notebook)
        status = notebook.get("status") or {}
        page, secret = (str(status.get(field) or "") for field in ("url", "tokenSecret"))
        if not page or not secret:
            raise NotFound(f"{ref} is not ready yet; try again in a moment")
        if is_at_rest(notebook):
            ref.resume(RealClock().now())
        site = Site(page=page, token=token_in(session, ref.namespace, secret), key=RealIds().secret())
        with closing(LocalProxy(session.dial, site, port)) as front:
            out().line(front.url)
            err().line("Press Ctrl-C to stop; the notebook keeps running.", "dim")
            front.serve()
    return exit_codes.OK


def token_in(session: Session, namespace: str, secret: str) -> str:
    """Return JupyterLab's token, which the notebook controller created."""
    where = session.kinds.named("secrets").where
    data = session.cluster.get(where, namespace, secret).get("data") or {}
    return b64decode(str(data.get("token") or "")).decode()
