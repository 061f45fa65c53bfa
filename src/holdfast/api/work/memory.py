"""Short-term memory of a run: messages, and values by name."""

from __future__ import annotations

from ..operation import Once, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..values import Json, Seconds, Whole, Word


class MemoryAppend(
    Once["Json"], op="memory_append", right="work", on="own", repeat="request", durable="work", changes=("log",)
):
    """A message more; on disk when this returns."""

    run: Word
    message: object
    epoch: Whole | None = None


class MemoryWindow(Operation["Json"], op="memory_window", right="work", on="own", repeat="always"):
    """The newest messages that fit a number of tokens (an estimate), pinned ones always."""

    run: Word
    max_tokens: Whole = 32000


class MemorySet(
    Once["Json"], op="memory_set", right="work", on="own", repeat="request", durable="work", changes=("log",)
):
    """Keep a scratch value; `ttl_s` of 0 forgets it."""

    run: Word
    name: Word
    value: object = None
    ttl_s: Seconds | None = None
    epoch: Whole | None = None


class MemoryGet(Operation["Json"], op="memory_get", right="work", on="own", repeat="always"):
    """A value by its name."""

    run: Word
    name: Word
