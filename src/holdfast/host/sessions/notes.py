"""What the host keeps beside a session, for itself and for the host after it: wishes and timers, not the state."""

from __future__ import annotations

import dataclasses
from typing import Any

Json = dict[str, Any]


@dataclasses.dataclass(frozen=True, slots=True)
class SessionNotes:
    """On disk as JSON, under the names of these fields. What is unknown or malformed there is left out."""

    stopped: bool = False  # an operator wants it to be over: it is not restarted
    reaped: bool = False  # the idle policy ended it
    restart_at: float | None = None  # the restart policy starts it again then
    reap_at: float | None = None  # the idle policy ends it then
    failures: int = 0  # in a row, for the restart policy's delays
    hands: Json | None = None  # {generation, operators}: who could type into that generation
    display: str | None = None  # of the latest controller, where no link can carry it


_TYPES: dict[str, tuple[type, ...]] = {
    "stopped": (bool,),
    "reaped": (bool,),
    "restart_at": (int, float),
    "reap_at": (int, float),
    "failures": (int,),
    "hands": (dict,),
    "display": (str,),
}


def from_json(kept: Json) -> SessionNotes:
    return SessionNotes(**{name: kept[name] for name, types in _TYPES.items() if isinstance(kept.get(name), types)})


def to_json(notes: SessionNotes) -> Json:
    """Only what says something: a host that knows fewer of them reads the rest."""
    default = SessionNotes()
    return {k: v for k, v in dataclasses.asdict(notes).items() if v != getattr(default, k)}
