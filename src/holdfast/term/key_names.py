"""Key names, as people type them, to the bytes that a terminal sends for those keys."""

from __future__ import annotations

import re

_SHIFT, _ALT, _CTRL = 1, 2, 4  # as xterm adds them up in its modifier parameter
_MODIFIERS = {
    "s": _SHIFT,
    "shift": _SHIFT,
    "m": _ALT,
    "alt": _ALT,
    "meta": _ALT,
    "c": _CTRL,
    "ctrl": _CTRL,
    "control": _CTRL,
}
_PREFIX = re.compile(r"(s|shift|m|alt|meta|c|ctrl|control)[-+](?=.)", re.IGNORECASE | re.DOTALL)

_CHARACTERS = {"Enter": "\r", "Tab": "\t", "Escape": "\x1b", "Space": " ", "Backspace": "\x7f"}
_LETTERED = {"Up": "A", "Down": "B", "Right": "C", "Left": "D", "Home": "H", "End": "F"}
_FUNCTION_LETTERED = {"F1": "P", "F2": "Q", "F3": "R", "F4": "S"}
_NUMBERED = {
    "Insert": 2,
    "Delete": 3,
    "PageUp": 5,
    "PageDown": 6,
    "F5": 15,
    "F6": 17,
    "F7": 18,
    "F8": 19,
    "F9": 20,
    "F10": 21,
    "F11": 23,
    "F12": 24,
}
_ALIASES = {
    "Return": "Enter",
    "CR": "Enter",
    "Esc": "Escape",
    "BSpace": "Backspace",
    "BS": "Backspace",
    "PgUp": "PageUp",
    "PPage": "PageUp",
    "PgDn": "PageDown",
    "PgDown": "PageDown",
    "NPage": "PageDown",
    "IC": "Insert",
    "Ins": "Insert",
    "DC": "Delete",
    "Del": "Delete",
}
_NAMES = {name.lower(): name for name in (*_CHARACTERS, *_LETTERED, *_FUNCTION_LETTERED, *_NUMBERED, *_ALIASES, "BTab")}
# Ctrl with these sends what a VT220 sent; letters are counted from A.
_CTRL_CHARACTERS = {
    " ": 0x00,
    "@": 0x00,
    "2": 0x00,
    "[": 0x1B,
    "3": 0x1B,
    "\\": 0x1C,
    "4": 0x1C,
    "]": 0x1D,
    "5": 0x1D,
    "^": 0x1E,
    "6": 0x1E,
    "_": 0x1F,
    "7": 0x1F,
    "/": 0x1F,
    "?": 0x7F,
    "8": 0x7F,
    "\x7f": 0x08,
}


def encode(name: str, *, app_cursor: bool = False, enter: str = _CHARACTERS["Enter"]) -> bytes:
    """The bytes for one key: `Enter`, `Up`, `F5`, `C-c`, `M-x`, `S-Left`, `^D` or a character itself.

    `app_cursor` is the terminal's application cursor mode, which changes the arrows, Home and End; `enter` is what
    Return sends, which is another character where there is no terminal. Raises ValueError with the closest names for
    one that is unknown.
    """
    modifiers, rest = 0, name
    while match := _PREFIX.match(rest):
        modifiers |= _MODIFIERS[match[1].lower()]
        rest = rest[match.end() :]
    if len(rest) == 2 and rest[0] == "^":
        modifiers, rest = modifiers | _CTRL, rest[1]
    if len(rest) == 1:
        return _character(name, rest, modifiers)
    known = _NAMES.get(rest.lower())
    if known is None:
        raise ValueError(_unknown(name, rest))
    known = _ALIASES.get(known, known)
    if known == "BTab" or (known == "Tab" and modifiers & _SHIFT):
        return b"\x1b\x1b[Z" if modifiers & _ALT else b"\x1b[Z"
    if known == "Enter":
        return _character(name, enter, modifiers & ~_SHIFT)
    if known in _CHARACTERS:
        return _character(name, _CHARACTERS[known], modifiers & ~_SHIFT)
    return _function(known, modifiers, app_cursor=app_cursor)


def _character(name: str, character: str, modifiers: int) -> bytes:
    if modifiers & _CTRL:
        code = _CTRL_CHARACTERS.get(character)
        if code is None and character.isascii() and character.isalpha():
            code = ord(character.upper()) - ord("@")
        if code is None:
            raise ValueError(
                f"a terminal cannot send {name!r}: Ctrl combines with letters, Space, Backspace and @ [ \\ ] ^ _ ?"
            )
        character = chr(code)
    elif modifiers & _SHIFT:
        character = character.upper()
    return (b"\x1b" if modifiers & _ALT else b"") + character.encode()


def _function(known: str, modifiers: int, *, app_cursor: bool) -> bytes:
    if known in _NUMBERED:
        suffix = f";{modifiers + 1}" if modifiers else ""
        return f"\x1b[{_NUMBERED[known]}{suffix}~".encode()
    letter = _LETTERED.get(known) or _FUNCTION_LETTERED[known]
    if modifiers:
        return f"\x1b[1;{modifiers + 1}{letter}".encode()
    return f"\x1b{'O' if app_cursor or known in _FUNCTION_LETTERED else '['}{letter}".encode()


def _unknown(name: str, rest: str) -> str:
    import difflib  # takes longer to load than all of this file, and is needed for mistakes alone

    close = difflib.get_close_matches(rest.lower(), _NAMES, n=3)
    hint = ", ".join(_NAMES[key] for key in close) or "Enter, Up, F5, C-c, M-x or a single character"
    return f"there is no key {name!r}; did you mean {hint}?"
