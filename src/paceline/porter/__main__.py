"""`python -m paceline.porter STEP …`: one step in a pod; it ends with 0, or with 1 and the reason as its message."""

import argparse
import shutil
import signal
import sys
import threading
from pathlib import Path, PurePosixPath

from paceline.porter import install
from paceline.porter.bucket import Bucket, Where, open_bucket
from paceline.porter.git import Repository, clone, resolve
from paceline.porter.sync import Sync, bring_all, restore
from paceline.porter.tree import OWN
from paceline.porter.unpack import unpack
from paceline.porter.words import Stopped, Voice, counted, hidden, read_secret

# That somebody listens to the signal to end; the command's containers start once it is there.
READY = Path("/tmp/porter-ready")  # noqa: S108 - of a container of our own
# How long files keep still before they are copied; how long a last copy is tried, and the pause in between.
LOOK_SECONDS = 2.0
# Looking at more files than this takes so long that it is done more rarely.
MANY = 10_000
LAST_TRIES, PAUSE_SECONDS = 12, 4.0


def main(words: list[str] | None = None) -> int:
    """Do one step."""
    asked = _parser().parse_args(words)
    voice = Voice()
    try:
        secret = read_secret(asked.secret)
        voice = Voice(secrets=hidden(secret))
        said: str = asked.step(asked, secret, voice)
    except (Stopped, OSError) as error:
        voice.log(str(error))
        voice.conclude(str(error))
        return 1
    voice.log(said)
    voice.conclude(said)
    return 0


def _resolve(asked: argparse.Namespace, _secret: dict[str, str], _voice: Voice) -> str:
    return resolve(_repository(asked))


def _clone(asked: argparse.Namespace, _secret: dict[str, str], voice: Voice) -> str:
    repository = _repository(asked)
    clone(repository, asked.commit, asked.into)
    _lay_out_tools(asked, voice)
    return f"{repository.wanted} of {repository.url} at {asked.commit}"


def _unpack(asked: argparse.Namespace, _secret: dict[str, str], voice: Voice) -> str:
    count = unpack(asked.file, asked.digest, asked.into)
    _lay_out_tools(asked, voice)
    return f"{counted(count, 'file')} of the archive {asked.digest}"


def _input(asked: argparse.Namespace, secret: dict[str, str], _voice: Voice) -> str:
    bucket = open_bucket(_where(asked, secret))
    # What we wrote about results is no result.
    every = {name: size for name, size in bucket.names() if OWN not in name.split("/")}
    # A store may have a folder as an empty object of its own.
    folders = {str(folder) for name in every for folder in PurePosixPath(name).parents}
    files = {name: size for name, size in every.items() if size or name not in folders}
    bring_all(asked.into, bucket, files)
    return f"{counted(len(files), 'file')}, {counted(sum(files.values()), 'byte')}, of {bucket.name}"


def _restore(asked: argparse.Namespace, secret: dict[str, str], _voice: Voice) -> str:
    bucket = _kept(asked, secret)
    count = restore(asked.folder, bucket, asked.job)
    return f"{counted(count, 'file')} of an earlier try came back from {bucket.name}"


def _sync(asked: argparse.Namespace, secret: dict[str, str], voice: Voice) -> str:
    """Copy while the command runs, and for the last time when it has ended: then we are told to."""
    told = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: told.set())
    READY.touch()
    sync: Sync | None = None
    while not told.wait(pause_for(sync.count if sync is not None else 0)):
        try:
            sync = sync or _begin(asked, secret)
            sync.step()
        except (Stopped, OSError) as error:
            voice.log(f"{error}; it is tried again")
    return _finish(asked, secret, voice)


def pause_for(count: int) -> float:
    """Give the pause between two looks at so many files: looking is not to take the processor from the command."""
    return LOOK_SECONDS * max(1.0, count / MANY)


def _flush(asked: argparse.Namespace, secret: dict[str, str], voice: Voice) -> str:
    return _finish(asked, secret, voice)


def _finish(asked: argparse.Namespace, secret: dict[str, str], voice: Voice) -> str:
    waits = threading.Event()
    for left in reversed(range(LAST_TRIES)):
        try:
            sync = _begin(asked, secret)
            return sync.finish().say(sync.bucket.name)
        except (Stopped, OSError) as error:
            if not left:
                raise
            voice.log(f"{error}; it is tried again")
            waits.wait(PAUSE_SECONDS)
    raise AssertionError("the last try returns or raises")


def _begin(asked: argparse.Namespace, secret: dict[str, str]) -> Sync:
    return Sync(root=asked.folder, bucket=_kept(asked, secret), job=asked.job)


def _kept(asked: argparse.Namespace, secret: dict[str, str]) -> Bucket:
    return open_bucket(_where(asked, secret), asked.prefix)


def _where(asked: argparse.Namespace, secret: dict[str, str]) -> Where:
    return Where(url=asked.url, endpoint=asked.endpoint, region=asked.region, secret=secret)


def _repository(asked: argparse.Namespace) -> Repository:
    return Repository(url=asked.url, revision=asked.revision, secret=asked.secret)


def _lay_out_tools(asked: argparse.Namespace, voice: Voice) -> None:
    """Put what installs packages where the author's image finds it, if the code asks for any."""
    if not any(file.is_file() for file in asked.packages):
        return
    shutil.copy(install.__file__, asked.tools / "install.py")
    uv = shutil.which("uv")
    if uv is None:
        voice.log("there is no uv here; packages are installed by the image's own pip")
    else:
        shutil.copy(uv, asked.tools / "uv")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m paceline.porter", allow_abbrev=False)
    steps = parser.add_subparsers(required=True)
    every = {
        "resolve": (_resolve, _git_words),
        "clone": (_clone, _clone_words),
        "unpack": (_unpack, _unpack_words),
        "input": (_input, _input_words),
        "restore": (_restore, _output_words),
        "sync": (_sync, _output_words),
        "flush": (_flush, _output_words),
    }
    for name, (step, add) in every.items():
        one = steps.add_parser(name, allow_abbrev=False)
        one.set_defaults(step=step, secret=None)
        add(one)
    return parser


def _git_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--url", required=True)
    parser.add_argument("--revision", default="")
    parser.add_argument("--secret", type=Path)


def _clone_words(parser: argparse.ArgumentParser) -> None:
    _git_words(parser)
    parser.add_argument("--commit", required=True)
    _code_words(parser)


def _unpack_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--digest", required=True)
    _code_words(parser)


def _code_words(parser: argparse.ArgumentParser) -> None:
    _into_words(parser)
    parser.add_argument("--tools", type=Path, required=True)
    parser.add_argument("--packages", type=Path, action="append", default=[])


def _into_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--into", type=Path, required=True)


def _bucket_words(parser: argparse.ArgumentParser) -> None:
    for name in ("--url", "--endpoint", "--region"):
        parser.add_argument(name, default="")
    parser.add_argument("--secret", type=Path)


def _input_words(parser: argparse.ArgumentParser) -> None:
    _bucket_words(parser)
    _into_words(parser)


def _output_words(parser: argparse.ArgumentParser) -> None:
    _bucket_words(parser)
    parser.add_argument("--from", dest="folder", type=Path, required=True)
    parser.add_argument("--prefix", required=True)
    parser.add_argument("--job", required=True)


if __name__ == "__main__":
    sys.exit(main())
