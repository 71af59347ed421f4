"""A page in Chinese has the blocks of its English page, and each page links to the other.

In     README.zh-CN.md and docs/zh/, and the English pages of the same names.
Out    blocks that differ, pages without an English page, missing links.
Never  compares prose: a person must read that.
"""

import os
import re
from itertools import zip_longest

import pytest
from tests.docs.blocks import ROOT, blocks_of, pages

ENGLISH, CHINESE = ROOT / "docs", ROOT / "docs" / "zh"
PAIRS = {ROOT / "README.zh-CN.md": ROOT / "README.md"}
PAIRS |= {page: ENGLISH / page.relative_to(CHINESE) for page in pages() if page.is_relative_to(CHINESE)}
parametrize_pairs = pytest.mark.parametrize(
    ("chinese", "english"), PAIRS.items(), ids=[str(page.relative_to(ROOT)) for page in PAIRS]
)


def test_the_tutorials_are_there_in_chinese():
    names = {"README", "install", "first-job", "script-to-workers", "tensorboard", "debug", "coming-from"}

    assert names | {"applications-code", "applications-values"} <= {page.stem for page in PAIRS}


@parametrize_pairs
def test_a_translation_has_the_blocks_of_its_english_page(chinese, english):
    pairs = zip_longest(blocks_of(english), blocks_of(chinese))
    different = [
        f"{theirs or 'no block'} became {ours or 'no block'}"
        for theirs, ours in pairs
        if ours is None or theirs is None or (ours.info, ours.text) != (theirs.info, theirs.text)
    ]

    assert different == []


@parametrize_pairs
def test_a_translation_and_its_english_page_link_to_each_other(chinese, english):
    for page, language, other in ((chinese, "English", english), (english, "中文", chinese)):
        link = f"[{language}]({os.path.relpath(other, page.parent)})"

        assert re.match(rf"# .+\n\n{re.escape(link)}\n\n", page.read_text()), f"{page}: {link} belongs below the title"
