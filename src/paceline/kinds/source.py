"""Where a job's code comes from: a git repository, or a folder that its author packed up.

In     `spec.source`, as written.
Out    its faults, and where the code lies once it is in a pod.
Never  holds a password: it names the secret that does.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from msgspec import Meta

from paceline.errors import Fault
from paceline.kinds.fields import DNS_SUBDOMAIN, Part, about
from paceline.kinds.kind import Claim
from paceline.objects.commit import COMMIT
from paceline.objects.faults import invalid, required

# Where the code lies in every container of a member.
FOLDER = "/source"
DIGEST = "^sha256:[0-9a-f]{64}$"
# What git itself refuses in the name of a branch or tag, and what a command line would take for an option.
NO_REVISION = re.compile(r"^-|\.\.|[\x00-\x20\x7f~^:?*\[\\]|@\{|/$|\.lock$|^/|//")
USUAL_REQUIREMENTS = "requirements.txt"

ObjectName = Annotated[str, Meta(pattern=DNS_SUBDOMAIN, max_length=253)]


class Git(Part, frozen=True, kw_only=True):
    """A repository, read over http or https."""

    url: Annotated[str, about("Address of the repository, http or https, without user and password.")]
    revision: Annotated[
        str,
        about("Branch, tag or full commit. Left out: the default branch. The commit is kept in status."),
    ] = ""
    directory: Annotated[str, about("Folder of the repository that the command runs in. Left out: its root.")] = ""
    secret: (
        Annotated[ObjectName, about("Secret with the keys username and password, for a repository that is not public.")]
        | None
    ) = None


class Archive(Part, frozen=True, kw_only=True):
    """A folder or script of the author's own, packed as .tar.gz and found by its digest."""

    digest: Annotated[str, Meta(pattern=DIGEST), about("sha256: and the hex digest of the packed file.")]
    config_map: Annotated[ObjectName, about("Config map that has the packed file as binary data.")] | None = None
    claim: Annotated[ObjectName, about("Claim that the packed file lies on.")] | None = None
    path: Annotated[str, about("Key in the config map, or path on the claim.")] = "source.tar.gz"
    directory: Annotated[str, about("Folder of the archive that the command runs in. Left out: its root.")] = ""


class Source(Part, frozen=True, kw_only=True):
    """The code: fetched before the command runs, which then runs in its folder."""

    git: Annotated[Git, about("Code from a git repository.")] | None = None
    archive: Annotated[Archive, about("Code that its author packed up.")] | None = None
    requirements: (
        Annotated[
            str,
            about(
                "File whose packages are installed first; empty for none. Left out: requirements.txt, if there is one."
            ),
        ]
        | None
    ) = None
    cache: (
        Annotated[
            ObjectName,
            about(
                "Claim that keeps public code and installed packages for later jobs. Left out: they go with the pod."
            ),
        ]
        | None
    ) = None


def check_source(source: Source, path: str) -> Iterator[Fault]:
    """Name what keeps the code from being fetched."""
    if source.git is None and source.archive is None:
        yield required(path, "say where the code comes from: git or archive")
    if source.git is not None and source.archive is not None:
        yield invalid(f"{path}.archive", source.archive.digest, "git is given too; leave one of them out")
    if source.git is not None:
        yield from _check_git(source.git, f"{path}.git")
    if source.archive is not None:
        yield from _check_archive(source.archive, f"{path}.archive")
    if source.requirements:
        yield from check_inner(source.requirements, f"{path}.requirements")


def source_claims(source: Source, path: str) -> tuple[Claim, ...]:
    """Give the claims that the code needs, each with the path that names it."""
    named = {f"{path}.cache": source.cache, f"{path}.archive.claim": source.archive and source.archive.claim}
    return tuple((where, name) for where, name in named.items() if name)


def working_dir(source: Source) -> str:
    """Give the folder in which the command runs."""
    chosen = (source.git and source.git.directory) or (source.archive and source.archive.directory) or ""
    return str(PurePosixPath(FOLDER) / chosen)


def pinned(git: Git) -> str:
    """Give the commit that a revision already is; empty when it has to be looked up."""
    return git.revision if COMMIT.fullmatch(git.revision) else ""


def check_inner(inner: str, path: str) -> Iterator[Fault]:
    """Name what leads out of the folder that a path is meant to lie in."""
    parts = inner.split("/")
    if inner.startswith("/") or ".." in parts or "\0" in inner:
        yield invalid(path, inner, "it lies inside of the folder; give a path without a / in front and without ..")


def split_url(url: str) -> SplitResult | None:
    """Take an address apart; None for what is no address."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def masked(url: str) -> str:
    """Give an address without what may be a password, fit for a message."""
    # A password may have anything in it, also a / or an @; a path that has an @ is masked too, which harms nobody.
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@", r"\1…@", url, flags=re.DOTALL)


def _check_git(git: Git, path: str) -> Iterator[Fault]:
    where = f"{path}.url"
    parts = split_url(git.url)
    is_web = git.url.lower().startswith(("https://", "http://"))
    is_ssh = not is_web and (parts is None or not parts.scheme or parts.scheme in ("ssh", "git+ssh", "git"))
    hint = f"leave user and password out; put them into a secret and name it in {path}.secret"
    if is_web and "@" in git.url and (parts is None or "@" in parts.netloc):
        yield invalid(where, masked(git.url), hint)
    elif is_ssh and ("@" in git.url or (parts is not None and parts.scheme)):
        yield invalid(where, masked(git.url), f"ssh is refused; use https{_as_https(git.url)}")
    elif parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        yield invalid(where, masked(git.url), "write an address that begins with https:// or http://")
    elif parts.query or parts.fragment or not parts.path.strip("/") or re.search(r"[\x00-\x20\x7f]", git.url):
        yield invalid(
            where, masked(git.url), "write the address of a repository, such as https://example.org/team/code.git"
        )
    if git.revision and NO_REVISION.search(git.revision):
        yield invalid(f"{path}.revision", git.revision, "write a branch, a tag or a full commit")
    yield from check_inner(git.directory, f"{path}.directory")


def _as_https(url: str) -> str:
    """Say which https address an ssh one probably has."""
    found = re.fullmatch(r"(?:(?:git\+)?ssh://)?(?:[^@/]+@)?([A-Za-z0-9.-]+)(?::\d+)?[:/]+([^\s?#@]+)", url)
    return f": https://{found[1]}/{found[2]}" if found else ""


def _check_archive(archive: Archive, path: str) -> Iterator[Fault]:
    if (archive.config_map is None) == (archive.claim is None):
        yield invalid(path, archive.digest, "the packed file lies in a configMap or on a claim; name one of them")
    yield from check_inner(archive.path, f"{path}.path")
    yield from check_inner(archive.directory, f"{path}.directory")
