"""Code from git: find the commit of a branch or tag, and fetch exactly that commit."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from paceline.podtools.cache_volume import mark_used, pack_path, save_pack
from paceline.podtools.reporting import StepFailed

COMMIT = re.compile("[0-9a-f]{40}|[0-9a-f]{64}")
SHORT_COMMIT = re.compile("[0-9a-f]{4,39}")
# Give up on a server that sends less than this for so long.
SLOW = {"GIT_HTTP_LOW_SPEED_LIMIT": "1", "GIT_HTTP_LOW_SPEED_TIME": "60"}
MAX_ERROR_LINES = 20
# Written last into `.git`, with the commit, when the checkout is complete with its submodules.
COMPLETE = "paceline-whole"
REDIRECTED = re.compile(r"The requested URL returned error: 30\d")


class Repository:
    """A repository, and the folder with the `username` and `password` for it."""

    __slots__ = ("revision", "secret", "url")

    def __init__(self, *, url: str, revision: str = "", secret: Path | None = None) -> None:
        self.url, self.revision, self.secret = url, revision, secret

    @property
    def revision_name(self) -> str:
        """Return the revision as messages name it."""
        return self.revision or "the default branch"


def resolve(repository: Repository) -> str:
    """Return the commit of a branch or tag; raise StepFailed with git's output when there is none."""
    revision = repository.revision or "HEAD"
    lines = _git(repository, "ls-remote", "--", repository.url).splitlines()
    commits = {name: commit for commit, _, name in (line.partition("\t") for line in lines)}
    # An annotated tag is an object of its own; git lists its commit with ^{} after the name.
    names = (f"refs/heads/{revision}", f"refs/tags/{revision}^{{}}", f"refs/tags/{revision}", revision)
    commit = next((commits[name] for name in names if name in commits), "")
    if commit:
        return commit
    if not commits:
        raise StepFailed(f"git: {repository.url} has no commits yet")
    if SHORT_COMMIT.fullmatch(revision):
        raise StepFailed(
            f"git: {repository.url} has no branch or tag {revision}; write a commit with all its 40 digits"
        )
    raise StepFailed(f"git: {repository.url} has no branch or tag {revision}{_branches(commits)}")


def clone(repository: Repository, commit: str, folder: Path, cache: Path | None = None) -> None:
    """Check out one commit without its history; a folder with a complete checkout is not changed.

    Commits in the cache are not fetched again. Code that needs a password is not cached.
    """
    if not COMMIT.fullmatch(commit):
        raise StepFailed(f"{commit!r} is not a commit; the job's status should have one")
    complete = folder / ".git" / COMPLETE
    if complete.is_file() and complete.read_text() == commit:
        return
    pack = pack_path(cache, repository.url, commit) if cache is not None and repository.secret is None else None
    if pack is None or not _restore(repository, commit, folder, pack):
        _fetch(repository, commit, folder)
        if pack is not None:
            save_pack(folder, pack)
    if (folder / ".gitmodules").exists():
        _git(repository, "-C", str(folder), "submodule", "update", "--quiet", "--init", "--recursive", "--depth=1")
    complete.write_text(commit)
    complete.chmod(0o666)


def _restore(repository: Repository, commit: str, folder: Path, pack: Path) -> bool:
    """Check out a commit from a cached pack; return False when it is missing or damaged (git checks all hashes)."""
    if not pack.is_file():
        return False
    try:
        _init(repository, folder)
        _git(repository, "-C", str(folder), "index-pack", "--stdin", file=pack)
        (folder / ".git" / "shallow").write_text(f"{commit}\n")
        _check_out(repository, commit, folder)
    except (StepFailed, OSError):
        return False
    mark_used(pack)
    return True


def _fetch(repository: Repository, commit: str, folder: Path) -> None:
    _init(repository, folder)
    fetch = ("-C", str(folder), "fetch", "--quiet", "--no-auto-maintenance")
    try:
        _git(repository, *fetch, "--no-tags", "--depth=1", "--", repository.url, commit)
    except StepFailed:
        # Some servers refuse to send single commits; then fetch all branches and tags.
        refspecs = ("+refs/heads/*:refs/remotes/origin/*", "+refs/tags/*:refs/tags/*")
        _git(repository, *fetch, "--", repository.url, *refspecs)
    _check_out(repository, commit, folder)


def _init(repository: Repository, folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    _git(repository, "init", "--quiet", "--template=", str(folder))
    # URLs of submodules may be relative to it.
    _git(repository, "-C", str(folder), "config", "remote.origin.url", repository.url)


def _check_out(repository: Repository, commit: str, folder: Path) -> None:
    _git(repository, "-C", str(folder), "-c", "advice.detachedHead=false", "checkout", "--quiet", "--force", commit)


def _git(repository: Repository, *arguments: str, file: Path | None = None) -> str:
    """Run git with a file as input and return its output; raise StepFailed with its last lines when it fails."""
    env = {
        **os.environ,
        **SLOW,
        # Use no settings and no passwords of the current user.
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    with (file or Path(os.devnull)).open("rb") as stdin:
        try:
            process = subprocess.run(
                ["git", *_settings(repository), *arguments],
                env=env,
                stdin=stdin,
                capture_output=True,
                check=False,
                # The command may run as any user, and must be able to write to its code.
                umask=0,
            )
        except FileNotFoundError as error:
            raise StepFailed("git is not installed; install it with: apt-get install git") from error
    if process.returncode != 0:
        lines = process.stderr.decode(errors="replace").strip().splitlines()[-MAX_ERROR_LINES:]
        if any(REDIRECTED.search(line) for line in lines):
            lines.append("the server redirects to another URL; use that one: https for http, or with .git at the end")
        raise StepFailed("\n".join(["git could not read the repository:", *lines]))
    return process.stdout.decode(errors="replace")


def _settings(repository: Repository) -> list[str]:
    """Return options that allow only http and https, and read the password from files, for the repository's host."""
    settings = {
        "safe.directory": "*",
        "protocol.allow": "never",
        "protocol.http.allow": "always",
        "protocol.https.allow": "always",
        "credential.helper": "",
        # A redirect may lead to any address that the pod can reach.
        "http.followRedirects": "false",
        "transfer.credentialsInUrl": "die",
        "core.hooksPath": os.devnull,
        # After a power loss the code is fetched again.
        "core.fsync": "none",
        # Keep everything fetched in one pack, which can be cached.
        "fetch.unpackLimit": "1",
    }
    if repository.secret is not None:
        url = urlsplit(repository.url)
        settings[f"credential.{url.scheme}://{url.netloc}.helper"] = _credential_helper(repository.secret)
    return [argument for name, value in settings.items() for argument in ("-c", f"{name}={value}")]


def _credential_helper(secret: Path) -> str:
    """Return a shell function that reads the password from files, so that it is not on a command line."""
    show = " ".join(f"printf '{key}=%s\\n' \"$(cat '{secret}/{key}')\";" for key in ("username", "password"))
    return f'!show() {{ test "$1" = get || exit 0; {show} }}; show'


def _branches(commits: dict[str, str]) -> str:
    heads = sorted(name.removeprefix("refs/heads/") for name in commits if name.startswith("refs/heads/"))
    return f"; it has the branches {', '.join(heads[:8])}{' and others' if len(heads) > 8 else ''}" if heads else ""
