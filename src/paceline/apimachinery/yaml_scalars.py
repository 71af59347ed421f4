"""What an unquoted word of YAML means: the reading of kubectl, so that one file means one thing everywhere."""

import math
import re

TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
NULL = frozenset({"", "~", "null", "Null", "NULL"})
NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9][0-9]*)")
FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
LONGEST_NUMBER = 64


def plain(text: str) -> str | int | float | bool | None:
    """Read an unquoted word; dates and times stay words, and ValueError says that JSON has no such number."""
    if text in NULL:
        return None
    if text in TRUE:
        return True
    if text in FALSE:
        return False
    if NOT_FINITE.fullmatch(text):
        raise ValueError(f"{text} is a number that JSON does not have")
    if text[0] not in "+-.0123456789":
        return text
    return _number(text)


def is_word(text: str) -> bool:
    """Tell whether a text means itself without quotes, as far as its letters tell: `y` and `1e3` do not."""
    try:
        return plain(text) == text
    except ValueError:
        return False


def _number(text: str) -> str | int | float:
    digits = text.replace("_", "")
    if not FLOAT.fullmatch(digits) and not INTEGER.fullmatch(digits):
        return text
    if len(digits) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(digits)} digits is too long")
    if INTEGER.fullmatch(digits):
        number = _integer(digits)
        if -(2**63) <= number < 2**64:
            return number
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{text} is too large for a number")
    return value


def _integer(digits: str) -> int:
    """Read an integer as Go does, where a leading 0 alone means octal (`defaultMode: 0400`)."""
    bare = digits.lstrip("+-")
    if len(bare) > 1 and bare[0] == "0" and bare[1].isdigit():
        digits = digits.replace("0", "0o", 1)
    return int(digits, 0)
