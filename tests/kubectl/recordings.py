"""The recordings: one text file per file of cases, to be read by people too."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from tests.kubectl.normal import without_sentences
from tests.kubectl.table import HERE, Case

FOLDER = HERE / "recorded"
NO_NEWLINE = "\\ no newline at the end\n"
BLOCK = re.compile(
    r"^=== (?P<name>[^\n]+)\n(?P<command>\$ [^\n]*\n)(?P<end>[^\n]+)\n"
    r"--- stdout\n(?P<out>.*?)--- stderr\n(?P<err>.*?)(?=^=== |\Z)",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """How a command ended and what it said, normalised."""

    end: str
    out: str
    err: str

    @property
    def text(self) -> str:
        """The body of its block in a recording."""
        return f"{self.end}\n--- stdout\n{_closed(self.out)}--- stderr\n{_closed(self.err)}"

    @property
    def compared(self) -> str:
        """The same without the sentences of the server."""
        return replace(self, err=without_sentences(self.err)).text


@cache
def recordings(file: str) -> Mapping[str, Said]:
    """Every recording of one file of cases, by case."""
    path = FOLDER / f"{file}.txt"
    text = path.read_text() if path.exists() else ""
    return {
        found["name"]: Said(end=found["end"], out=_opened(found["out"]), err=_opened(found["err"].removesuffix("\n")))
        for found in BLOCK.finditer(text)
    }


def write(file: str, said: Iterable[tuple[Case, Said]]) -> Path:
    """Write all recordings of one file of cases."""
    blocks = [f"=== {case.name}\n$ {case.run.strip()}\n{each.text}" for case, each in said]
    path = FOLDER / f"{file}.txt"
    path.write_text("\n".join(blocks) + "\n")
    recordings.cache_clear()
    return path


def _closed(text: str) -> str:
    return text if not text or text.endswith("\n") else f"{text}\n{NO_NEWLINE}"


def _opened(text: str) -> str:
    return text.removesuffix(f"\n{NO_NEWLINE}")
