"""`paceline ui`: open the web console."""

import os
import sys
from urllib.parse import quote, urlsplit

import click

from paceline.cli.cluster_options import context_option, ensure_running, kubeconfig_option, settings
from paceline.cli.output.console import err, out, print_warning


@click.command()
@click.argument("page", default="", metavar="[PAGE]")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@click.option(
    "--prometheus",
    default="",
    metavar="URL",
    help="Prometheus with the metrics of the other cluster's containers, for charts.",
)
@kubeconfig_option
@context_option
def ui(*, page: str, no_browser: bool, prometheus: str, kubeconfig: str, context: str) -> None:
    r"""Open the web console.

    Prints an address with a one-time code that logs you in, valid for one minute, and opens it in your browser. PAGE is
    a page of the console, such as jobs. The console of the embedded cluster runs only while it is used; before another
    cluster it runs until Ctrl-C, with the rights of your kubeconfig.

    \b
    Examples:
      paceline ui
      paceline ui jobs --no-browser
      paceline ui --context prod
      paceline ui --context prod --prometheus http://localhost:9090
    """
    from paceline.cluster.console.address import console_address, has_page, request_code

    if not has_page():
        print_warning("the console's page has not been built; run `make setup` in the source folder")
    if kubeconfig or context:
        from paceline.cluster.console.server import run_in_front

        def announce(address: str, code: str) -> None:
            show(login_url(address, code, page), in_browser=not no_browser)
            err().line("Press Ctrl-C to stop the console.", "dim")

        run_in_front(kubeconfig, context, announce, prometheus=prometheus)
        return
    if prometheus:
        raise click.UsageError("--prometheus is for another cluster; the embedded one keeps its own measurements")
    chosen = settings()
    ensure_running(chosen)
    show(login_url(console_address(chosen), request_code(chosen), page), in_browser=not no_browser)


def show(url: str, *, in_browser: bool) -> None:
    """Print an address, and open it in a browser if there is one on this machine."""
    is_remote = bool(os.environ.get("SSH_CONNECTION"))
    if is_remote:
        err().line(f"On your own machine, run: {tunnel_command(urlsplit(url).port)}", "dim")
        err().line("then open this address there:", "dim")
    out().line(url)
    sys.stdout.flush()
    has_display = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    if in_browser and has_display and not is_remote:
        import webbrowser

        webbrowser.open(url)


def login_url(address: str, code: str, page: str = "") -> str:
    """Return the address that logs in; the code is in the fragment, which browsers do not send to servers."""
    path = f"/{page.strip().lstrip('/')}"
    following = f"?next={quote(path, safe='/')}" if path != "/" else ""
    return f"{address}/login{following}{f'#code={code}' if code else ''}"


def tunnel_command(port: int | None) -> str:
    """Return the command that forwards the console's port to the machine from which the user has logged in."""
    _, _, server, server_port = (os.environ.get("SSH_CONNECTION", "").split() + [""] * 4)[:4]
    options = f" -p {server_port}" if server_port not in ("", "22") else ""
    user = os.environ.get("USER", "")
    return f"ssh -L {port}:127.0.0.1:{port}{options} {f'{user}@' if user else ''}{server or 'HOST'}"
