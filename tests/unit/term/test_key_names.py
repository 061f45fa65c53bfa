"""Key names to bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.term.key_names import encode

KEYS = {
    "Enter": b"\r",
    "Return": b"\r",
    "Tab": b"\t",
    "BTab": b"\x1b[Z",
    "S-Tab": b"\x1b[Z",
    "Escape": b"\x1b",
    "Esc": b"\x1b",
    "Space": b" ",
    "BSpace": b"\x7f",
    "Backspace": b"\x7f",
    "C-Backspace": b"\x08",
    "M-Backspace": b"\x1b\x7f",
    "Up": b"\x1b[A",
    "Down": b"\x1b[B",
    "Right": b"\x1b[C",
    "Left": b"\x1b[D",
    "Home": b"\x1b[H",
    "End": b"\x1b[F",
    "PgUp": b"\x1b[5~",
    "PageUp": b"\x1b[5~",
    "PgDn": b"\x1b[6~",
    "PageDown": b"\x1b[6~",
    "NPage": b"\x1b[6~",
    "Insert": b"\x1b[2~",
    "IC": b"\x1b[2~",
    "Delete": b"\x1b[3~",
    "DC": b"\x1b[3~",
    "F1": b"\x1bOP",
    "F4": b"\x1bOS",
    "F5": b"\x1b[15~",
    "F6": b"\x1b[17~",
    "F10": b"\x1b[21~",
    "F12": b"\x1b[24~",
    "C-c": b"\x03",
    "Ctrl-c": b"\x03",
    "^C": b"\x03",
    "^c": b"\x03",
    "C-Space": b"\x00",
    "C-@": b"\x00",
    "C-[": b"\x1b",
    "C-\\": b"\x1c",
    "C-]": b"\x1d",
    "C-^": b"\x1e",
    "C-_": b"\x1f",
    "C-/": b"\x1f",
    "^?": b"\x7f",
    "Ctrl+d": b"\x04",
    "M-x": b"\x1bx",
    "Alt-x": b"\x1bx",
    "M-X": b"\x1bX",
    "M-Enter": b"\x1b\r",
    "C-M-a": b"\x1b\x01",
    "M-^A": b"\x1b\x01",
    "S-Up": b"\x1b[1;2A",
    "M-Up": b"\x1b[1;3A",
    "C-Left": b"\x1b[1;5D",
    "C-S-Right": b"\x1b[1;6C",
    "C-M-S-End": b"\x1b[1;8F",
    "S-F1": b"\x1b[1;2P",
    "C-F5": b"\x1b[15;5~",
    "C-Delete": b"\x1b[3;5~",
    "S-a": b"A",
    "a": b"a",
    "A": b"A",
    "é": "é".encode(),
    "-": b"-",
    "^": b"^",
    "M--": b"\x1b-",
}


@pytest.mark.parametrize("name", KEYS)
def test_a_name_becomes_what_a_terminal_sends(name: str) -> None:
    assert encode(name) == KEYS[name]


@pytest.mark.parametrize("name", [name for name in KEYS if len(name.rpartition("-")[2]) > 2])
def test_case_does_not_matter(name: str) -> None:
    assert encode(name.upper()) == encode(name.lower()) == KEYS[name]


def test_application_cursor_mode_changes_plain_arrows_alone() -> None:
    assert encode("Up", app_cursor=True) == b"\x1bOA"
    assert encode("Home", app_cursor=True) == b"\x1bOH"
    assert encode("C-Up", app_cursor=True) == b"\x1b[1;5A"
    assert encode("PgUp", app_cursor=True) == b"\x1b[5~"


@pytest.mark.parametrize(
    ("name", "hint"), [("Entr", "Enter"), ("PageUpp", "PageUp"), ("C-Dwn", "Down"), ("F13", "F1"), ("", "Enter")]
)
def test_an_unknown_name_is_refused_with_the_closest_ones(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match="there is no key") as caught:
        encode(name)
    assert hint in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["C-é", "C-1", "C-Enter", "C-;"])
def test_what_no_terminal_can_send_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="Ctrl combines"):
        encode(name)


@given(st.text(max_size=12))
def test_any_name_gives_bytes_or_a_value_error(name: str) -> None:
    try:
        assert encode(name)
    except ValueError:
        pass
