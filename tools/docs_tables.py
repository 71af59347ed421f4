"""A hook of MkDocs: long names in tables may break behind a dot or an underscore, and nowhere else.

In     the HTML of a page.
Out    the same with `<wbr>` in the code of table cells; docs/assets/site.css forbids other breaks within a word.
Never  changes what a reader sees or copies.
"""

import re
from typing import Any

CELL = re.compile(r"<td\b.*?</td>", re.DOTALL)
CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
JOINT = re.compile(r"(?<=\w)([._])(?=\w)")


def on_page_content(html: str, **_: Any) -> str:
    """Called by MkDocs with the content of each page."""
    return CELL.sub(lambda cell: CODE.sub(lambda code: JOINT.sub(r"\1<wbr>", code[0]), cell[0]), html)
