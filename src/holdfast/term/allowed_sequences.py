"""The table of escape sequences that a person's terminal may get from a program; everything else is removed.

A terminal obeys far more than a screen needs: control of tmux, keys that type, printers, files, reports that arrive as
typed input. So what is forwarded is listed here, by what it does, and each entry may narrow or rewrite a sequence.
Questions are in no entry: the session's own emulator answers them.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Check = Callable[[bytes], bytes | None]  # the parameters as they may be forwarded; None for not at all

# -- CSI: (marker and intermediates, final) ----------------------------------------------------------------------------

DRAWING = b"@ABCDEFGHIJKLMPSTXZ`abdefgmrsu"  # with numbers alone: moving, erasing, scrolling, margins, tabs, colours

_MODES = frozenset({4, 20})  # insert, line feed; not the locking of the keyboard, nor local echo
_PRIVATE_MODES = frozenset(
    {
        *(1, 4, 5, 6, 7, 8, 12, 25, 45, 47, 66, 67, 69, 1045, 1047, 1048, 1049),  # cursor, screen, margins, wrapping
        *(9, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1016),  # mouse and focus
        *(1034, 1035, 1036, 1039, 2004),  # meta keys, bracketed paste
        *(80, 1070, 8452),  # where and how sixel graphics are drawn
        *(2026, 2027),  # drawn at once; how wide clusters are
    }
)


def _modes(known: frozenset[int]) -> Check:
    def check(parameters: bytes) -> bytes | None:
        kept = [number for number in parameters.split(b";") if number.isdigit() and int(number[-9:]) in known]
        return b";".join(kept) or None

    return check


def _title_stack(parameters: bytes) -> bytes | None:
    return parameters if re.fullmatch(rb"2[23](?:;[012])?", parameters) else None


def _any(parameters: bytes) -> bytes | None:
    return parameters


CSI: dict[bytes, Check] = {
    **{bytes([final]): _any for final in DRAWING},
    **dict.fromkeys((b"h", b"l"), _modes(_MODES)),
    **dict.fromkeys((b"?h", b"?l", b"?r", b"?s"), _modes(_PRIVATE_MODES)),
    **dict.fromkeys((b"?J", b"?K", b"?W", b" @", b" A", b" q", b'"q', b"!p", b"'}", b"'~"), _any),  # more of a screen
    **dict.fromkeys((b"$r", b"$t", b"$v", b"$x", b"$z", b"${", b"*x"), _any),  # rectangles
    **dict.fromkeys((b"#p", b"#q", b"#{", b"#}", b"#P", b"#Q"), _any),  # colours put aside
    **dict.fromkeys((b">m", b">n", b">u", b"<u", b"=u"), _any),  # how keys are encoded
    b"t": _title_stack,
}
_CSI = re.compile(rb"([<=>?]?)([0-9;:]*)([\x20-\x2f]*)([\x40-\x7e])")


def csi(text: bytes) -> bytes | None:
    """A sequence without its introducer, as it may be forwarded."""
    match = _CSI.fullmatch(text)
    check = CSI.get(match[1] + match[3] + match[4]) if match else None
    kept = check(match[2]) if match and check else None
    return None if match is None or kept is None else match[1] + kept + match[3] + match[4]


# -- ESC and one letter, or intermediates and a letter; C1 controls as UTF-8 -------------------------------------------

ESCAPES = re.compile(rb"[6-9=>DEHMNOVWc\\no|}~]|[()*+./-][0-9A-Z<=>]|#[3-68]| F")
C1 = frozenset(b"\x84\x85\x88\x8d\x8e\x8f\x96\x97\x9c")  # IND NEL HTS RI SS2 SS3 SPA EPA ST

# -- OSC: by number ----------------------------------------------------------------------------------------------------

_LINKS = re.compile(rb"(?:https?|mailto|file):", re.IGNORECASE)
_ASKED = re.compile(rb"(?:^|[;=:])\?")
_ACTS = re.compile(rb"[\x00-\x1f\x7f]|\xc2[\x80-\x9f]")


def _text(body: bytes) -> bytes | None:
    return body if body.startswith(b";") else None


def _no_question(body: bytes) -> bytes | None:
    return None if _ASKED.search(body) else body


def _folder(body: bytes) -> bytes | None:
    return body if body == b";" or body.startswith(b";file://") else None


def _link(body: bytes) -> bytes | None:
    """One that may not be opened ends the one before it: else its words would lead there."""
    _, separator, uri = body[1:].partition(b";")
    return body if separator and (not uri or _LINKS.match(uri)) else b";;"


def _progress(body: bytes) -> bytes | None:
    return body if re.fullmatch(rb";4(?:;[0-9]*){0,2}", body) else None


OSC: dict[int, Check] = {
    0: _text,
    2: _text,  # titles
    4: _no_question,
    10: _no_question,
    11: _no_question,
    12: _no_question,  # colours, and back to the terminal's own:
    104: _no_question,
    110: _no_question,
    111: _no_question,
    112: _no_question,
    7: _folder,
    8: _link,
    9: _progress,  # and not notifications
    133: _text,  # where prompts, commands and their output begin
    7501: _no_question,  # a program's status
}
CLIPBOARD = 52  # to write it, only where the person's setting allows that; never to read it


def osc(number: int, body: bytes, *, clipboard: bool) -> bytes | None:
    """What follows the number, as it may be forwarded."""
    if _ACTS.search(body):
        return None
    if number == CLIPBOARD:
        return _no_question(body) if clipboard else None
    check = OSC.get(number)
    return check(body) if check else None


# -- strings with a payload: sixel graphics (DCS q), kitty graphics (APC G) --------------------------------------------

SIXEL = re.compile(rb"[0-9;]*+q")
NO_PAYLOAD = bytes(sorted({*range(256)} - {9, 10, 13, *range(0x20, 0x7F)}))  # what no picture is made of
_KITTY = re.compile(rb"G(?:[a-zA-Z]=[0-9a-zA-Z-]+(?:,|(?=\Z)))*")
_FROM_ELSEWHERE = (b"t=f", b"t=t", b"t=s")  # a file, a file to be deleted, shared memory


def kitty(control: bytes) -> bytes | None:
    """The control data of a picture, told to answer nothing; None for a question, or a picture from a file."""
    if not _KITTY.fullmatch(control):
        return None
    pairs = [pair for pair in control[1:].split(b",") if pair and not pair.startswith(b"q=")]
    if b"a=q" in pairs or any(pair in _FROM_ELSEWHERE for pair in pairs):
        return None
    return b"G" + b",".join([*pairs, b"q=2"])
