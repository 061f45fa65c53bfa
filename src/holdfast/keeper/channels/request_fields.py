"""What a request says, checked: a client's JSON may hold anything, and none of it may surprise the keeper."""

from __future__ import annotations

from ...model.limits import WHY_MAX, WORD_MAX
from ...model.sessions.controls import KINDS, Actor, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

_U64_MAX = (1 << 64) - 1


def invalid(what: str) -> Refused:
    return Refused("invalid", f"a malformed request: {what}", "see docs/protocol.md")


def word(request: Json, key: str, default: str = "") -> str:
    """A short text: an id, a name, a kind of thing."""
    value = request.get(key)
    if value is None:
        return default
    if not isinstance(value, str) or len(value) > WORD_MAX:
        raise invalid(f"{key} is a text of at most {WORD_MAX} characters")
    return value


def text(request: Json, key: str) -> str:
    """A reason or a note; a longer one is cut."""
    value = request.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise invalid(f"{key} is a text")
    return value[:WHY_MAX]


def whole(request: Json, key: str, default: int = 0) -> int:
    """A number that is not negative and fits 64 bits."""
    value = request.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _U64_MAX:
        raise invalid(f"{key} is a whole number")
    return value


def seconds(request: Json, key: str, default: float, most: float) -> float:
    value = request.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise invalid(f"{key} is a number from 0 to {most:g}")
    return float(value)


def words(request: Json, key: str, most: int) -> tuple[str, ...]:
    value = request.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or len(value) > most:
        raise invalid(f"{key} is a list of at most {most} texts")
    if not all(isinstance(v, str) and len(v) <= WORD_MAX for v in value):
        raise invalid(f"{key} is a list of at most {most} texts")
    return tuple(value)


def process(request: Json) -> tuple[int, int] | None:
    """The process that a hold is for, as the host read it: pid and start time."""
    named = request.get("process")
    if named is None:
        return None
    if not isinstance(named, dict):
        raise invalid("process is an object")
    return whole(named, "pid"), whole(named, "started")


def actor(value: object) -> Actor:
    """An operator as the host names it. A kind that is not known is refused, never taken for a human."""
    if not isinstance(value, dict):
        raise invalid("an operator is an object")
    who = Actor(word(value, "operator"), word(value, "kind"), word(value, "name"), word(value, "actor"))
    if not who.operator or who.kind not in KINDS:
        raise invalid("an operator has an id and a kind")
    return who
