"""OSC 7501, the Program Status Protocol: a program reports that it works, is idle or waits for a person. Pure.

    ESC ] 7501 ; ? ST                                   a program asks once whether the terminal supports it
    ESC ] 7501 ; state=blocked:app=NAME:kind=… ST       its later reports (idle, working, blocked, done)

A report decides only what the kernel's facts leave open: whether a program that waits for keys waits for the next
request or for a decision. The texts are the program's, so they are bounded and shown without control characters.
"""

from __future__ import annotations

import base64
import binascii
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

REPLY = b"\x1b]7501;?\x1b\\"  # the question itself, as the protocol asks for it
STATES = ("idle", "working", "blocked", "done")
AT_REST = ("idle", "done")  # waits only for the user's next request

_BEGIN = b"\x1b]7501;"
_PAYLOAD_MAX = 4096  # bytes: a message of some 3,000 characters; agents send about 100
_MESSAGE_MAX = 200  # characters shown: a line in a list
_SEQUENCE = re.compile(rb"\x1b\]7501;([^\x07\x18\x1a\x1b]{0,%d})(?:\x07|\x1b\\)" % _PAYLOAD_MAX)
_NAME = re.compile(r"[\w.-]{1,40}")


class Listener:
    """Parses reports in a program's output, in pieces of any size; keeps only an unfinished sequence. The user sets
    `report`: the newest report and its process."""

    __slots__ = ("_held", "heard_at", "report")

    def __init__(self) -> None:
        self._held = b""
        self.report: dict[str, object] | None = None
        self.heard_at = 0.0  # the moment of the report; only read with one

    @property
    def open(self) -> bool:
        """Whether a sequence has begun that may still be one of these."""
        return bool(self._held)

    def told(self, now: float) -> dict[str, object] | None:
        """The newest report, with its age in seconds."""
        return None if self.report is None else {**self.report, "age": now - self.heard_at}

    def hear(self, data: bytes) -> tuple[bool, dict[str, str | None] | None]:
        """Feed output; returns whether the program asked, and its last report."""
        if not self._held and b"]7501;" not in data and b"\x1b" not in data[-len(_BEGIN) :]:
            return False, None
        data = self._held + data
        asked, said, end = False, None, 0
        for match in _SEQUENCE.finditer(data):
            end = match.end()
            if match[1] == b"?":
                asked = True
            else:
                said = read(match[1]) or said
        self._held = _unfinished(data, end)
        return asked, said


def _unfinished(data: bytes, end: int) -> bytes:
    """The last bytes, where they are the beginning of a sequence that may still become one."""
    start = data.rfind(_BEGIN, end)
    if start >= 0:
        rest = data[start + len(_BEGIN) :]
        whole = len(rest) <= _PAYLOAD_MAX + 1 and not re.search(rb"[\x07\x18\x1a]|\x1b.", rest, re.DOTALL)
        if whole:
            return data[start:]
    most = min(len(_BEGIN) - 1, len(data) - end)
    return next((data[-n:] for n in range(most, 0, -1) if data.endswith(_BEGIN[:n])), b"")


def read(payload: bytes) -> dict[str, str | None] | None:
    """The state, app, kind and message of one report; None if it is not a known report."""
    fields = dict(part.partition("=")[::2] for part in payload.decode("utf-8", "replace").split(":"))
    if fields.get("state") not in STATES:
        return None
    return {"state": fields["state"], "app": _name(fields), "kind": _name(fields, "kind"), "message": _message(fields)}


def _name(fields: Mapping[str, str], key: str = "app") -> str | None:
    value = fields.get(key) or ""
    return value if _NAME.fullmatch(value) else None


def _message(fields: Mapping[str, str]) -> str | None:
    try:
        text = base64.b64decode(fields.get("msg") or "", validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None
    shown = "".join(c if c.isprintable() else " " for c in text).strip()
    return shown[:_MESSAGE_MAX] or None
