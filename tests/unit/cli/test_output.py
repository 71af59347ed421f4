"""Results on stdout, the way there on stderr, colours only where somebody sees them."""

import io

import pytest

from paceline.cli.output.console import TextOutput


class Terminal(io.TextIOWrapper):
    """A stream that says it is, or is not, a terminal."""

    def __init__(self, *, is_tty):
        super().__init__(io.BytesIO(), encoding="utf-8", write_through=True)
        self._is_tty = is_tty

    def isatty(self):
        return self._is_tty

    @property
    def written(self):
        return self.buffer.getvalue()


@pytest.fixture(autouse=True)
def colours(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_terminal_gets_colours_and_a_file_does_not():
    terminal, file = Terminal(is_tty=True), Terminal(is_tty=False)
    for stream in (terminal, file):
        TextOutput(stream).line("done", "green")

    assert terminal.written == b"\x1b[32mdone\x1b[0m\n"
    assert file.written == b"done\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colours_gets_none(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    terminal = Terminal(is_tty=True)
    TextOutput(terminal).line("done", "green")

    assert terminal.written == b"done\n"


def test_a_name_cannot_bring_its_own_colours():
    terminal = Terminal(is_tty=True)
    TextOutput(terminal).lines(["\x1b[31mevil\x1b[2J", "fine"])

    assert terminal.written == b"evil\nfine\n"


def test_logs_reach_a_file_byte_by_byte():
    file = Terminal(is_tty=False)
    TextOutput(file).log(b"\x1b[31m\xff\x00raw\r10%\n")

    assert file.written == b"\x1b[31m\xff\x00raw\r10%\n"


def test_logs_on_a_terminal_keep_colours_only():
    terminal = Terminal(is_tty=True)
    TextOutput(terminal).log(b"\x1b[31mred\x1b[2J \xff\n")

    assert terminal.written == "\x1b[31mred \ufffd\x1b[0m\n".encode()


def test_only_a_terminal_has_a_width():
    assert TextOutput(Terminal(is_tty=False)).width is None
    assert TextOutput(Terminal(is_tty=True)).width > 0
