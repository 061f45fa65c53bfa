"""Terminal output as plain text, for pipes and files: no escape sequences, no control characters."""

from __future__ import annotations

import re

# Every part is a run over a character class that cannot overlap with what follows it, so nothing is ever read twice:
# time is linear in the input, however hostile. A sequence that is cut off by the end of the data goes too.
_SEQUENCE = re.compile(
    rb"(?:\x1b\[|\xc2\x9b)[\x00-\x17\x19\x1c-\x3f\x7f]*+[\x40-\x7e]?"  # CSI
    rb"|(?:\x1b\]|\xc2\x9d)[^\x07\x18\x1a\x1b]*+(?:\x07|\x18|\x1a|\x1b\\)?"  # OSC, which BEL may end
    rb"|(?:\x1b[PX^_]|\xc2[\x90\x98\x9e\x9f])[^\x18\x1a\x1b]*+(?:\x18|\x1a|\x1b\\)?"  # DCS, SOS, PM, APC
    rb"|\x1b[\x20-\x2f]*+[\x30-\x7e]?"  # the short ones, and ESC alone
)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]+")


def to_text(data: bytes) -> str:
    """Decoded UTF-8 with newlines and tabs. Of a line that was overwritten (progress bars) the last text is kept."""
    text = _SEQUENCE.sub(b"", data).decode("utf-8", "replace").replace("\r\n", "\n")
    if "\r" in text or "\b" in text:
        text = "\n".join(_overwritten(line) for line in text.split("\n"))
    return _CONTROL.sub("", text)


def _overwritten(line: str) -> str:
    line = line.rstrip("\r").rpartition("\r")[2]
    if "\b" not in line:
        return line
    shown: list[str] = []
    for index, piece in enumerate(line.split("\b")):
        if index and shown:
            shown.pop()
        shown.extend(piece)
    return "".join(shown)
