"""The source code of a job: a git repository, or an archive of a local directory.

In     `spec.source`, as written.
Out    its faults, and the paths of the code in a pod.
Never  contains a password: it names the Secret that does.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Annotated, ClassVar
from urllib.parse import SplitResult, urlsplit

from msgspec import Meta

from paceline.apimachinery.field_errors import invalid, required
from paceline.errors import Fault
from paceline.kinds.cel import CelRule, obeys, quoted
from paceline.kinds.kind_types import Claim
from paceline.kinds.spec.fields import DNS_SUBDOMAIN, Part, about
from paceline.model.gang import COMMIT

# Path of the code in every container.
FOLDER = "/source"
DIGEST = "^sha256:[0-9a-f]{64}$"
# Characters that git does not allow in the name of a branch or tag, and names that git would parse as an option.
NO_REVISION = re.compile(r"^-|\.\.|[\x00-\x20\x7f~^:?*\[\\]|@\{|/$|\.lock$|^/|//")
USUAL_REQUIREMENTS = "requirements.txt"

ObjectName = Annotated[str, Meta(pattern=DNS_SUBDOMAIN, max_length=253)]
Url = Annotated[str, Meta(max_length=2048)]

RELATIVE = "must be a relative path without a leading / and without .."
# A relative path that stays in its directory.
Inner = Annotated[
    str,
    Meta(max_length=4096),
    obeys(CelRule(rule=r"!self.startsWith('/') && !self.matches('(^|/)[.][.](/|$)')", message=RELATIVE)),
]
NO_REVISION_HINT = "must be a branch, a tag or a full commit"
NO_URL = "must be an https:// or http:// URL"


NO_SOURCE, TWO_SOURCES = "set git or archive", "git is also set; remove one of them"
EITHER = "set either configMap or claim, where the archive is"
GIT_URL = obeys(
    CelRule(rule="self.matches('^(?i)https?://')", message=NO_URL),
    CelRule(
        rule="!self.matches('^(?i)https?://[^/?#]*@')",
        message="must not contain user and password; put them into a Secret and set spec.source.git.secret",
    ),
)


class Git(Part, frozen=True, kw_only=True):
    """A git repository, cloned over http or https."""

    url: Annotated[Url, GIT_URL, about("http or https URL of the repository, without user and password.")]
    revision: Annotated[
        str,
        Meta(max_length=1024),
        obeys(CelRule(rule=f"!self.matches({quoted(NO_REVISION.pattern)})", message=NO_REVISION_HINT)),
        about("Branch, tag or full commit; the resolved commit is recorded in status. If omitted, the default branch."),
    ] = ""
    directory: Annotated[
        Inner, about("Directory of the repository in which the command runs. If omitted, its root.")
    ] = ""
    secret: Annotated[
        ObjectName | None, about("Secret with the keys username and password, for a private repository.")
    ] = None


class Archive(Part, frozen=True, kw_only=True):
    """A local directory or script, uploaded as .tar.gz and identified by its digest."""

    cel: ClassVar[tuple[CelRule, ...]] = (CelRule(rule="has(self.configMap) != has(self.claim)", message=EITHER),)

    digest: Annotated[str, Meta(pattern=DIGEST), about("sha256: followed by the hex digest of the archive.")]
    config_map: Annotated[ObjectName | None, about("ConfigMap with the archive in binaryData.")] = None
    claim: Annotated[ObjectName | None, about("PersistentVolumeClaim with the archive.")] = None
    path: Annotated[Inner, about("Key in the ConfigMap, or path on the claim.")] = "source.tar.gz"
    directory: Annotated[Inner, about("Directory of the archive in which the command runs. If omitted, its root.")] = ""


class Source(Part, frozen=True, kw_only=True):
    """The source code; it is fetched before the command starts in its directory."""

    cel: ClassVar[tuple[CelRule, ...]] = (
        CelRule(rule="has(self.git) || has(self.archive)", message=NO_SOURCE, reason="FieldValueRequired"),
        CelRule(rule="!has(self.git) || !has(self.archive)", message=TWO_SOURCES, field=".archive"),
    )

    git: Annotated[Git | None, about("Git repository with the code.")] = None
    archive: Annotated[Archive | None, about("Archive with the code.")] = None
    requirements: Annotated[
        Inner | None,
        about(
            "Requirements file whose packages are installed before the command starts; empty for none. If omitted, "
            "requirements.txt if it exists."
        ),
    ] = None
    cache: Annotated[
        ObjectName | None,
        about(
            "PersistentVolumeClaim that caches public code and installed packages for later jobs. If omitted, they "
            "are deleted with the pod."
        ),
    ] = None


def check_source(source: Source, path: str) -> Iterator[Fault]:
    """Yield the faults of a source."""
    if source.git is None and source.archive is None:
        yield required(path, NO_SOURCE)
    if source.git is not None and source.archive is not None:
        yield invalid(f"{path}.archive", source.archive.digest, TWO_SOURCES)
    if source.git is not None:
        yield from _check_git(source.git, f"{path}.git")
    if source.archive is not None:
        yield from _check_archive(source.archive, f"{path}.archive")
    if source.requirements:
        yield from check_inner(source.requirements, f"{path}.requirements")


def source_claims(source: Source, path: str) -> tuple[Claim, ...]:
    """Return the claims of a source, each with the path that names it."""
    claims = {f"{path}.cache": source.cache, f"{path}.archive.claim": source.archive and source.archive.claim}
    return tuple((claim_path, name) for claim_path, name in claims.items() if name)


def working_dir(source: Source) -> str:
    """Return the directory in which the command runs."""
    chosen = (source.git and source.git.directory) or (source.archive and source.archive.directory) or ""
    return str(PurePosixPath(FOLDER) / chosen)


def pinned(git: Git) -> str:
    """Return the revision if it is a full commit; empty if it has to be resolved."""
    return git.revision if COMMIT.fullmatch(git.revision) else ""


def check_inner(inner: str, path: str) -> Iterator[Fault]:
    """Yield a fault if a relative path leaves its directory."""
    parts = inner.split("/")
    if inner.startswith("/") or ".." in parts or "\0" in inner:
        yield invalid(path, inner, RELATIVE)


def split_url(url: str) -> SplitResult | None:
    """Return the parts of a URL; None if it is not a valid one."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def masked(url: str) -> str:
    """Return a URL without its user and password, for messages."""
    # A password can contain any character, also / and @. So a path with an @ is masked too, which does no harm.
    return re.sub(r"^([A-Za-z][A-Za-z0-9+.-]*://)?.*@", r"\1…@", url, flags=re.DOTALL)


def _check_git(git: Git, path: str) -> Iterator[Fault]:
    url_path = f"{path}.url"
    parts = split_url(git.url)
    is_web = git.url.lower().startswith(("https://", "http://"))
    is_ssh = not is_web and (parts is None or not parts.scheme or parts.scheme in ("ssh", "git+ssh", "git"))
    hint = f"must not contain user and password; put them into a Secret and set {path}.secret"
    if is_web and "@" in git.url and (parts is None or "@" in parts.netloc):
        yield invalid(url_path, masked(git.url), hint)
    elif is_ssh and ("@" in git.url or (parts is not None and parts.scheme)):
        yield invalid(url_path, masked(git.url), f"ssh is not supported; use https{_as_https(git.url)}")
    elif parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        yield invalid(url_path, masked(git.url), NO_URL)
    elif parts.query or parts.fragment or not parts.path.strip("/") or re.search(r"[\x00-\x20\x7f]", git.url):
        yield invalid(
            url_path, masked(git.url), "must be the URL of a repository, such as https://example.org/team/code.git"
        )
    if git.revision and NO_REVISION.search(git.revision):
        yield invalid(f"{path}.revision", git.revision, NO_REVISION_HINT)
    yield from check_inner(git.directory, f"{path}.directory")


def _as_https(url: str) -> str:
    """Return the https URL that probably corresponds to an ssh one, as the end of a hint."""
    match = re.fullmatch(r"(?:(?:git\+)?ssh://)?(?:[^@/]+@)?([A-Za-z0-9.-]+)(?::\d+)?[:/]+([^\s?#@]+)", url)
    return f": https://{match[1]}/{match[2]}" if match else ""


def _check_archive(archive: Archive, path: str) -> Iterator[Fault]:
    if (archive.config_map is None) == (archive.claim is None):
        yield invalid(path, archive.digest, EITHER)
    yield from check_inner(archive.path, f"{path}.path")
    yield from check_inner(archive.directory, f"{path}.directory")
