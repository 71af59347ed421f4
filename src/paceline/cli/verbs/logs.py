"""`paceline logs`: what a job's members wrote, or write now."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import click

from paceline.cli import failures
from paceline.cli.output import out, say_hint
from paceline.cli.reach import Reach, reaches_cluster
from paceline.cli.sessions import session as session_with
from paceline.cli.times import seconds_of
from paceline.cli.watchful import prefixed
from paceline.errors import Missing
from paceline.sdk.follow import Choice, Logged
from paceline.sdk.history import History
from paceline.sdk.job import JobRef
from paceline.sdk.pods import pod_log
from paceline.sdk.session import Session
from paceline.sdk.sources import LogAsk

PODS = ("pod", "pods", "po")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What `paceline logs` was asked."""

    follow: bool = False
    all: bool = False
    role: str = ""
    index: int | None = None
    container: str = ""
    tail: int | None = None
    since: int | None = None
    timestamps: bool = False
    previous: bool = False

    def ask(self) -> LogAsk:
        """Give the part that the server answers."""
        return LogAsk(
            is_followed=self.follow,
            tail=self.tail,
            since_seconds=self.since,
            has_timestamps=self.timestamps,
            is_previous=self.previous,
            container=self.container,
        )

    @property
    def is_shared(self) -> bool:
        """Tell whether several members may be shown, so that each line says whose it is."""
        return self.all or bool(self.role and self.index is None)

    def choice(self) -> Choice:
        """Give whose log is meant."""
        return Choice(is_all=self.all, role=self.role, index=self.index)


def read_since(_ctx: click.Context, _param: click.Parameter, value: str | None) -> int | None:
    """Read --since."""
    if value is None:
        return None
    try:
        return seconds_of(value)
    except ValueError as error:
        raise click.BadParameter(f"{value!r} is not a duration; write 30s, 5m or 1h30m") from error


@click.command()
@click.argument("name")
@click.option("-f", "--follow", is_flag=True, help="Go on until the job ends, also across restarts.")
@click.option("--all", is_flag=True, help="All members, each line with its member before it.")
@click.option("--role", default="", help="The members of one role, such as worker.")
@click.option("--index", type=click.IntRange(min=0), help="The member with this number.")
@click.option("-c", "--container", default="", help="This container of the pod.")
@click.option("--tail", type=click.IntRange(min=0), help="Only the last so many lines.")
@click.option("--since", callback=read_since, help="Only what is newer, such as 30s, 5m or 1h30m.")
@click.option("--timestamps", is_flag=True, help="Put the time before every line.")
@click.option("-p", "--previous", is_flag=True, help="The try before the last one.")
@reaches_cluster
def command(*, reach: Reach, name: str, **options: Any) -> int:
    r"""Print or follow the log of a job.

    NAME is a job (its leader is shown unless you choose others) or a pod. What deleted jobs and pods wrote is kept for
    a while, too.

    \b
    paceline logs -f digits
    paceline logs digits --all --tail 20
    paceline logs digits --role worker --index 1
    """
    wanted = Wanted(**options)
    to = out()
    with session_with(reach) as session:
        for member, text in chunks(session, name, wanted):
            to.log(prefixed(text, f"{member} │ ".encode()) if member else text)
    return failures.OK


def chunks(session: Session, name: str, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    """Give the pieces of the log, each with the member it is from where several are shown; of what is gone, if so."""
    has_begun = False
    try:
        for piece in present(session, name, wanted):
            has_begun = True
            yield piece
    except Missing as error:
        if has_begun:
            raise
        yield from gone(session, name, wanted, error)


def present(session: Session, name: str, wanted: Wanted) -> Iterator[tuple[str, bytes]]:
    """Give the log of a job or a pod that is there."""
    kind, slash, rest = name.partition("/")
    try:
        ref = None if slash and kind in PODS else session.job(name)
    except Missing:
        if slash or not session.has_pod(name):
            raise
        ref = None
    if ref is None:
        yield from (("", text) for text in pod_log(session, rest or name, wanted.ask()))
        return
    count = 0
    for logged in ref.chunks(wanted.choice(), wanted.ask()):
        count += 1
        yield (str(logged.place) if wanted.is_shared else ""), logged.text
    for logged in cleaned_up(session, ref, wanted) if wanted.all and not (wanted.follow or wanted.previous) else ():
        count += 1
        yield str(logged.place), logged.text
    if not count:
        say_hint(f"{ref} has written nothing")


def cleaned_up(session: Session, ref: JobRef, wanted: Wanted) -> Iterator[Logged]:
    """Give what was kept of those members whose pods are gone although the job is there."""
    there = {pod.name for pod in ref.pods()}
    rows = (row for task in ref.status().tasks for row in task.get("replicas") or ())
    missing = {row["name"] for row in rows} - there
    history = History(cluster=session.cluster, namespace=session.namespace)
    found = history.pods(job=ref.name) if missing else ()
    mine = [each for each in found if each.owner == ref.uid and each.name in missing and not each.pruned_at]
    if mine:
        names = ", ".join(sorted(each.name for each in mine))
        say_hint(f"gone, with what was kept of their log: {names}")
        yield from history.job_log(mine, wanted.choice(), wanted.ask())


def gone(session: Session, name: str, wanted: Wanted, error: Missing) -> Iterator[tuple[str, bytes]]:
    """Give what was kept of the log of a job or a pod that is gone; where nothing was, raise what was raised before."""
    kind, slash, rest = name.partition("/")
    history, plain = History(cluster=session.cluster, namespace=session.namespace), rest or name
    is_pod = bool(slash) and kind in PODS
    owner = "" if is_pod else uid_of_job(session, name)
    # Of a job that is there, not what another one of its name has left.
    pods = [] if is_pod else [each for each in history.pods(job=plain) if owner in ("", each.owner)]
    if pods:
        say_hint(f"the pods of {plain} are gone (since {pods[0].gone_at[:19]}Z); this is what was kept of their log")
        for logged in history.job_log(pods, wanted.choice(), wanted.ask()):
            yield (str(logged.place) if wanted.is_shared else ""), logged.text
        return
    pods = [] if owner or (slash and not is_pod) else list(history.pods(pod=plain))
    if not pods:
        raise error
    say_hint(f"pod {plain} is gone (since {pods[0].gone_at[:19]}Z); this is what was kept of its log")
    yield from (("", text) for text in history.pod_log(pods[0], wanted.ask()))


def uid_of_job(session: Session, name: str) -> str:
    """Tell which job has a name now; empty when none has."""
    try:
        return session.job(name).uid
    except Missing:
        return ""
