"""Decision records have one form, and the index lists each of them once.

In     docs/decisions.
Out    records that are too long, lack a part, or are missing in the index.
Never  judges the decisions.
"""

import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "docs" / "decisions"
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
LINES = 40
# Further parts may stand between them, such as "Measured" and "Not chosen".
PARTS = ("Context", "Choice", "What we gave up", "How we would notice it was wrong")


def test_records_are_numbered_without_a_gap():
    assert [int(path.name[:4]) for path in RECORDS] == list(range(1, len(RECORDS) + 1))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.name[:4])
def test_a_record_has_its_number_and_the_four_parts_on_one_page(path):
    lines = path.read_text().splitlines()
    labels = [match[1] for line in lines if (match := re.match(r"\*\*([\w ]+)[.:*]", line))]

    assert lines[0].startswith(f"# {int(path.name[:4])}. ")
    assert list(dict.fromkeys(label for label in labels if label in PARTS)) == list(PARTS)
    assert len(lines) <= LINES
    assert not [line for line in lines[1:] if line.startswith("#")], "parts are bold words, not headings"


def test_the_index_lists_every_record_once_under_its_number():
    rows = re.findall(
        r"^\| (\d+) \| \[.+\]\((\d{4})-\S+\.md\) \| \S.* \|$", (FOLDER / "README.md").read_text(), re.MULTILINE
    )

    assert sorted(int(number) for number, _ in rows) == [int(path.name[:4]) for path in RECORDS]
    assert [int(number) for number, _ in rows] == [int(file) for _, file in rows]
