"""Whom this agent has asked to stop, where a full disk could not take it down: a pod must go for there to be room."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from paceline.effects import Files, ProcessHandle
from paceline.node.lifecycle.view import Try
from paceline.node.runtime.state_files import write_asked

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequests:
    """Writes down when a container was asked to stop, and remembers it when that cannot be written."""

    _moments: dict[ProcessHandle, datetime] = field(default_factory=dict)

    def note(self, files: Files, folder: Path, who: ProcessHandle, *, now: datetime, number: int | None = None) -> None:
        """Put it on record, with a signal if somebody chose one, if there is room; else the next agent asks again."""
        try:
            write_asked(files, folder, now, number)
        except OSError as error:
            self._moments[who] = now
            log.warning("not on record that a container is to stop", extra={"folder": str(folder), "error": str(error)})

    def recalled(self, tries: Mapping[str, Try]) -> dict[str, Try]:
        """Add what is only remembered to what the folders say."""
        return {name: self._with_moment(each) for name, each in tries.items()}

    def forget(self, who: ProcessHandle) -> None:
        """Forget one that has ended."""
        self._moments.pop(who, None)

    def _with_moment(self, each: Try) -> Try:
        who = each.started.identity if each.started else None
        moment = self._moments.get(who) if who and each.asked_at is None else None
        return replace(each, asked_at=moment) if moment else each
