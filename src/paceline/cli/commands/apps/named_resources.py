"""`paceline volume` and `paceline repo`: named volumes and code repositories."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.output.console import err, out, print_hint
from paceline.cli.output.table import age, table
from paceline.cli.prompts import can_ask, confirm
from paceline.cli.sessions import open_session, open_session_or_start
from paceline.errors import BadRequest
from paceline.host.clock import RealClock
from paceline.presentation.job_summary import created_of
from paceline.sdk.client import Session
from paceline.sdk.code_repositories import CodeRepositories, CodeRepository
from paceline.sdk.volumes import BucketOptions, NamedVolume, Volumes

KEY_ID, KEY_SECRET = "PACELINE_ACCESS_KEY_ID", "PACELINE_ACCESS_KEY_SECRET"


@click.command()
@click.argument("name")
@click.option("--dir", "folder", help="Absolute path of a folder on this machine.")
@click.option("--size", help="Create an empty volume of this size.")
@click.option("--bucket", help="Bucket URL: s3://BUCKET/FOLDER or oss://BUCKET/FOLDER.")
@click.option("--endpoint", default="", help="Endpoint URL of the object store.")
@click.option("--region", default="", help="Region of the bucket.")
@click.option("--access-key-id", default="", envvar=KEY_ID, help="Access key ID for the bucket.")
@click.option("--access-key-secret-file", default="", help="File with the access key secret; prompted for if omitted.")
@with_cluster_options
def create_volume(*, cluster: ClusterOptions, name: str, **options: Any) -> None:
    r"""Create a named volume from a folder, a new claim or a bucket.

    The access key secret of a bucket is read from a file, from PACELINE_ACCESS_KEY_SECRET, or from a prompt, because
    other users can read command lines. It is never shown again.

    \b
    Examples:
      paceline volume create photos --dir /srv/photos
      paceline volume create results --size 10Gi
    """
    if len([option for option in ("folder", "size", "bucket") if options[option]]) != 1:
        raise BadRequest("specify exactly one of --dir, --size and --bucket")
    folder = options["folder"] or ""
    if cluster.is_embedded and folder.startswith("/") and not Path(folder).is_dir():
        raise BadRequest(f"--dir {folder}: there is no such folder on this machine")
    with open_session_or_start(cluster) as session:
        if folder:
            volume = volumes(session).create_folder(name, folder)
        elif options["size"]:
            volume = volumes(session).create_claim(name, options["size"])
        else:
            volume = volumes(session).create_bucket(name, _bucket(options))
    out().line(f"volume/{volume.name} created")
    print_hint(f"to read it at /input and save /output to it: paceline train --data {name} …")


@click.command()
@with_cluster_options
def list_volumes(*, cluster: ClusterOptions) -> None:
    r"""List the named volumes.

    \b
    Example:
      paceline volume list
    """
    with open_session(cluster) as session:
        existing, namespace = volumes(session).all(), session.namespace
    rows = ((volume, (volume.type, volume.location, volume.phase)) for volume in existing)
    _print(("NAME", "TYPE", "LOCATION", "STATUS", "AGE"), rows, f"No volumes found in namespace {namespace}.")


@click.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@with_cluster_options
def delete_volume(*, cluster: ClusterOptions, name: str, yes: bool) -> int:
    r"""Delete a named volume.

    The files in a folder or bucket are kept.

    \b
    Example:
      paceline volume delete photos
    """
    with open_session(cluster) as session:
        volume = volumes(session).named(name)
        if not yes and not confirm(f"Delete volume {volume.name} ({volume.location})?"):
            return exit_codes.FAILED
        volumes(session).delete(volume)
    out().line(f"volume/{name} deleted")
    if volume.type != "claim":
        print_hint(f"the files in {volume.location} are kept")
    return exit_codes.OK


@click.command()
@click.argument("name")
@click.option("--git", "url", required=True, metavar="URL", help="URL of the Git repository, http or https.")
@click.option("--revision", default="", help="Branch, tag or commit.")
@click.option("--directory", default="", help="Folder of the repository in which the command runs.")
@click.option("--secret", default="", help="Secret with the username and password of a private repository.")
@with_cluster_options
def create_repo(*, cluster: ClusterOptions, **options: Any) -> None:
    r"""Create a named code repository.

    For a private repository, store the credentials in a secret with the keys username and password, and pass its name
    with --secret.

    \b
    Example:
      paceline repo create mnist --git https://example.org/team/mnist.git --revision v1.2
    """
    repo = CodeRepository(**options)
    repo.check()
    with open_session_or_start(cluster) as session:
        repositories(session).create(repo)
    out().line(f"repo/{repo.name} created")
    print_hint(f"to train with it: paceline train --repo {repo.name} …")


@click.command()
@with_cluster_options
def list_repos(*, cluster: ClusterOptions) -> None:
    r"""List the named code repositories.

    \b
    Example:
      paceline repo list
    """
    with open_session(cluster) as session:
        existing, namespace = repositories(session).all(), session.namespace
    rows = ((repo, tuple(text or "<none>" for text in repo.values.values())) for repo in existing)
    header = ("NAME", "URL", "REVISION", "DIRECTORY", "SECRET", "AGE")
    _print(header, rows, f"No repositories found in namespace {namespace}.")


@click.command()
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@with_cluster_options
def delete_repo(*, cluster: ClusterOptions, name: str, yes: bool) -> int:
    r"""Delete a named code repository.

    The Git repository and the applications that use it are kept.

    \b
    Example:
      paceline repo delete mnist
    """
    with open_session(cluster) as session:
        repo = repositories(session).named(name)
        if not yes and not confirm(f"Delete repository {repo.name} ({repo.url})?"):
            return exit_codes.FAILED
        repositories(session).delete(repo)
    out().line(f"repo/{name} deleted")
    print_hint(f"the Git repository {repo.url} is kept")
    return exit_codes.OK


def volumes(session: Session) -> Volumes:
    """Return the named volumes of the session's namespace."""
    return Volumes(cluster=session.cluster, namespace=session.namespace)


def repositories(session: Session) -> CodeRepositories:
    """Return the named code repositories of the session's namespace."""
    return CodeRepositories(cluster=session.cluster, namespace=session.namespace)


def _print(
    header: Sequence[str], entries: Iterable[tuple[NamedVolume | CodeRepository, tuple[str, ...]]], empty: str
) -> None:
    """Print a table with the name and age of every entry around its other cells."""
    now = RealClock().now()
    rows = [(entry.name, *cells, age(created_of(entry.object), now)) for entry, cells in entries]
    if rows:
        out().lines(table(header, rows))
    else:
        err().line(empty)


def _bucket(options: dict[str, Any]) -> BucketOptions:
    key = ""
    if options["access_key_id"]:
        key = secret_from(options["access_key_secret_file"], KEY_SECRET, "Access key secret")
    return BucketOptions(
        url=options["bucket"],
        endpoint=options["endpoint"],
        region=options["region"],
        key_id=options["access_key_id"],
        key_secret=key,
    )


def secret_from(file: str, variable: str, question: str) -> str:
    """Return a secret from a file, the environment or a prompt; raise BadRequest if there is none."""
    if file:
        try:
            return Path(file).read_text().strip()
        except OSError as error:
            raise BadRequest(f"{file}: cannot be read: {error.strerror}") from error
    if value := os.environ.get(variable):
        return value
    if not can_ask():
        raise BadRequest(f"{question.lower()}: provide it in a file, or in {variable}")
    return str(click.prompt(question, hide_input=True))
