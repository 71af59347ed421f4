"""Nothing that a job writes, or that somebody names an object, can order a terminal about."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paceline.cli.output.console import COLOUR, ODD, coloured, plain

LINES = {
    "words stay": ("epoch 3/12 loss 0.1\n", "epoch 3/12 loss 0.1\n"),
    "Chinese stays": ("训练完成\n", "训练完成\n"),
    "tabs stay": ("a\tb\n", "a\tb\n"),
    "colours stay and end with their line": ("\x1b[1;31mred\nnext\n", "\x1b[1;31mred\x1b[0m\nnext\n"),
    "true colours stay": ("\x1b[38:2::1:2:3mx\x1b[m\n", "\x1b[38:2::1:2:3mx\x1b[m\x1b[0m\n"),
    "the screen is not cleared": ("\x1b[2J\x1b[Hgone\n", "gone\n"),
    "the cursor does not move": ("up\x1b[3Aover\n", "upover\n"),
    "modes are not switched": ("\x1b[?1049h\x1b[?25lx\n", "x\n"),
    "the title is not set": ("\x1b]0;pwned\x07x\n", "x\n"),
    "links are not made": ("\x1b]8;;http://evil\x1b\\click\x1b]8;;\x1b\\\n", "click\n"),
    "the clipboard is not written": ("\x1b]52;c;cm0gLXJm\x07x\n", "x\n"),
    "a sequence that does not end takes only its line": ("\x1b]0;evil\nnext\n", "\nnext\n"),
    "device control strings go": ("\x1bPq#0;2;0;0;0\x1b\\x\n", "x\n"),
    "8-bit sequences go": ("\x9b2Jx\x9d0;t\x9cy\n", "xy\n"),
    "resets of the terminal go": ("\x1bcx\x1b(0y\n", "xy\n"),
    "a lone escape is shown": ("a\x1b\n", "a^[\n"),
    "bells and backspaces are shown": ("a\x07b\x08c\x7f\n", "a^Gb^Hc^?\n"),
    "the end of a Windows line is a line": ("a\r\nb\r\n", "a\nb\n"),
    "nothing is written over": ("rm -rf /\rok      \n", "rm -rf /\nok      \n"),
    "directions are shown": ("a\u202eb\u2066c\n", "a<U+202E>b<U+2066>c\n"),
    "the last line may be open": ("a\x1b[2Jb", "ab"),
}


@pytest.mark.parametrize(("text", "shown"), LINES.values(), ids=LINES)
def test_log_lines_on_a_terminal(text, shown):
    assert coloured(text) == shown


CELLS = {
    "words stay": ("digits", "digits"),
    "even colours go": ("\x1b[31mred\x1b[0m", "red"),
    "a cell is one line": ("two\nlines\tand tabs", "two lines and tabs"),
    "a carriage return is shown": ("evil\rgood", "evil^Mgood"),
    "a sequence that does not end takes only its line": ("\x1b]0;evil\nnext", " next"),
    "titles go": ("\x1b]0;t\x07name", "name"),
}


@pytest.mark.parametrize(("text", "shown"), CELLS.values(), ids=CELLS)
def test_names_and_messages(text, shown):
    assert plain(text) == shown


@given(st.text(st.characters(max_codepoint=0x2100)))
def test_whatever_comes_in_nothing_odd_goes_out(text):
    assert not ODD.search(plain(text))
    assert not ODD.search(COLOUR.sub("", coloured(text)))


@given(st.text("\x1b[]0;m\x07\\\x9b\x9c1Aa\n\r"))
def test_no_sequence_is_put_together_from_the_pieces_of_others(text):
    assert not ODD.search(plain(text))
    assert not ODD.search(COLOUR.sub("", coloured(text)))
