"""A user's terminal after detaching: as before, with the text still there."""

from __future__ import annotations

import pytest

from holdfast.term.reset import reset_sequence
from holdfast.term.screen import Screen, TerminalEngineMissing
from holdfast.term.screen import reset_sequence as same_function

MESS = (
    b"\x1b[?1;5;45;66;1002;1006;1004;2004;2026h\x1b[>5u\x1b[>4;2m\x1b[2;5r\x1b[?25l\x1b[?7l\x1b[4h\x1b[5 q"
    b"\x1b)0\x0e\x1b[1;31;44m\x1b]8;;http://example.org\x07"
)


def settled(screen: Screen) -> dict[str, object]:
    modes = screen.modes()
    for kept in ("autorepeat", "title"):  # turned on in any case; not ours to clear
        modes.pop(kept)
    return modes


@pytest.mark.parametrize("prelude", [b"", b"\x1b[?1049h", b"\x1b[?1049h\x1b[?6h\x1b[>1u"])
def test_every_mode_is_off_again(prelude: bytes) -> None:
    with Screen(40, 10) as screen, Screen(40, 10) as fresh:
        screen.feed(b"text" + prelude + MESS + b"more" + reset_sequence())
        assert settled(screen) == settled(fresh)
        assert not screen.alternate
        assert "text" in screen.text()


def test_text_and_cursor_stay_where_they_were() -> None:
    with Screen(40, 10) as screen:
        screen.feed(b"one\r\ntwo" + MESS.replace(b"\x1b[2;5r", b"") + reset_sequence())
        assert screen.text().startswith("one\ntwo\n")
        assert screen.cursor == (3, 1)


def test_the_primary_screen_comes_back_with_its_cursor() -> None:
    with Screen(40, 10) as screen:
        screen.feed(b"one\r\ntwo\x1b[?1049h" + MESS + b"over\x1b[7;7H" + reset_sequence())
        assert screen.text().startswith("one\ntwo\n")
        assert screen.cursor == (3, 1)


def test_colours_are_put_back_on_request() -> None:
    with Screen(40, 10) as screen:
        screen.feed(b"\x1b]4;1;#010101\x07\x1b]10;#020202\x07\x1b]11;#030303\x07\x1b]12;#040404\x07")
        screen.feed(reset_sequence())
        assert screen.modes()["background"] == "#030303"
        screen.feed(reset_sequence(colors=True))
        modes = screen.modes()
        assert (modes["palette"], modes["foreground"], modes["background"], modes["cursor_color"]) == (
            {},
            None,
            None,
            None,
        )


def test_it_is_the_function_that_the_screen_module_offers() -> None:
    assert same_function is reset_sequence
    assert issubclass(TerminalEngineMissing, Exception)
