"""Every promise has a test, and docs/internals/features.md names it."""

import re

from tests.docs.promises import CONSOLE, CONSOLE_ALONE, LACKING, PAGE, PROMISES, page, shown

# The rows that pods, jobs, and applications had to keep.
PODS = (
    "T-06 T-09 T-10 H-02 H-03 H-04 H-08 H-18 H-22..26 H-58 H-62 H-65 H-69 S-03 S-04 S-24 S-38 S-42..47 "
    "X-13..18 X-24..26 X-32"
)
JOBS = "T-01..03 T-11 T-13 T-16 T-18..20 H-04..12 H-33..35 H-61 H-68 S-20..22 S-33 S-46 S-48 S-51..54 X-01..16 X-22..27"
APPLICATIONS = (
    "H-01 H-09..14 H-16 H-17 H-20 H-21 H-29..32 H-36..57 H-59 H-60 H-63 H-66 H-70..73 S-01 S-02 S-06..19 S-23..32 "
    "S-34..37 S-39..41 S-49 S-50 X-22 X-23 X-31 D-01 D-02 D-04 D-05 D-07 D-11"
)


def rows(text: str) -> set[str]:
    """Read `H-22..26` as five rows."""
    found = set()
    for letter, first, last in re.findall(r"([A-Z])-(\d\d)(?:\.\.(\d\d))?", text):
        found |= {f"{letter}-{number:02}" for number in range(int(first), int(last or first) + 1)}
    return found


def test_every_promise_is_listed():
    assert set(PROMISES) == rows(PODS) | rows(JOBS) | rows(APPLICATIONS)


def test_every_promise_has_a_test():
    without = set(PROMISES) - set(shown())

    # Those that others are at work on may come with their tests at any time.
    assert without - {row for row, what in LACKING.items() if what == "under way"} == set(CONSOLE_ALONE)


def test_what_is_lacking_is_about_a_promise():
    assert {*CONSOLE, *CONSOLE_ALONE, *LACKING} <= set(PROMISES)


def test_the_page_is_current():
    assert PAGE.read_text() == page(), "python -m tests.docs.promises writes it"
