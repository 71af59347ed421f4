"""What is wrong with JSON, in the words that Kubernetes has for it."""

import re

# Going through a larger one to find the place would keep everybody else waiting.
MOST_LOOKED_AT = 64 * 1024
END = "unexpected end of JSON input"
_SPACE = re.compile(rb"[ \t\r\n]*")
_PLAIN = re.compile(rb'[^"\\\x00-\x1f]*')
_NUMBER = re.compile(rb"-?(0|[1-9][0-9]*)?")
_DIGITS = re.compile(rb"[0-9]*")
_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_HEX = b"0123456789abcdefABCDEF"
_ESCAPES = b'"\\/bfnrt'
_VALUE = "looking for beginning of value"
_KEY = "looking for beginning of object key string"


class Wrong(Exception):
    """Raised where the text stops being JSON."""


def what_is_wrong(body: bytes) -> str:
    """Say where a body stops being JSON; for bytes that only we refuse, say that they are no text."""
    if len(body) > MOST_LOOKED_AT:
        return "it is not JSON"
    try:
        _Scan(body).run()
    except Wrong as error:
        return str(error)
    return "invalid UTF-8, or a character or number that JSON does not have"


class _Scan:
    """One pass over a body, without recursion: depth is the sender's choice."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._at = 0

    def run(self) -> None:
        """Go through the whole body; Wrong at the first byte that does not fit."""
        # What closes each open object or list.
        inside: list[bytes] = []
        self._value(inside)
        while inside:
            closing = inside[-1]
            where = "after object key:value pair" if closing == b"}" else "after array element"
            if self._peek(where, b"," + closing) == closing:
                self._at += 1
                inside.pop()
                continue
            self._at += 1
            if closing == b"}":
                self._key()
            self._value(inside)
        self._skip()
        if self._at < len(self._body):
            self._refuse("after top-level value")

    def _value(self, inside: list[bytes]) -> None:
        """Pass a value, or as much of it as comes before its first inner value is over."""
        while True:
            first = self._peek(_VALUE, b'"{[-0123456789tfn')
            if first not in b"{[":
                self._scalar(first)
                return
            self._at += 1
            closing = b"}" if first == b"{" else b"]"
            self._skip()
            if self._body[self._at : self._at + 1] == closing:
                self._at += 1
                return
            inside.append(closing)
            if first == b"{":
                self._key()

    def _key(self) -> None:
        self._peek(_KEY, b'"')
        self._string()
        self._peek("after object key", b":")
        self._at += 1

    def _scalar(self, first: bytes) -> None:
        if first == b'"':
            self._string()
        elif first in _LITERALS:
            word = _LITERALS[first]
            for byte in word:
                if self._next() != bytes((byte,)):
                    self._refuse(f"in literal {word.decode()} (expecting '{chr(byte)}')")
                self._at += 1
        else:
            self._number()

    def _string(self) -> None:
        self._at += 1
        while True:
            self._at = _match_end(_PLAIN, self._body, self._at)
            byte = self._next()
            if byte == b'"':
                self._at += 1
                return
            if byte != b"\\":
                self._refuse("in string literal")
            self._at += 1
            if self._next() == b"u":
                for _ in range(4):
                    self._at += 1
                    if self._next() not in _HEX:
                        self._refuse("in \\u hexadecimal character escape")
            elif self._next() not in _ESCAPES:
                self._refuse("in string escape code")
            self._at += 1

    def _number(self) -> None:
        self._at = _match_end(_NUMBER, self._body, self._at)
        if self._body[self._at - 1 : self._at] == b"-":
            self._next()
            self._refuse("in numeric literal")
        if self._body[self._at : self._at + 1] == b".":
            self._digits("after decimal point in numeric literal")
        if self._body[self._at : self._at + 1] in {b"e", b"E"}:
            if self._body[self._at + 1 : self._at + 2] in {b"+", b"-"}:
                self._at += 1
            self._digits("in exponent of numeric literal")

    def _digits(self, where: str) -> None:
        self._at += 1
        if not self._next().isdigit():
            self._refuse(where)
        self._at = _match_end(_DIGITS, self._body, self._at)

    def _skip(self) -> None:
        self._at = _match_end(_SPACE, self._body, self._at)

    def _peek(self, where: str, allowed: bytes) -> bytes:
        self._skip()
        byte = self._next()
        if byte not in allowed:
            self._refuse(where)
        return byte

    def _next(self) -> bytes:
        byte = self._body[self._at : self._at + 1]
        if not byte:
            raise Wrong(END)
        return byte

    def _refuse(self, where: str) -> None:
        byte = self._next().decode("latin-1")
        shown = {"'": "'\\''", '"': "'\"'"}.get(byte) or (f"'{byte}'" if byte.isprintable() else repr(byte))
        raise Wrong(f"invalid character {shown} {where}")


def _match_end(pattern: re.Pattern[bytes], body: bytes, at: int) -> int:
    found = pattern.match(body, at)
    return found.end() if found else at
