"""Which function carries out which operation: each row has exactly one, or the host does not start."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from types import ModuleType
from typing import Any

from ..api.operation import Operation, load_all
from .operators.caller import Caller

Handler = Callable[[Caller, Any], Awaitable[Any]]
Room = tuple[ModuleType, object]  # the functions of a room, and the record of what they use


def collected(rooms: Iterable[Room]) -> dict[str, Handler]:
    """By operation, the function that is marked `@….answered`, with its room's record."""
    found: dict[str, Handler] = {}
    for room, parts in rooms:
        for function in vars(room).values():
            kind: type[Operation[Any]] | None = getattr(function, "operation", None)
            if kind is None or function.__module__ != room.__name__:
                continue
            if kind.row.op in found:
                raise TypeError(f"{kind.row.op} has two handlers")
            found[kind.row.op] = partial(function, parts)
    return found


def complete(found: Iterable[str]) -> None:
    """Refuse to start where an operation has no handler."""
    missing = sorted(load_all().keys() - set(found))
    if missing:
        raise TypeError(f"no handler for {', '.join(missing)}")
