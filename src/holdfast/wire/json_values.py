"""Values as they are kept: JSON, bounded, the same text for the same value. And what cannot be kept, in one line."""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from ..model.errors import invalid
from ..model.limits import ARGS_SHOWN_BYTES, VALUE_BYTES_MAX

_SAID_MAX = 16 << 10  # pages, not books
_encoder = msgspec.json.Encoder(order="sorted", uuid_format="canonical")


def encode(value: Any, what: str) -> str:
    """The value as JSON with sorted keys."""
    if isinstance(value, (str, bytes)) and len(value) > VALUE_BYTES_MAX:
        raise _too_large(len(value), what)
    try:
        data = _encoder.encode(value)
    except UnicodeEncodeError:
        raise invalid(f"{what} holds text that is not valid UTF-8", "keep raw bytes as an artifact") from None
    except (TypeError, ValueError, OverflowError, RecursionError) as e:
        raise invalid(f"{what} cannot be written as JSON: {str(e)[:200]}", "pass plain values") from None
    if len(data) > VALUE_BYTES_MAX:
        raise _too_large(len(data), what)
    return data.decode()


def decode(text: str | None) -> Any:
    return None if text is None else msgspec.json.decode(text)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def shown(text: str) -> str | None:
    """Arguments as far as they are kept for people; larger ones are known by their hash."""
    return text if len(text) <= ARGS_SHOWN_BYTES else None


def said(text: str | None, what: str) -> str | None:
    """Something said (a reason, an error, evidence), as every backend can keep it."""
    if not text:
        return None
    if not isinstance(text, str):
        raise invalid(f"{what} is text, not {type(text).__name__}", "say it in words")
    if not text.strip():
        return None  # blanks say nothing, and are no evidence
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-8", "backslashreplace").decode()
    if len(text) > _SAID_MAX:
        raise invalid(f"{what} has at most {_SAID_MAX:,} characters", "say it shorter; keep the rest as an artifact")
    return text.replace("\0", "\\0")


def _too_large(size: int, what: str) -> Exception:
    return invalid(
        f"{what} is {size:,} bytes, the most is {VALUE_BYTES_MAX:,}", "keep it as an artifact and pass its name"
    )
