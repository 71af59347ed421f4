"""Output of `paceline get`: a table, objects, or one line per change."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from paceline.apimachinery.meta import Object, key_of, name_of, namespace_of
from paceline.cli.output import formats
from paceline.cli.output.console import TextOutput, err, out
from paceline.cli.output.table import aligned, table, widest
from paceline.errors import NotFound
from paceline.host.clock import RealClock
from paceline.model.scheduling_queue import EMPTY
from paceline.presentation.queue_position import waits_for_room
from paceline.sdk.discovery import ResourceKind
from paceline.sdk.reader import ObjectEvent, Reader, scheduling_queue

Rows = tuple[tuple[str, ...], list[tuple[str, ...]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GetOptions:
    """The options of `paceline get`."""

    kind: str = "jobs"
    name: str = ""
    everywhere: bool = False
    watch: bool = False
    kinds: bool = False
    output: str | None = None


class GetView:
    """Reads the requested objects and prints them."""

    def __init__(self, reader: Reader, kinds: tuple[ResourceKind, ...], question: GetOptions) -> None:
        self._reader, self._kinds = reader, kinds
        self._name, self._everywhere, self._output = question.name, question.everywhere, question.output
        self._is_wide = question.output == "wide"
        self._clock = RealClock()
        self._out: TextOutput = out()
        self.question = question

    def once(self) -> None:
        """Print the current objects."""
        if self._output in ("json", "yaml", "name"):
            self._print_objects()
            return
        header, rows = self.rows()
        if rows:
            self._out.lines(table(header, rows, width=None if self._is_wide else self._out.width))
            return
        noun = "jobs" if self._are_jobs else self._kinds[0].where.plural
        err().line(f"No {noun} found" + ("." if self._everywhere else f" in namespace {self._reader.namespace}."))

    def rows(self) -> Rows:
        """Return the header and the rows of the current objects."""
        return self._job_rows(self._objects()) if self._are_jobs else self._table()

    @property
    def _are_jobs(self) -> bool:
        return all(kind.is_job for kind in self._kinds)

    def _objects(self) -> list[tuple[ResourceKind, Object]]:
        matches = list(self._find())
        if self._name and not matches:
            noun = self._kinds[0].where.plural if len(self._kinds) == 1 else "jobs"
            raise NotFound(f"{noun} {self._name!r} not found in namespace {self._reader.namespace!r}")
        return sorted(matches, key=lambda pair: (namespace_of(pair[1]), name_of(pair[1])))

    def _find(self) -> Iterator[tuple[ResourceKind, Object]]:
        for kind in self._kinds:
            if not self._name:
                yield from ((kind, obj) for obj in self._reader.list(kind, everywhere=self._everywhere).items)
                continue
            namespace = self._reader.namespace if kind.where.namespaced else ""
            try:
                yield kind, self._reader.cluster.get(kind.where, namespace, self._name)
            except NotFound:
                continue

    def _print_objects(self) -> None:
        objects = self._objects()
        if self._output == "name":
            self._out.lines(formats.names(objects))
            return
        self._out.document(
            formats.as_text(formats.listed([obj for _, obj in objects], is_one=bool(self._name)), self._output)
        )

    def _job_rows(self, jobs: list[tuple[ResourceKind, Object]]) -> Rows:
        header = formats.WIDE_JOB_HEADER if self._is_wide else formats.JOB_HEADER
        now = self._clock.now()
        are_queued = any(waits_for_room(job) for _, job in jobs)
        queue = scheduling_queue(self._reader.cluster) if are_queued else EMPTY
        rows = [formats.job_row(job, now, is_wide=self._is_wide, queue=queue) for _, job in jobs]
        if not self._everywhere:
            return header, rows
        return ("NAMESPACE", *header), [(namespace_of(job), *row) for (_, job), row in zip(jobs, rows, strict=True)]

    def _table(self, kind: ResourceKind | None = None, name: str = "") -> Rows:
        chosen = kind or self._kinds[0]
        answer = self._reader.table(chosen, name or self._name, everywhere=self._everywhere)
        has_namespace = self._everywhere and chosen.where.namespaced
        return formats.table_rows(answer, self._clock.now(), is_wide=self._is_wide, has_namespace=has_namespace)

    def row_of(
        self, kind: ResourceKind, obj: Object, *, is_gone: bool
    ) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Return header and row of an object that changed; None if it was deleted meanwhile."""
        if self._are_jobs:
            header, rows = self._job_rows([(kind, obj)])
            row = rows[0]
            place = header.index("PHASE")
            return header, (*row[:place], "Deleted", *row[place + 1 :]) if is_gone else row
        try:
            header, rows = self._table(kind, name_of(obj))
        except NotFound:
            return None
        return header, rows[0]


def print_changes(changes: Iterable[ObjectEvent], listing: GetView) -> None:
    """Print a line for every object and for every change, until Ctrl-C."""
    question, to = listing.question, out()
    lines = WatchTable(listing)
    for change in changes:
        if question.output in ("json", "yaml", "name"):
            to.document(as_text(change.kind, change.object, question.output))
        else:
            to.lines(lines.of(change, to.width))


class WatchTable:
    """Rows in columns that only grow; changes that no cell shows are skipped."""

    def __init__(self, listing: GetView) -> None:
        self._listing = listing
        self._widths: list[int] = []
        self._last: dict[tuple[str, ...], tuple[str, ...]] = {}

    def of(self, change: ObjectEvent, width: int | None) -> list[str]:
        """Return the lines for one object: with the header first, none if no cell changed."""
        header_and_row = self._listing.row_of(change.kind, change.object, is_gone=change.is_gone)
        if header_and_row is None:
            return []
        header, row = header_and_row
        shown = tuple(cell for name, cell in zip(header, row, strict=True) if name not in ("AGE", "LAST SEEN"))
        key = (change.kind.where.plural, *key_of(change.object))
        if self._last.get(key) == shown:
            return []
        self._last[key] = shown
        lines = [row] if self._widths else [header, row]
        if not self._widths:
            self._widths = widest([header, *self._listing.rows()[1]])
        self._widths = [max(pair) for pair in zip(widest([row]), self._widths, strict=True)]
        return [aligned(line, self._widths, width) for line in lines]


def as_text(kind: ResourceKind, obj: Object, output: str) -> str:
    """Format one object so that a program can read several in sequence."""
    if output == "name":
        return formats.names([(kind, obj)])[0]
    return formats.as_json(obj) if output == "json" else "---\n" + formats.as_yaml(obj)
