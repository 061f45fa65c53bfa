"""Splits values into parts, and detects unchanged parts without encoding them.

A key's value is kept as a tag and its parts in order: `[` and the elements of a list, `{` and the sorted entries of an
object, `=` and the one part of anything else. Every part is a line of canonical JSON (sorted keys; JSON text holds no
raw newline), so a list that grows at its end grows at the end of its bytes, and an edit touches the bytes of its part.

An object held by the caller may be edited in place, so the same object proves nothing. A *shadow* is a copy of a part's
containers that shares its strings: `shadow == part` runs in C, looks at every leaf, costs nothing for text. Equality
alone would take 1, True and 1.0 for the same; numbers are therefore compared with their types.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Protocol

import msgspec

from ..model.errors import invalid

LIST, OBJECT, PLAIN = b"[", b"{", b"="

_encode = msgspec.json.Encoder(order="sorted").encode


class Codec(Protocol):
    """How the values of a state become bytes and come back."""

    def split(self, value: Any) -> tuple[bytes, list[Any]]:
        """The tag and the parts of a value."""

    def unit(self, tag: bytes, part: Any) -> bytes:
        """A part's bytes. Concatenated after the tag they are the value; where one ends must be in the bytes."""

    def shadow(self, tag: bytes, part: Any) -> Any:
        """An object that equals the part's view as long as `unit` would give the same bytes."""

    def views(self, tag: bytes, parts: list[Any]) -> list[Any]:
        """What shadows are compared with: the parts themselves, or the encoded fields of an object."""

    def join(self, kept: bytes) -> Any:
        """The value of a tag and its parts."""


class _Never:
    """The shadow of a part that cannot be compared: it is encoded again at each save."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False


class _Number:
    """A number's shadow: equal only to the same number of the same type."""

    __slots__ = ("_kind", "_value")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, value: float) -> None:
        self._kind, self._value = type(value), value

    def __eq__(self, other: object) -> bool:
        if type(other) is not self._kind or other != self._value:
            return False
        return bool(other) or repr(other) == repr(self._value)  # 0.0 and -0.0 are equal, their texts are not


NEVER = _Never()


def shadow(value: object) -> object:
    """A copy of the containers, for a later `==`."""
    kind = type(value)
    if kind is str or value is None:
        return value
    if kind is dict:
        if all(type(key) is str for key in value):  # type: ignore[attr-defined]
            return {key: shadow(item) for key, item in value.items()}  # type: ignore[attr-defined]
        return NEVER  # {1: x} and {True: x} are equal
    if kind is list:
        return [shadow(item) for item in value]  # type: ignore[attr-defined]
    if kind is int or kind is float or kind is bool:
        return _Number(value)  # type: ignore[arg-type]
    return NEVER


class JsonCodec:
    """Encodes values as JSON. Other types are stored as msgspec writes them: a tuple as a list, a time as text."""

    def split(self, value: Any) -> tuple[bytes, list[Any]]:
        if type(value) is list:
            return LIST, value
        if type(value) is dict and all(type(key) is str for key in value):
            return OBJECT, sorted(value.items())
        return PLAIN, [value]

    def unit(self, tag: bytes, part: Any) -> bytes:
        try:
            if tag == OBJECT:
                return _encode(part[0]) + b":" + _encode(part[1]) + b"\n"
            return _encode(part) + b"\n"
        except UnicodeEncodeError:
            raise invalid("text in the state is not valid UTF-8", "decode it with errors='replace' first") from None
        except (TypeError, ValueError, OverflowError, msgspec.MsgspecError) as e:
            hint = "use only text, numbers, lists and objects"
            raise invalid(f"the state cannot be written as JSON: {e}", hint) from None
        except RecursionError:
            raise invalid("the state is nested too deeply, or contains itself", "flatten it") from None

    def shadow(self, tag: bytes, part: Any) -> Any:
        return (part[0], shadow(part[1])) if tag == OBJECT else shadow(part)

    def views(self, tag: bytes, parts: list[Any]) -> list[Any]:
        return parts

    def join(self, kept: bytes) -> Any:
        tag, lines = kept[:1], kept[1:-1]
        if tag == PLAIN:
            return msgspec.json.decode(lines)
        text = lines.replace(b"\n", b",")
        return msgspec.json.decode(b"[" + text + b"]" if tag == LIST else b"{" + text + b"}")


JSON = JsonCodec()


def runs(changed: list[int]) -> list[tuple[int, int]]:
    """Sorted indices as half-open ranges."""
    if not changed:
        return []
    breaks = [n for n, (a, b) in enumerate(pairwise(changed), 1) if b != a + 1]
    return [(changed[i], changed[j - 1] + 1) for i, j in pairwise([0, *breaks, len(changed)])]
