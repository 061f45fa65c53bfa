"""The terminal modes the engine keeps, by their place in its snapshot, and what `Screen.modes` tells of a state."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.term.sgr import sgr
from holdfast.term.snapshot import Charset, Grid, State


class Mode(NamedTuple):
    bit: int
    number: int
    name: str
    private: bool = True  # a DEC private mode (CSI ? n h); else an ANSI one (CSI n h)


INSERT = Mode(1, 4, "insert", private=False)
ORIGIN = Mode(8, 6, "origin")
AUTOWRAP = Mode(9, 7, "autowrap")
SIDE_MARGINS = Mode(19, 69, "side_margins")
CURSOR_BLINK = Mode(12, 12, "cursor_blink")
ALTERNATE_SCROLL = Mode(26, 1007, "alternate_scroll")
SYNC = Mode(37, 2026, "sync")
CLUSTERS = Mode(38, 2027, "grapheme_clusters")
BRACKETED_PASTE = Mode(36, 2004, "bracketed_paste")

# The mouse reports as the mode set last says. The state's mouse_event and mouse_format tell which; the bits do not.
MOUSE_EVENTS = {
    1: Mode(11, 9, "mouse_x10"),
    2: Mode(20, 1000, "mouse_normal"),
    3: Mode(21, 1002, "mouse_button"),
    4: Mode(22, 1003, "mouse_any"),
}
MOUSE_FORMATS = {
    1: Mode(24, 1005, "mouse_utf8"),
    2: Mode(25, 1006, "mouse_sgr"),
    3: Mode(27, 1015, "mouse_urxvt"),
    4: Mode(28, 1016, "mouse_sgr_pixels"),
}

# Modes that any terminal can be told at any moment, without an effect on what is on its screen.
PLAIN_MODES = (
    Mode(0, 2, "keyboard_locked", private=False),
    Mode(2, 12, "no_local_echo", private=False),
    Mode(4, 1, "app_cursor"),
    Mode(6, 4, "slow_scroll"),
    Mode(7, 5, "reverse_video"),
    Mode(10, 8, "autorepeat"),
    *MOUSE_EVENTS.values(),
    CURSOR_BLINK,
    Mode(13, 25, "cursor_visible"),
    Mode(15, 45, "reverse_wrap"),
    Mode(17, 66, "app_keypad"),
    Mode(18, 67, "backarrow"),
    Mode(23, 1004, "focus"),
    *MOUSE_FORMATS.values(),
    ALTERNATE_SCROLL,
    Mode(29, 1035, "ignore_numlock"),
    Mode(30, 1036, "alt_sends_escape"),
    Mode(31, 1039, "alt_sends_escape_1039"),
    Mode(32, 1045, "reverse_wrap_extended"),
    BRACKETED_PASTE,
)

# Modes that change how the following output is drawn; they are told last.
DRAWING_MODES = (
    INSERT,
    Mode(3, 20, "linefeed", private=False),
    ORIGIN,
    AUTOWRAP,
    SIDE_MARGINS,
    CLUSTERS,
    SYNC,
)

MOUSE_EVENT_NAMES = ("off", "x10", "normal", "button", "any")
MOUSE_FORMAT_NAMES = ("x10", "utf8", "sgr", "urxvt", "sgr_pixels")
CURSOR_STYLE_NAMES = ("bar", "block", "underline", "block_hollow")
CHARSET_NAMES = (
    "ascii",
    "ascii",
    "british",
    "dec_special",
)  # the engine's first is UTF-8, which ASCII is part of


def is_set(word: int, mode: Mode) -> bool:
    return bool(word >> mode.bit & 1)


def describe(state: State, modify_other_keys: int) -> dict[str, object]:
    """Everything besides the text that a client must have restored, in JSON values."""
    active = state.active
    flags: dict[str, object] = {
        mode.name: is_set(state.modes, mode) for mode in (*PLAIN_MODES, *DRAWING_MODES) if "mouse" not in mode.name
    }
    top, bottom, left, right = state.region
    return flags | {
        "mouse": MOUSE_EVENT_NAMES[state.mouse_event],
        "mouse_encoding": MOUSE_FORMAT_NAMES[state.mouse_format],
        "mouse_modes": [m.number for m in (*MOUSE_EVENTS.values(), *MOUSE_FORMATS.values()) if is_set(state.modes, m)],
        "cursor_style": "default" if state.cursor_is_default else CURSOR_STYLE_NAMES[active.cursor_style],
        "keyboard": {
            "primary": list(state.screens[0].keyboard),
            "alternate": list(state.screens[1].keyboard) if 1 in state.screens else [0],
        },
        "modify_other_keys": modify_other_keys,
        "margins": {"top": top, "bottom": bottom, "left": left, "right": right},
        "charset": charset(active.cursor.charset),
        "tab_stops": state.tab_stops,
        "title": text(state.title),
        "pwd": text(state.pwd),
        "palette": {str(index): color(rgb) for index, rgb in state.palette.items()},
        "foreground": color(state.foreground),
        "background": color(state.background),
        "cursor_color": color(state.cursor_color),
        "hyperlink": link(active),
        "sgr": sgr(active.cursor.pen.style),
        "protected": active.cursor.pen.protected,
        "saved_modes": [
            m.number for m in PLAIN_MODES if m.private and is_set(state.saved_modes ^ state.default_modes, m)
        ],
    }


def charset(value: Charset) -> dict[str, object]:
    return {
        "slots": [CHARSET_NAMES[slot] for slot in value.slots],
        "gl": value.gl,
        "gr": value.gr,
        "single_shift": value.single_shift,
    }


def color(rgb: tuple[int, int, int] | None) -> str | None:
    return None if rgb is None else "#{:02x}{:02x}{:02x}".format(*rgb)


def link(grid: Grid) -> dict[str, str] | None:
    found = grid.cursor.pen.link
    return None if found is None else {"id": text(found.id), "uri": text(found.uri)}


def text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
