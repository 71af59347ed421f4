"""Every reason and every advice has words in both languages of the console."""

import re
from pathlib import Path

import pytest

from paceline.model import reasons
from paceline.presentation.actions import RefusalCode
from paceline.presentation.consequences import ConsequenceCode
from paceline.presentation.failure_advice import ADVICE

LOCALES = Path(__file__).parents[3] / "console" / "src" / "locales"
ENTRY = re.compile(r"^  '?([\w-]+)'?: \['(.+)', '(.+)'\],$", re.MULTILINE)


def words(language):
    entries = ENTRY.findall((LOCALES / language / "reasons.ts").read_text())
    return {code: (title, advice) for code, title, advice in entries}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_reason_has_a_title_and_a_sentence_about_what_to_do(language):
    assert set(words(language)) == {*reasons.ALL, *reasons.NODE, *ADVICE}


def test_the_chinese_words_are_chinese():
    english = [
        code for code, texts in words("zh").items() if not all(re.search("[\u4e00-\u9fff]", text) for text in texts)
    ]

    assert english == []


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("section", "codes"), [("refused", RefusalCode), ("consequences", ConsequenceCode)])
def test_every_refusal_and_consequence_of_an_action_has_words(language, section, codes):
    text = (LOCALES / language / "actions.ts").read_text()
    block = text.partition(f"  {section}: {{")[2].partition("\n  },")[0]

    assert set(re.findall(r"^    (\w+): \(", block, re.MULTILINE)) == {code.value for code in codes}
