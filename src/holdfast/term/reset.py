"""The bytes that give a user's terminal back in a sane state when a client detaches. Needs no engine."""

from __future__ import annotations

_ALTERNATE = "\x1b7\x1b[?1049l"  # on the primary screen this saves the cursor and puts it back where it was
_SOFT_RESET = "\x1b[!p"  # origin mode, margins, insert and more, without moving the cursor
_MARGINS = "\x1b7\x1b[?69l\x1b[r\x1b8"  # for terminals without a soft reset; setting margins moves the cursor
_OFF = (1, 5, 9, 45, 66, 67, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2027, 2031, 2048)
_ON = (7, 8, 25)  # autowrap, key repeat, visible cursor
_KEYBOARD = "\x1b[<99u\x1b[=0u\x1b[>4m"  # more pops than any stack is deep; flags and modifyOtherKeys off
_DRAWING = '\x1b[2l\x1b[4l\x1b[20l\x1b[12h\x1b>\x1b]8;;\x1b\\\x1b[0"q\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b[0 q\x1b[m'
_COLORS = "\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\"


def reset_sequence(*, colors: bool = False) -> bytes:
    """Leave the alternate screen and turn off whatever a program may have turned on; text and cursor stay.

    With `colors` also undo palette, foreground, background and cursor colour changes. That is not the default
    because it undoes the user's own too, where those were set by escape sequences.
    """
    parts = [
        f"\x1b[?{';'.join(map(str, _OFF))}l",
        _KEYBOARD,  # each screen has a keyboard state: this is for the one in use, the next for the primary one
        _ALTERNATE,
        _KEYBOARD,
        _SOFT_RESET,
        _MARGINS,
        _DRAWING,
        f"\x1b[?{';'.join(map(str, _ON))}h",
    ]
    return "".join([*parts, _COLORS] if colors else parts).encode()
