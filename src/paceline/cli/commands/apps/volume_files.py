"""`paceline volume ls|get|put|rm|du`: the files of a volume."""

import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

import click

from paceline.apimachinery.timestamps import to_wire
from paceline.cli import exit_codes
from paceline.cli.cluster_options import ClusterOptions, with_cluster_options
from paceline.cli.commands.apps.named_resources import volumes
from paceline.cli.output import formats
from paceline.cli.output.console import err, out
from paceline.cli.output.table import share, size, table
from paceline.cli.prompts import confirm
from paceline.cli.sessions import open_session
from paceline.errors import AlreadyExists, BadRequest, NotFound
from paceline.sdk.files import FileEntry, VolumeFiles, split_location, target_in_folder

LOCATION = "VOLUME[:PATH]"


@contextmanager
def open_files(cluster: ClusterOptions, location: str) -> Iterator[tuple[VolumeFiles, str]]:
    """Yield the files of the volume or claim that a location names, and the path in it."""
    name, path = split_location(location)
    with open_session(cluster) as session:
        named = next((volume for volume in volumes(session).all() if volume.name == name), None)
        if named is not None and named.type == "bucket":
            raise BadRequest(f"volume {name} is a bucket; use the tools of its object store")
        claim = named.values["claim"] if named else name
        yield VolumeFiles(cluster=session.cluster, namespace=session.namespace, claim=claim), path


@click.command()
@click.argument("location", metavar=LOCATION)
@click.option("-o", "--output", type=click.Choice(["json", "yaml", "name"]), help="Output format.")
@with_cluster_options
def list_files(*, cluster: ClusterOptions, location: str, output: str | None) -> None:
    r"""List the files of a volume.

    \b
    Examples:
      paceline volume ls results
      paceline volume ls results:logs/train
    """
    with open_files(cluster, location) as (files, path):
        entries = list(files.list(path))
    if text := formats.as_text({"kind": "FileList", "items": [_item(entry) for entry in entries]}, output):
        out().document(text)
    elif output == "name":
        out().lines(entry.name for entry in entries)
    elif entries:
        out().lines(table(("SIZE", "MODIFIED", "NAME"), [_row(entry) for entry in entries]))
    else:
        err().line("The folder is empty.")


@click.command()
@click.argument("location", metavar=LOCATION)
@click.argument("target", type=click.Path(path_type=Path), default=Path())
@with_cluster_options
def get_files(*, cluster: ClusterOptions, location: str, target: Path) -> None:
    r"""Download a file or folder of a volume.

    A download that was cut goes on where it stopped when it is started again.

    \b
    Examples:
      paceline volume get results:model.pt
      paceline volume get results:logs ./logs
    """
    with open_files(cluster, location) as (files, path):
        entry = files.stat(path)
        if entry.is_folder:
            count = download_folder(files, path, target if path.strip("/") == "" else _into(target, entry.name))
            out().line(f"{count} files downloaded")
            return
        to = _into(target, entry.name)
        files.download(path, to)
    out().line(f"{to} downloaded")


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.argument("location", metavar=LOCATION)
@click.option("--overwrite", is_flag=True, help="Replace files that exist.")
@with_cluster_options
def put_files(*, cluster: ClusterOptions, source: Path, location: str, overwrite: bool) -> None:
    r"""Upload a file or folder to a volume.

    An upload that was cut goes on where it stopped when it is started again.

    \b
    Examples:
      paceline volume put train.npz photos:data/
      paceline volume put ./data photos --overwrite
    """
    if not source.exists():
        raise BadRequest(f"{source}: there is no such file or folder on this machine")
    with open_files(cluster, location) as (files, path):
        target = _remote_target(files, source.resolve().name, path)
        sources = [source] if source.is_file() else sorted(file for file in source.rglob("*"))
        parents = [str(parent) for parent in reversed(PurePosixPath(target).parents) if parent.name]
        folders = [*parents, target] if source.is_dir() else parents
        folders += [_beneath(target, source, folder) for folder in sources if folder.is_dir() and folder != source]
        for folder in folders:
            _ensure_folder(files, folder)
        plain = [file for file in sources if file.is_file() and not file.is_symlink()] if source.is_dir() else [source]
        for file in plain:
            files.upload(file, _beneath(target, source, file), is_replacing=overwrite)
    out().line(f"{len(plain)} {'file' if len(plain) == 1 else 'files'} uploaded")


@click.command()
@click.argument("location", metavar=LOCATION)
@click.option("-r", "--recursive", is_flag=True, help="Remove a folder with everything in it.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask for confirmation.")
@with_cluster_options
def remove_files(*, cluster: ClusterOptions, location: str, recursive: bool, yes: bool) -> int:
    r"""Remove a file or folder of a volume.

    \b
    Example:
      paceline volume rm results:old -r
    """
    with open_files(cluster, location) as (files, path):
        entry = files.stat(path)
        if not yes and not confirm(f"Remove {entry.type} {path} of volume {split_location(location)[0]}?"):
            return exit_codes.FAILED
        files.remove(path, is_recursive=recursive)
    out().line(f"{location} removed")
    return exit_codes.OK


@click.command()
@click.argument("location", metavar=LOCATION)
@with_cluster_options
def disk_usage(*, cluster: ClusterOptions, location: str) -> None:
    r"""Show what takes the space of a volume.

    \b
    Example:
      paceline volume du results
    """
    with open_files(cluster, location) as (files, path):
        usage = files.usage(path)
    entries = sorted(usage["entries"], key=lambda entry: -entry["bytes"])
    rows = [(size(entry["bytes"]), share(entry["bytes"], usage["bytes"]), entry["name"]) for entry in entries]
    out().lines(table(("SIZE", "SHARE", "NAME"), [*rows, (size(usage["bytes"]), "", "total")]))
    err().line(f"{size(usage['available'])} of {size(usage['capacity'])} of its disk are free", "dim")


def download_folder(files: VolumeFiles, path: str, target: Path) -> int:
    """Write a folder of a volume to a local one; return the number of files. Existing files are replaced."""
    with tempfile.TemporaryFile() as archive:
        files.download_archive(path, archive)
        archive.seek(0)
        target.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=archive) as tar:
            members = tar.getmembers()
            # The filter refuses what would be written elsewhere.
            tar.extractall(target, filter="data")
    return sum(member.isfile() for member in members)


def _into(target: Path, name: str) -> Path:
    return target / name if target.is_dir() else target


def _remote_target(files: VolumeFiles, name: str, path: str) -> str:
    """Return where a file goes: into a folder that exists or ends with a slash, else to the path itself."""
    if not path or path.endswith("/"):
        return target_in_folder(name, path)
    try:
        return target_in_folder(name, path) if files.stat(path).is_folder else path
    except NotFound:
        return path


def _beneath(target: str, source: Path, file: Path) -> str:
    return target if file == source else f"{target}/{file.relative_to(source).as_posix()}"


def _ensure_folder(files: VolumeFiles, path: str) -> None:
    try:
        files.make_folder(path)
    except AlreadyExists:
        if not files.stat(path).is_folder:
            raise


def _row(entry: FileEntry) -> tuple[str, str, str]:
    suffix = {"folder": "/", "link": f" -> {entry.target}"}.get(entry.type, "")
    return ("" if entry.is_folder else size(entry.size), _time(entry), f"{entry.name}{suffix}")


def _time(entry: FileEntry) -> str:
    return to_wire(datetime.fromtimestamp(entry.modified, UTC))


def _item(entry: FileEntry) -> dict[str, object]:
    item: dict[str, object] = {"name": entry.name, "type": entry.type, "size": entry.size, "modified": _time(entry)}
    return {**item, "target": entry.target} if entry.target else item
