"""Records: what travels after the handshake, one sealed plaintext each.

    u16 length of the rest · u64 counter · AES-GCM of the padded plaintext and its tag      (big endian)

The counter is the nonce: a changed one does not open. It is sent so that a missing record can be told from a forged
one; a receiver takes exactly the next and ends the channel for any other.
"""

from __future__ import annotations

import struct

from cryptography.exceptions import InvalidTag

from ...model.limits import SEALED_PAD_BYTES, SEALED_RECORD_BYTES, SEALED_REKEY_BYTES, SEALED_REKEY_RECORDS
from .errors import SealedError
from .noise import TAG_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .noise import CipherState

_HEAD = struct.Struct(">HQ")
_LENGTH_BYTES = 2
_COUNTER_BYTES = 8
_OVERHEAD = _COUNTER_BYTES + TAG_BYTES


def body_bytes(plaintext: int) -> int:
    """What the length of a record says for a plaintext of so many bytes."""
    return _OVERHEAD + padded_bytes(plaintext)


def padded_bytes(plaintext: int) -> int:
    """Small plaintexts grow to the next of a few sizes; a large one is bulk, whose size shows anyway."""
    for size in SEALED_PAD_BYTES:
        if plaintext <= size:
            return size
    return plaintext


BODY_BYTES_MAX = body_bytes(SEALED_RECORD_BYTES)


class _Rekeying:
    """One direction's cipher, rekeyed after so many records or bytes; both ends count alike, so nothing is sent."""

    __slots__ = ("_bytes", "_records", "cipher")

    def __init__(self, cipher: CipherState) -> None:
        self.cipher = cipher
        self._records = self._bytes = 0

    def count(self, sealed: int) -> None:
        self._records += 1
        self._bytes += sealed
        if self._records >= SEALED_REKEY_RECORDS or self._bytes >= SEALED_REKEY_BYTES:
            self.cipher.rekey()
            self._records = self._bytes = 0


class Sealer(_Rekeying):
    __slots__ = ()

    def seal(self, plaintext: bytes) -> bytes:
        """A whole record. The caller keeps to SEALED_RECORD_BYTES."""
        counter = self.cipher.n
        sealed = self.cipher.encrypt(plaintext.ljust(padded_bytes(len(plaintext)), b"\0"))
        self.count(len(sealed))
        return _HEAD.pack(_COUNTER_BYTES + len(sealed), counter) + sealed


class Opener(_Rekeying):
    __slots__ = ()

    def open(self, body: memoryview) -> bytes:
        """The padded plaintext of a record, without its length; after an error nothing more may be opened."""
        if len(body) < _OVERHEAD + SEALED_PAD_BYTES[0]:
            raise SealedError("truncated", f"a record of {len(body)} bytes")
        counter = int.from_bytes(body[:_COUNTER_BYTES], "big")
        if counter != self.cipher.n:
            raise SealedError("gap" if counter > self.cipher.n else "replay", f"{counter} instead of {self.cipher.n}")
        sealed = body[_COUNTER_BYTES:]
        try:
            plaintext = self.cipher.decrypt(sealed)
        except InvalidTag:
            raise SealedError("tag", f"record {counter}") from None
        self.count(len(sealed))
        if len(plaintext) != padded_bytes(len(plaintext)):
            raise SealedError("padding", f"{len(plaintext)} bytes")
        return plaintext


class Splitter:
    """A stream of bytes, cut anywhere, into messages; holds at most one that is not whole yet."""

    __slots__ = ("_partial",)

    def __init__(self) -> None:
        self._partial = bytearray()

    def split(self, data: bytes, limit: Callable[[], int]) -> Iterator[memoryview]:
        """Each whole message without its length. `limit` is asked before each, because the channel's state sets it."""
        joined: bytes | bytearray = data
        if self._partial:
            self._partial += data
            joined = self._partial
        at, view = 0, memoryview(joined)
        while len(view) - at >= _LENGTH_BYTES:
            length = int.from_bytes(view[at : at + _LENGTH_BYTES], "big")
            if length > limit():
                raise SealedError("too_long", f"{length} bytes, at most {limit()}")
            end = at + _LENGTH_BYTES + length
            if end > len(view):
                break
            yield view[at + _LENGTH_BYTES : end]
            at = end
        if at or joined is data:
            self._partial = bytearray(view[at:])
        view.release()


def framed(body: bytes) -> bytes:
    """A handshake message with its length."""
    return len(body).to_bytes(_LENGTH_BYTES, "big") + body
