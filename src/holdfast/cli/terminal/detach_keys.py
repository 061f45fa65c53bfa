"""Detach keys: a key sequence that ends the client and never reaches the program. Pure."""

from __future__ import annotations

from ...model.errors import invalid

DEFAULT = "ctrl-\\,d"


def parse(text: str) -> bytes:
    """`ctrl-\\,d` or `ctrl-p,ctrl-q` -> the bytes a terminal sends for them."""
    keys = bytearray()
    for part in text.split(","):
        name = part.strip()
        if len(name) == 1:
            keys += name.encode()
        elif name.lower().startswith("ctrl-") and len(name) == 6 and 0x40 <= ord(name[5].upper()) <= 0x5F:
            keys.append(ord(name[5].upper()) & 0x1F)
        else:
            raise invalid(f"{text[:40]!r} are not detach keys", "for example ctrl-\\,d or ctrl-p,ctrl-q")
    if len(keys) < 2 and bytes(keys[:1]) not in (b"\x1c", b"\x1d"):
        raise invalid("one detach key alone would be typed by accident", "use two, for example ctrl-\\,d")
    return bytes(keys)


class DetachKeys:
    """Finds the sequence in typed bytes; holds back only a possible beginning of it."""

    def __init__(self, keys: bytes) -> None:
        self._keys, self._matched = keys, 0

    def feed(self, data: bytes) -> tuple[bytes, bool]:
        """The bytes to pass on, and whether to detach (the rest is discarded)."""
        out = bytearray()
        for byte in data:
            if byte == self._keys[self._matched]:
                self._matched += 1
                if self._matched == len(self._keys):
                    self._matched = 0
                    return bytes(out), True
                continue
            # Not the sequence: type what was held back; this key may begin the sequence again.
            out += self._keys[: self._matched]
            self._matched = 1 if byte == self._keys[0] else 0
            if not self._matched:
                out.append(byte)
        return bytes(out), False
