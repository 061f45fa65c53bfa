"""Signals by name, those of real time as well: the kernel ends programs by them, and Python names only two."""

from __future__ import annotations

import signal

_FIRST, _AFTER = int(signal.SIGRTMIN), "SIGRTMIN+"


def name(number: int) -> str:
    """`SIGTERM`, `SIGRTMIN+3`; the two that the C library keeps for itself are `SIG32` and `SIG33`."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"{_AFTER}{number - _FIRST}" if number > _FIRST else f"SIG{number}"


def number(name: str) -> int:
    """The number of a signal, from the name that `name` gives."""
    if name in signal.Signals.__members__:
        return int(signal.Signals[name])
    return _FIRST + int(name[len(_AFTER) :]) if name.startswith(_AFTER) else int(name[len("SIG") :])
