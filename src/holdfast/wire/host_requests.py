"""The host protocol: u32 length and a JSON object, one request at a time; a reply may carry a descriptor."""

from __future__ import annotations

import json
import sys

from ..model.errors import invalid
from ..model.limits import REQUEST_BYTES_MAX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    Json = dict[str, Any]

    class Codec(Protocol):
        """How a message becomes bytes and back: this module, or `quick`."""

        def encode(self, value: object) -> bytes: ...

        def parsed(self, data: bytes) -> object: ...


VERSION = 1


class TooLarge(Exception):
    """A message over the limit; the connection cannot go on."""


_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def encode(value: object) -> bytes:
    """As JSON; what cannot be written so is refused here, where whoever passed it is told."""
    try:
        text = _ENCODER.encode(value)
    except (TypeError, ValueError, RecursionError) as e:
        raise invalid(f"a value cannot be written as JSON: {str(e)[:200]}", "pass plain values") from None
    # ASCII escapes keep what is not UTF-8 in arguments and environment (surrogateescape) intact on the way.
    return framed(text.encode("ascii"))


def framed(body: bytes) -> bytes:
    if len(body) > REQUEST_BYTES_MAX:
        raise TooLarge(f"a message of {len(body)} bytes; at most {REQUEST_BYTES_MAX}")
    return len(body).to_bytes(4, "big") + body


def _finite(text: str) -> float:
    """A time that is no time (NaN, 1e999) would upset whoever sorts by it."""
    value = float(text)
    if not -sys.float_info.max <= value <= sys.float_info.max:
        raise ValueError(text)
    return value


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def parsed(data: bytes) -> object:
    try:
        return _DECODER.decode(data.decode())
    except RecursionError:
        raise ValueError("nested too deeply") from None


class Decoder:
    """Messages out of a byte stream."""

    __slots__ = ("_buffer", "_parse")

    def __init__(self, parse: Callable[[bytes], object] = parsed) -> None:
        self._buffer, self._parse = bytearray(), parse

    @property
    def pending(self) -> int:
        """Bytes of a message that is not whole yet."""
        return len(self._buffer)

    def feed(self, data: bytes, parse: Callable[[bytes], object] | None = None) -> list[Json]:
        parse = parse or self._parse
        if not self._buffer and len(data) >= 4 and int.from_bytes(data[:4], "big") == len(data) - 4:
            return [_object(parse(data[4:]))]  # one message and no more, as nearly always: nothing to keep
        self._buffer += data
        out: list[Json] = []
        while len(self._buffer) >= 4:
            size = int.from_bytes(self._buffer[:4], "big")
            if size > REQUEST_BYTES_MAX:
                raise TooLarge(f"a message of {size} bytes; at most {REQUEST_BYTES_MAX}")
            if len(self._buffer) < 4 + size:
                break
            value = parse(bytes(self._buffer[4 : 4 + size]))
            del self._buffer[: 4 + size]
            out.append(_object(value))
        return out


def _object(value: object) -> Json:
    if not isinstance(value, dict):
        raise ValueError("not an object")
    return value
