"""`paceline volume`: named volumes for data and results: a folder, a new claim or a bucket."""

import os
from pathlib import Path
from typing import Any

import click

from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, reaches_cluster
from paceline.cli.output.console import err, out, say_hint
from paceline.cli.output.table import age, table
from paceline.cli.prompts import can_ask, confirm
from paceline.cli.sessions import session as session_with
from paceline.cli.sessions import session_started
from paceline.errors import BadRequest
from paceline.host.clock import RealClock
from paceline.sdk.job_summary import created_of
from paceline.sdk.volumes import Bucket, Volume, Volumes

KEY_ID, KEY_SECRET = "PACELINE_ACCESS_KEY_ID", "PACELINE_ACCESS_KEY_SECRET"


@click.group()
def command() -> None:
    r"""Manage named volumes: folders, claims and buckets.

    \b
    Examples:
      paceline volume create photos --dir /srv/photos
      paceline volume create results --size 10Gi
      paceline volume create tfoss --bucket oss://team/data --endpoint https://oss.example.org --access-key-id ID
      paceline train --git URL --command 'python3 train.py' --data tfoss NAME
    """


@command.command("create")
@click.argument("name")
@click.option("--dir", "folder", help="Absolute path of a folder on this machine.")
@click.option("--size", help="Create an empty volume of this size.")
@click.option("--bucket", help="Bucket URL: s3://BUCKET/FOLDER or oss://BUCKET/FOLDER.")
@click.option("--endpoint", default="", help="Endpoint URL of the object store.")
@click.option("--region", default="", help="Region of the bucket.")
@click.option("--access-key-id", default="", envvar=KEY_ID, help="Access key ID for the bucket.")
@click.option("--access-key-secret-file", default="", help="File with the access key secret; prompted for if omitted.")
@reaches_cluster
def create(*, reach: ClusterOptions, name: str, **options: Any) -> int:
    r"""Create a named volume from a folder, a new claim or a bucket.

    The access key secret of a bucket is read from a file, from PACELINE_ACCESS_KEY_SECRET, or from a prompt, because
    other users can read command lines. It is never shown again.

    \b
    Examples:
      paceline volume create photos --dir /srv/photos
      paceline volume create results --size 10Gi
    """
    chosen = [option for option in ("folder", "size", "bucket") if options[option]]
    if len(chosen) != 1:
        raise BadRequest("specify exactly one of --dir, --size and --bucket")
    if (
        options["folder"]
        and reach.is_embedded
        and options["folder"].startswith("/")
        and not Path(options["folder"]).is_dir()
    ):
        raise BadRequest(f"--dir {options['folder']}: there is no such folder on this machine")
    with session_started(reach) as session:
        volumes = Volumes(cluster=session.cluster, namespace=session.namespace)
        if options["folder"]:
            volume = volumes.create_folder(name, options["folder"])
        elif options["size"]:
            volume = volumes.create_claim(name, options["size"])
        else:
            volume = volumes.create_bucket(name, _bucket(options))
    out().line(f"volume/{volume.name} created")
    say_hint(f"paceline train --data {name} … reads it at /input and keeps /output in it")
    return exit_codes.OK


@command.command("list")
@reaches_cluster
def list_volumes(*, reach: ClusterOptions) -> int:
    r"""List the named volumes.

    \b
    Example:
      paceline volume list
    """
    with session_with(reach) as session:
        volumes = Volumes(cluster=session.cluster, namespace=session.namespace).all()
        namespace = session.namespace
    if not volumes:
        err().line(f"No volumes found in namespace {namespace}.")
        return exit_codes.OK
    now = RealClock().now()
    rows = [
        (volume.name, volume.type, volume.location, volume.phase, age(created_of(volume.object), now))
        for volume in volumes
    ]
    out().lines(table(("NAME", "TYPE", "LOCATION", "STATUS", "AGE"), rows))
    return exit_codes.OK


@command.command("delete")
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@reaches_cluster
def delete(*, reach: ClusterOptions, name: str, yes: bool) -> int:
    r"""Delete a named volume.

    The files in a folder or bucket are kept.

    \b
    Example:
      paceline volume delete photos
    """
    with session_with(reach) as session:
        volumes = Volumes(cluster=session.cluster, namespace=session.namespace)
        volume = volumes.named(name)
        if not yes and can_ask() and not confirm(_question(volume)):
            return exit_codes.FAILED
        volumes.delete(volume)
    out().line(f"volume/{name} deleted")
    if volume.type != "claim":
        say_hint(f"the files in {volume.location} stay")
    return exit_codes.OK


def _question(volume: Volume) -> str:
    return f"Delete volume {volume.name} ({volume.location})?"


def _bucket(options: dict[str, Any]) -> Bucket:
    key = ""
    if options["access_key_id"]:
        key = secret_from(options["access_key_secret_file"], KEY_SECRET, "Access key secret")
    return Bucket(
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
