"""The steps that copy data: `input` (from a bucket), `restore`, `sync` and `flush` (results, from and to a bucket).

`sync` uploads results while the command runs, and a last time when it has ended. `flush` is that last upload alone.
"""

import argparse
import signal
import threading
from pathlib import Path, PurePosixPath

from paceline.podtools.object_store import BucketConfig, BucketFolder, open_bucket
from paceline.podtools.output_tree import METADATA_FOLDER
from paceline.podtools.reporting import PodStep, Reporter, StepFailed, pluralize
from paceline.podtools.upload_log import UploadReporter
from paceline.podtools.uploader import Manifest, OutputSync, download_all, restore

MAX_FLUSHES, FLUSH_PAUSE_SECONDS = 12, 4.0
# Exists once the sidecar handles SIGTERM; the command's containers start after that.
READY = Path("/tmp/podtools-ready")  # noqa: S108 - in a container of our own
# A file is uploaded when it has not changed for this long.
SCAN_SECONDS = 2.0
# Scan larger folders less often, to leave the processor to the command.
MANY_FILES = 10_000


def add_bucket_arguments(parser: argparse.ArgumentParser) -> None:
    for name in ("--url", "--endpoint", "--region"):
        parser.add_argument(name, default="")
    parser.add_argument("--secret", type=Path)


def add_input_arguments(parser: argparse.ArgumentParser) -> None:
    add_bucket_arguments(parser)
    parser.add_argument("--into", type=Path, required=True)


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    add_bucket_arguments(parser)
    parser.add_argument("--from", dest="folder", type=Path, required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--job", required=True)


def add_sync_arguments(parser: argparse.ArgumentParser) -> None:
    add_output_arguments(parser)
    parser.add_argument("--ready", type=Path, default=READY)


def run_input(options: argparse.Namespace, secret: dict[str, str], _reporter: Reporter) -> str:
    """Download all files of a bucket."""
    bucket = open_bucket(_bucket_config(options, secret))
    # Our manifests are not data.
    sizes = {name: size for name, size in bucket.objects() if METADATA_FOLDER not in name.split("/")}
    # Some stores represent a folder by an empty object of that name.
    folders = {str(folder) for name in sizes for folder in PurePosixPath(name).parents}
    files = {name: size for name, size in sizes.items() if size or name not in folders}
    download_all(options.into, bucket, files)
    return f"{pluralize(len(files), 'file')}, {pluralize(sum(files.values()), 'byte')}, of {bucket.name}"


def run_restore(options: argparse.Namespace, secret: dict[str, str], _reporter: Reporter) -> str:
    """Download the results of an earlier attempt of the same job that are missing from the folder."""
    bucket = open_output(options, secret)
    count = restore(options.folder, bucket, options.job)
    return f"{pluralize(count, 'file')} of an earlier attempt restored from {bucket.name}"


def run_flush(options: argparse.Namespace, secret: dict[str, str], reporter: Reporter) -> str:
    """Upload everything, and try again if that fails."""
    return finish_upload(options, secret, UploadReporter(reporter))


def run_sync(options: argparse.Namespace, secret: dict[str, str], reporter: Reporter) -> str:
    """Upload changes until SIGTERM, and then everything."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    options.ready.touch()
    sync: OutputSync | None = None
    upload_reporter = UploadReporter(reporter)
    while not stop.wait(scan_interval(sync.file_count if sync is not None else 0)):
        try:
            sync = sync or start_upload(options, secret, upload_reporter)
            sync.upload_changes()
            upload_reporter.reached(sync.bucket.name)
        except (StepFailed, OSError) as error:
            upload_reporter.failed(error)
    return finish_upload(options, secret, upload_reporter)


def open_output(options: argparse.Namespace, secret: dict[str, str]) -> BucketFolder:
    """Return the folder of the bucket for the results of this replica."""
    return open_bucket(_bucket_config(options, secret), options.prefix)


def start_upload(options: argparse.Namespace, secret: dict[str, str], upload_reporter: UploadReporter) -> OutputSync:
    """Return an upload that continues from the manifest in the bucket."""
    bucket = open_output(options, secret)

    def report(manifest: Manifest) -> None:
        upload_reporter.reached(bucket.name)
        upload_reporter.report_files((name, file.stamp) for name, file in manifest.files.items())

    return OutputSync(root=options.folder, bucket=bucket, job=options.job, on_manifest=report)


def finish_upload(options: argparse.Namespace, secret: dict[str, str], upload_reporter: UploadReporter) -> str:
    """Upload everything, with several attempts, and return the summary."""
    pause = threading.Event()
    for remaining in reversed(range(MAX_FLUSHES)):
        try:
            sync = start_upload(options, secret, upload_reporter)
            return sync.finish().summary(sync.bucket.name)
        except (StepFailed, OSError) as error:
            if not remaining:
                raise
            upload_reporter.failed(error)
            pause.wait(FLUSH_PAUSE_SECONDS)
    raise AssertionError("the last attempt returns or raises")


def scan_interval(file_count: int) -> float:
    """Return the seconds between two scans of a folder with so many files."""
    return SCAN_SECONDS * max(1.0, file_count / MANY_FILES)


def _bucket_config(options: argparse.Namespace, secret: dict[str, str]) -> BucketConfig:
    return BucketConfig(url=options.url, endpoint=options.endpoint, region=options.region, secret=secret)


STEPS = {
    "input": PodStep(add_input_arguments, run_input),
    "restore": PodStep(add_output_arguments, run_restore),
    "sync": PodStep(add_sync_arguments, run_sync),
    "flush": PodStep(add_output_arguments, run_flush),
}
