"""The keeper protocol, version 1 (docs/protocol.md): length-prefixed binary frames over a unix stream.

    frame = u32 length of the rest · u8 type · payload        (big endian)

Frozen: a type's payload never changes; a new need is a new type, a new ACT operation or a new JSON key.
An unknown type is ignored, an unknown ACT operation is answered with `unsupported`.
"""

from __future__ import annotations

import json
import struct

from ..model.limits import FRAME_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


VERSION = 1

# client or host -> keeper
HELLO = 1  # JSON {v, token, role, operator, kind, name, via, client, rights}
READ = 2  # u64 from · u64 to (FOREVER: follow) · starts, moves or (from == to) ends the output stream
INPUT = 3  # u64 seq · u64 epoch (0: whatever I hold, taking free controls) · bytes
RESIZE = 4  # u16 cols · u16 rows
ACT = 5  # JSON {id, op, …} -> RESULT
WATCH = 6  # u64 offset · one GREW when the log's end is past it

# keeper -> client or host
WELCOME = 65  # JSON {v, session, generation, pid, …}
OUTPUT = 66  # u64 offset · u8 stream (0 terminal, 1 stdout, 2 stderr) · bytes
GAP = 67  # u64 from · u64 to · output that is gone
END = 68  # u64 offset · the asked range is complete, or the session has ended here
ACK = 69  # u64 seq · u64 epoch · u8 flags (1: echo was off) · the input was accepted
RESULT = 70  # JSON {id, ok: {…}} or {id, error: {…}}; a refused INPUT has {seq, error}
GREW = 71  # u64 end
EVENT = 72  # JSON {event: exit|ended|controls|resize|query|channels, …}

FOREVER = (1 << 64) - 1

_json = json.JSONEncoder(separators=(",", ":")).encode  # made once, not for every message
_HEAD = struct.Struct(">IB")
_U64 = struct.Struct(">Q")
_U64U64 = struct.Struct(">QQ")
_U16U16 = struct.Struct(">HH")
_OUTPUT = struct.Struct(">IBQB")  # head, offset and stream in one, for the hot path
OUTPUT_HEAD_BYTES = _OUTPUT.size


class ProtocolError(Exception):
    """The peer sent what no frame can be; the connection ends."""


def frame(kind: int, payload: bytes = b"") -> bytes:
    return _HEAD.pack(len(payload) + 1, kind) + payload


def message(kind: int, value: object) -> bytes:
    return frame(kind, _json(value).encode())


def output_head(offset: int, stream: int, size: int) -> bytes:
    return _OUTPUT.pack(size + 10, OUTPUT, offset, stream)


def read(start: int, to: int = FOREVER) -> bytes:
    return frame(READ, _U64U64.pack(start, to))


def input_frame(seq: int, epoch: int, data: bytes) -> bytes:
    return frame(INPUT, _U64U64.pack(seq, epoch) + data)


def resize(cols: int, rows: int) -> bytes:
    return frame(RESIZE, _U16U16.pack(cols, rows))


def u64_frame(kind: int, value: int) -> bytes:
    return frame(kind, _U64.pack(value))


def pair_frame(kind: int, a: int, b: int) -> bytes:
    return frame(kind, _U64U64.pack(a, b))


def ack(seq: int, epoch: int, echo_off: bool) -> bytes:
    return frame(ACK, _U64U64.pack(seq, epoch) + (b"\x01" if echo_off else b"\x00"))


def parse_ack(payload: bytes) -> tuple[int, int, bool]:
    """seq, epoch, and whether the terminal did not show what was typed. More flags may come: they are left alone."""
    seq, epoch = _unpack(_U64U64, payload[:16])
    return seq, epoch, bool(payload[16:17] and payload[16] & 1)


def parse_u64(payload: bytes) -> int:
    return int(_unpack(_U64, payload)[0])


def parse_pair(payload: bytes) -> tuple[int, int]:
    a, b = _unpack(_U64U64, payload)
    return a, b


def parse_size(payload: bytes) -> tuple[int, int]:
    a, b = _unpack(_U16U16, payload)
    return a, b


def parse_input(payload: bytes) -> tuple[int, int, bytes]:
    seq, epoch = _unpack(_U64U64, payload[:16])
    return seq, epoch, payload[16:]


def parse_output(payload: bytes) -> tuple[int, int, bytes]:
    if len(payload) < 9:
        raise ProtocolError("a short output frame")
    return int(_U64.unpack_from(payload)[0]), payload[8], payload[9:]


def _no_number(name: str) -> float:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_no_number)  # NaN and Infinity are Python's, not JSON's


def parse_json(payload: bytes) -> Json:
    try:
        value = _DECODER.decode(payload.decode())
    except (ValueError, RecursionError):
        raise ProtocolError("a frame that is not JSON") from None
    if not isinstance(value, dict):
        raise ProtocolError("a frame that is not an object")
    return value


def _unpack(layout: struct.Struct, payload: bytes) -> tuple[int, ...]:
    try:
        return layout.unpack(payload)
    except struct.error:
        raise ProtocolError("a frame of the wrong size") from None


def begun_output(data: bytes, at: int) -> tuple[int, int, int] | None:
    """The offset, the stream and the size of the OUTPUT frame whose head is there; None if it is none, or cut."""
    if len(data) - at < OUTPUT_HEAD_BYTES or data[at + 4] != OUTPUT:
        return None
    length, _, offset, stream = _OUTPUT.unpack_from(data, at)
    if not OUTPUT_HEAD_BYTES - 4 <= length <= FRAME_BYTES_MAX:
        raise ProtocolError(f"an output frame of {length} bytes")
    return offset, stream, length - (OUTPUT_HEAD_BYTES - 4)


def whole(data: bytes, at: int) -> tuple[int, bytes, int] | None:
    """The frame that begins there, as (type, payload, where the next begins); None while it is not complete."""
    if len(data) - at < _HEAD.size:
        return None
    length, kind = _HEAD.unpack_from(data, at)
    if not 1 <= length <= FRAME_BYTES_MAX:
        raise ProtocolError(f"a frame of {length} bytes")
    end = at + 4 + length
    return (kind, data[at + 5 : end], end) if end <= len(data) else None


class Decoder:
    """Frames out of a byte stream, whatever the borders."""

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> list[tuple[int, bytes]]:
        """The complete frames so far, as (type, payload)."""
        buffer = self._buffer + data if self._buffer else data
        frames = []
        at, size = 0, len(buffer)
        while size - at >= 5:
            length = int.from_bytes(buffer[at : at + 4], "big")
            if not 1 <= length <= FRAME_BYTES_MAX:
                raise ProtocolError(f"a frame of {length} bytes")
            end = at + 4 + length
            if end > size:
                break
            frames.append((buffer[at + 4], buffer[at + 5 : end]))
            at = end
        self._buffer = buffer[at:]
        return frames
