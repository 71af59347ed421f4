"""Writes the lists of docs/internals/conformance.md from the cases: `python -m tests.conformance.page`."""

from collections.abc import Iterator

from tests.conformance.answers import differences
from tests.conformance.table import HERE, all_cases

PAGE = HERE.parents[1] / "docs" / "internals" / "conformance.md"
# What follows it is written by this program.
MARK = "<!-- From here on written by `make conformance`. -->\n"


def page() -> str:
    """Give the page as it should be: what people wrote above the mark, and the lists below it."""
    head, _, _ = PAGE.read_text().partition(MARK)
    return head + MARK + "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    cases = all_cases()
    yield ""
    yield "## Where it may differ"
    yield ""
    yield from (f"- {each.reason}" for each in differences())
    yield ""
    yield f"## The {len(cases)} behaviours"
    for topic in sorted({case.topic for case in cases}):
        yield ""
        yield f"### {topic.capitalize()}"
        yield ""
        yield from (f"- {case.name}" for case in cases if case.topic == topic)


if __name__ == "__main__":
    PAGE.write_text(page())
