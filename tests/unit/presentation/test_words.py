"""Every code that a page gets has its words, in both languages."""

import re
from pathlib import Path

import pytest

from paceline.model import reasons
from paceline.presentation.actions import Action, RefusalCode
from paceline.presentation.consequences import ConsequenceCode

LOCALES = Path(__file__).parents[3] / "console" / "src" / "locales"
CODES = {
    "actions.ts": {*Action, *RefusalCode, *ConsequenceCode},
    "reasons.ts": reasons.ALL - {reasons.NONE},
}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("file", CODES)
def test_every_code_has_words(language, file):
    keys = set(re.findall(r"(?m)^ +'?(\w+)'?:", (LOCALES / language / file).read_text()))

    assert {str(code) for code in CODES[file]} - keys == set()
