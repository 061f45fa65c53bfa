"""Frames: what the plaintext of a record holds, whole frames one after the other, then zeros.

    u8 type · u32 stream · u16 length · payload                (big endian)

Frozen with the channel's version; an unknown type ends the channel.
"""

from __future__ import annotations

import re
import struct

from ...model.limits import SEALED_END_BYTES_MAX, SEALED_PURPOSE_BYTES_MAX
from .errors import SealedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

OPEN = 1  # u8 class · what the stream is for
DATA = 2  # bytes, at least one
CREDIT = 3  # u32 bytes that the receiver has consumed
CLOSE = 4  # the sender sends no more on this stream
RESET = 5  # the stream is over in both directions; what is queued is dropped
PING = 6  # u64, answered by PONG; stream 0
PONG = 7  # u64 of the last PING; stream 0
END = 8  # code · 0 · message: the channel is over; stream 0

INTERACTIVE = 0  # keystrokes and what answers them
BULK = 1

_HEAD = struct.Struct(">BIH")
HEAD_BYTES = _HEAD.size
_U32 = struct.Struct(">I")
_U64 = struct.Struct(">Q")
_CODE = re.compile(r"[a-z_]{1,32}")
# The exact size of each payload, or the largest; what is not here is no frame. DATA is bounded by its record.
_SIZES = {
    OPEN: range(1, 2 + SEALED_PURPOSE_BYTES_MAX),
    DATA: range(1, 1 << 16),
    CREDIT: range(_U32.size, _U32.size + 1),
    CLOSE: range(1),
    RESET: range(1),
    PING: range(_U64.size, _U64.size + 1),
    PONG: range(_U64.size, _U64.size + 1),
    END: range(1, 1 + SEALED_END_BYTES_MAX),
}
_OF_THE_CHANNEL = (PING, PONG, END)


def head(kind: int, stream: int, length: int) -> bytes:
    return _HEAD.pack(kind, stream, length)


def frame(kind: int, stream: int = 0, payload: bytes = b"") -> bytes:
    return _HEAD.pack(kind, stream, len(payload)) + payload


def parse(plaintext: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Type, stream and payload of each frame; the size fits the type, and stream 0 is the channel's alone."""
    at, end = 0, len(plaintext)
    while at < end and plaintext[at]:
        if end - at < HEAD_BYTES:
            raise SealedError("frame", "cut in its head")
        kind, stream, length = _HEAD.unpack_from(plaintext, at)
        at += HEAD_BYTES
        if kind not in _SIZES or length not in _SIZES[kind]:
            raise SealedError("frame", f"type {kind} with {length} bytes")
        if length > end - at:
            raise SealedError("frame", "cut in its payload")
        if (stream == 0) is not (kind in _OF_THE_CHANNEL):
            raise SealedError("stream", f"type {kind} on stream {stream}")
        yield kind, stream, plaintext[at : at + length]
        at += length
    if plaintext.count(0, at) != end - at:
        raise SealedError("padding", "not zero")


def open_payload(kind: int, purpose: bytes) -> bytes:
    if len(purpose) > SEALED_PURPOSE_BYTES_MAX:
        raise ValueError(f"a stream's purpose has at most {SEALED_PURPOSE_BYTES_MAX} bytes")
    return bytes((kind,)) + purpose


def parse_open(payload: bytes) -> tuple[int, bytes]:
    if payload[0] not in (INTERACTIVE, BULK):
        raise SealedError("frame", f"a stream of class {payload[0]}")
    return payload[0], payload[1:]


def u32(value: int) -> bytes:
    return _U32.pack(value)


def parse_u32(payload: bytes) -> int:
    return int(_U32.unpack(payload)[0])


def u64(value: int) -> bytes:
    return _U64.pack(value)


def parse_u64(payload: bytes) -> int:
    return int(_U64.unpack(payload)[0])


def end_payload(code: str, message: str) -> bytes:
    """An empty code is an end without an error."""
    return (code.encode() + b"\0" + message.encode())[:SEALED_END_BYTES_MAX]


def parse_end(payload: bytes) -> tuple[str, str]:
    """The other side's words, fit for a terminal and a log: it may be hostile."""
    code, _, message = payload.decode(errors="replace").partition("\0")
    if code and not _CODE.fullmatch(code):
        raise SealedError("frame", "an END without a code")
    return code, "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in message)
