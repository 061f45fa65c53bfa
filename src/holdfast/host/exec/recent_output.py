"""What was read of a command's output while its marks were looked for: small output need not be read again. Pure."""

from __future__ import annotations

from ...model.limits import INLINE_OUTPUT_BYTES
from .marks import MARK_BYTES

# Both marks, and an echo of the typed line before them: a path is at most 4 KB.
_MOST = INLINE_OUTPUT_BYTES + 2 * MARK_BYTES + (8 << 10)


class Heard:
    """One stretch without a hole. Where there is one, or too much, the stretch begins anew after it."""

    __slots__ = ("_at", "_data")

    def __init__(self) -> None:
        self._at = 0
        self._data = b""

    def add(self, offset: int, data: bytes) -> None:
        if offset != self._at + len(self._data):
            self._at, self._data = offset, b""
        if len(self._data) + len(data) <= _MOST:
            self._data += data
        else:
            self._at, self._data = offset + len(data), b""

    def part(self, start: int, end: int) -> bytes | None:
        """The bytes from one offset to another; None unless all of them are here."""
        if not self._at <= start <= end <= self._at + len(self._data):
            return None
        return self._data[start - self._at : end - self._at]
