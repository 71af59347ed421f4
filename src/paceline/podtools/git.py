"""Code from git: find out the commit that a name stands for, and bring exactly that one."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from paceline.podtools.cache_volume import keep_pack, packed, use
from paceline.podtools.reporting import StepFailed

COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
SHORT_COMMIT = re.compile("[0-9a-f]{4,39}")
# A server that sends less than this for so long is gone.
SLOW = {"GIT_HTTP_LOW_SPEED_LIMIT": "1", "GIT_HTTP_LOW_SPEED_TIME": "60"}
LAST_LINES = 20
# Written last into `.git`, with the commit: all of it is there, submodules too.
WHOLE = "paceline-whole"
REDIRECTED = re.compile(r"The requested URL returned error: 30\d")


class Repository:
    """A repository, and the folder with `username` and `password` that opens it."""

    __slots__ = ("revision", "secret", "url")

    def __init__(self, *, url: str, revision: str = "", secret: Path | None = None) -> None:
        self.url, self.revision, self.secret = url, revision, secret

    @property
    def wanted(self) -> str:
        """Name what is wanted of it, for people."""
        return self.revision or "the default branch"


def resolve(repository: Repository) -> str:
    """Find the commit of a branch or tag; StepFailed with git's own words when there is none."""
    revision = repository.revision or "HEAD"
    lines = _git(repository, "ls-remote", "--", repository.url).splitlines()
    found = {name: commit for commit, _, name in (line.partition("\t") for line in lines)}
    # A tag with a message is an object of its own; what it stands for has ^{} behind its name.
    names = (f"refs/heads/{revision}", f"refs/tags/{revision}^{{}}", f"refs/tags/{revision}", revision)
    commit = next((found[name] for name in names if name in found), "")
    if commit:
        return commit
    if not found:
        raise StepFailed(f"git: {repository.url} has no commits yet")
    if SHORT_COMMIT.fullmatch(revision):
        raise StepFailed(
            f"git: {repository.url} has no branch or tag {revision}; write a commit with all its 40 digits"
        )
    raise StepFailed(f"git: {repository.url} has no branch or tag {revision}{_there(found)}")


def clone(repository: Repository, commit: str, into: Path, shelf: Path | None = None) -> None:
    """Bring one commit and nothing of its history; a folder that has it already is left as it is.

    What lies on the shelf is not asked of the server again. Code that needs a password is not put there.
    """
    if not COMMIT.fullmatch(commit):
        raise StepFailed(f"{commit!r} is no commit; the job's status should have one")
    whole = into / ".git" / WHOLE
    if whole.is_file() and whole.read_text() == commit:
        return
    pack = packed(shelf, repository.url, commit) if shelf is not None and repository.secret is None else None
    if pack is None or not _take(repository, commit, into, pack):
        _fetch(repository, commit, into)
        if pack is not None:
            keep_pack(into, pack)
    if (into / ".gitmodules").exists():
        _git(repository, "-C", str(into), "submodule", "update", "--quiet", "--init", "--recursive", "--depth=1")
    whole.write_text(commit)
    whole.chmod(0o666)


def _take(repository: Repository, commit: str, into: Path, pack: Path) -> bool:
    """Lay out what an earlier job was sent, and say whether it was whole: git computes all names anew."""
    if not pack.is_file():
        return False
    try:
        _begin(repository, into)
        _git(repository, "-C", str(into), "index-pack", "--stdin", file=pack)
        (into / ".git" / "shallow").write_text(f"{commit}\n")
        _check_out(repository, commit, into)
    except (StepFailed, OSError):
        return False
    use(pack)
    return True


def _fetch(repository: Repository, commit: str, into: Path) -> None:
    _begin(repository, into)
    fetch = ("-C", str(into), "fetch", "--quiet", "--no-auto-maintenance")
    try:
        _git(repository, *fetch, "--no-tags", "--depth=1", "--", repository.url, commit)
    except StepFailed:
        # Some servers give single commits to nobody; then all branches and tags are brought.
        spec = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
        _git(repository, *fetch, "--", repository.url, *spec)
    _check_out(repository, commit, into)


def _begin(repository: Repository, into: Path) -> None:
    for there in into.iterdir():
        shutil.rmtree(there) if there.is_dir() and not there.is_symlink() else there.unlink()
    _git(repository, "init", "--quiet", "--template=", str(into))
    # Addresses of submodules may be relative to it.
    _git(repository, "-C", str(into), "config", "remote.origin.url", repository.url)


def _check_out(repository: Repository, commit: str, into: Path) -> None:
    _git(repository, "-C", str(into), "-c", "advice.detachedHead=false", "checkout", "--quiet", "--force", commit)


def _git(repository: Repository, *words: str, file: Path | None = None) -> str:
    """Run git, which may read a file, and give what it says; StepFailed with its last lines when it fails."""
    env = {
        **os.environ,
        **SLOW,
        # No settings, and no passwords, of whoever we are.
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    with (file or Path(os.devnull)).open("rb") as given:
        try:
            done = subprocess.run(
                ["git", *_settings(repository), *words],
                env=env,
                stdin=given,
                capture_output=True,
                check=False,
                # Whatever user the command runs as may write beside its code.
                umask=0,
            )
        except FileNotFoundError as error:
            raise StepFailed("git is not installed; install it with: apt-get install git") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-LAST_LINES:]
        if any(REDIRECTED.search(line) for line in said):
            said.append(
                "the server sends on to another address; write that one: https for http, or with .git behind it"
            )
        raise StepFailed("\n".join(["git could not read the repository:", *said]))
    return done.stdout.decode(errors="replace")


def _settings(repository: Repository) -> list[str]:
    """Let git speak http only, and find user and password in files, for the host that they are meant for."""
    told = {
        "safe.directory": "*",
        "protocol.allow": "never",
        "protocol.http.allow": "always",
        "protocol.https.allow": "always",
        "credential.helper": "",
        # What a server sends on to may be anything that the pod reaches.
        "http.followRedirects": "false",
        "transfer.credentialsInUrl": "die",
        "core.hooksPath": os.devnull,
        # What comes goes with the pod: after a loss of power it is fetched again.
        "core.fsync": "none",
        # One file has all that came, and can be kept.
        "fetch.unpackLimit": "1",
    }
    if repository.secret is not None:
        parts = urlsplit(repository.url)
        told[f"credential.{parts.scheme}://{parts.netloc}.helper"] = _helper(repository.secret)
    return [word for name, value in told.items() for word in ("-c", f"{name}={value}")]


def _helper(secret: Path) -> str:
    """Write what git asks for a password: a shell that reads the files, so that none is on a command line."""
    show = " ".join(f"printf '{key}=%s\\n' \"$(cat '{secret}/{key}')\";" for key in ("username", "password"))
    return f'!show() {{ test "$1" = get || exit 0; {show} }}; show'


def _there(found: dict[str, str]) -> str:
    heads = sorted(name.removeprefix("refs/heads/") for name in found if name.startswith("refs/heads/"))
    return f"; it has the branches {', '.join(heads[:8])}{' and others' if len(heads) > 8 else ''}" if heads else ""
