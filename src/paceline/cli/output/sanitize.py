"""Removes terminal control sequences from untrusted text, except colours."""

import re

# Escape sequences: CSI, OSC, other strings (DCS, SOS, PM, APC), single escapes; in 7 and 8 bits.
_CSI = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
_ESCAPE = r"\x1b[ -/]*[0-~]"
SEQUENCE = re.compile(f"{_CSI}|{_STRING}|{_ESCAPE}")
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")
RESET = "\x1b[0m"

# Characters that move, hide or reorder the text around them.
_HIDDEN = "\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
ODD = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_HIDDEN}]")


def plain(text: str) -> str:
    """Return one line of plain text: no escape sequences or line breaks, control characters made visible."""
    if text.isascii() and text.isprintable():
        return text
    return ODD.sub(_visible, SEQUENCE.sub("", text).replace("\n", " ").replace("\t", " "))


def coloured(text: str) -> str:
    """Return log lines for a terminal: colours stay and are reset at the end of each line, other sequences go."""
    if not ODD.search(text):
        return text
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not ODD.search(text):
        return text
    return "".join(_coloured_line(line) for line in text.splitlines(keepends=True) or [text])


def _coloured_line(line: str) -> str:
    if not ODD.search(line):
        return line
    body, newline = (line[:-1], "\n") if line.endswith("\n") else (line, "")
    pieces = []
    has_colour, start = False, 0
    for sequence in SEQUENCE.finditer(body):
        pieces.append(ODD.sub(_visible, body[start : sequence.start()]))
        if COLOUR.fullmatch(sequence[0]):
            has_colour = True
            pieces.append(sequence[0])
        start = sequence.end()
    pieces.append(ODD.sub(_visible, body[start:]))
    return "".join(pieces) + (RESET if has_colour else "") + newline


def escaped(text: str) -> str:
    """Escape control characters inside JSON strings and double-quoted YAML strings."""
    return ODD.sub(_escape, text)


def shown(text: str) -> str:
    """Return a multi-line text with control characters made visible."""
    return ODD.sub(_visible, text)


def _escape(match: re.Match[str]) -> str:
    # JSON escapes characters above U+FFFF as surrogate pairs only; YAML output goes through `yaml_text`.
    units = match[0].encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return f"^{chr(code + 0x40)}"
    return "^?" if code == 0x7F else f"<U+{code:04X}>"
