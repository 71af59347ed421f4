"""Output of `paceline get`: a table, objects, or one line per change."""

from collections.abc import Iterator
from dataclasses import dataclass

from paceline.apimachinery.meta import Object, name_of, namespace_of
from paceline.cli import exit_codes
from paceline.cli.output import formats
from paceline.cli.output.console import Output, err, out
from paceline.cli.output.table import table
from paceline.errors import NotFound
from paceline.host.clock import RealClock
from paceline.sdk.discovery import Kind
from paceline.sdk.reader import Reader

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


class Listing:
    """Reads the requested objects and prints them."""

    def __init__(self, reader: Reader, kinds: tuple[Kind, ...], question: GetOptions) -> None:
        self._reader, self._kinds = reader, kinds
        self._name, self._everywhere, self._output = question.name, question.everywhere, question.output
        self._is_wide = question.output == "wide"
        self._clock = RealClock()
        self._out: Output = out()
        self.question = question

    def once(self) -> int:
        """Print the current objects."""
        if self._output in ("json", "yaml", "name"):
            return self._print_objects()
        header, rows = self._rows()
        if not rows:
            noun = "jobs" if self._are_jobs else self._kinds[0].where.plural
            err().line(f"No {noun} found" + ("." if self._everywhere else f" in namespace {self._reader.namespace}."))
            return exit_codes.OK
        self._print_rows(header, rows)
        return exit_codes.OK

    def rows(self) -> list[tuple[str, ...]]:
        """Return the rows of the current objects."""
        return self._rows()[1]

    def _rows(self) -> Rows:
        return self._job_rows(self._objects()) if self._are_jobs else self._table()

    @property
    def _are_jobs(self) -> bool:
        return all(kind.is_job for kind in self._kinds)

    def _objects(self) -> list[tuple[Kind, Object]]:
        matches = list(self._find())
        if self._name and not matches:
            noun = self._kinds[0].where.plural if len(self._kinds) == 1 else "jobs"
            raise NotFound(f"{noun} {self._name!r} not found in namespace {self._reader.namespace!r}")
        return sorted(matches, key=lambda pair: (namespace_of(pair[1]), name_of(pair[1])))

    def _find(self) -> Iterator[tuple[Kind, Object]]:
        for kind in self._kinds:
            if not self._name:
                yield from ((kind, obj) for obj in self._reader.list(kind, everywhere=self._everywhere).items)
                continue
            namespace = self._reader.namespace if kind.where.namespaced else ""
            try:
                yield kind, self._reader.cluster.get(kind.where, namespace, self._name)
            except NotFound:
                continue

    def _print_objects(self) -> int:
        objects = self._objects()
        if self._output == "name":
            self._out.lines(formats.names(objects))
            return exit_codes.OK
        shown = formats.listed([obj for _, obj in objects], is_one=bool(self._name))
        self._out.document(formats.as_json(shown) if self._output == "json" else formats.as_yaml(shown))
        return exit_codes.OK

    def _job_rows(self, jobs: list[tuple[Kind, Object]]) -> Rows:
        header = formats.WIDE_JOB_HEADER if self._is_wide else formats.JOB_HEADER
        now = self._clock.now()
        rows = [formats.job_row(job, now, is_wide=self._is_wide) for _, job in jobs]
        if not self._everywhere:
            return header, rows
        return ("NAMESPACE", *header), [(namespace_of(job), *row) for (_, job), row in zip(jobs, rows, strict=True)]

    def _table(self, kind: Kind | None = None, name: str = "") -> Rows:
        chosen = kind or self._kinds[0]
        answer = self._reader.table(chosen, name or self._name, everywhere=self._everywhere)
        has_namespace = self._everywhere and chosen.where.namespaced
        return formats.table_rows(answer, self._clock.now(), is_wide=self._is_wide, has_namespace=has_namespace)

    def row_of(self, kind: Kind, obj: Object, *, is_gone: bool) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
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

    def _print_rows(self, header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        width = None if self._is_wide else self._out.width
        self._out.lines(table(header, rows, width=width))
