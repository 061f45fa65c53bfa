"""The calls of a worker in the middle of its work, made on the caller's own thread: no event loop, nothing handed over.

They are the same methods as `Work`'s. Over a store whose answers come before they are awaited, such a coroutine runs
to its end in one go. Only calls that need nothing but the store are made this way.
"""

from __future__ import annotations

import contextlib
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any, TypeVar

from ..store.base import Change, Store, Transaction
from .checkpoints.ops import grown
from .service import Work

T = TypeVar("T")
Json = dict[str, Any]
NEAR = frozenset({"step_begin", "step_end", "step_next", "step_fail", "log_append", "lease_renew"})


class _Immediate:
    """The store as `Work` knows it, with nothing left to wait for."""

    def __init__(self, store: Store) -> None:
        self.url = store.url
        self.write_now, self.decide_now, self.read_now = store.write_now, store.decide_now, store.read_now

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        return self.write_now(transaction)

    async def decide(self, change: Change[T]) -> T:
        return self.decide_now(change)

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        return self.read_now(transaction)

    async def close(self) -> None:
        """It is its opener's to close."""


class NearWork(Work):
    """`call_now(name, args)`, from any thread. `grew(run, size)` hears of entries of the log, for who saves
    checkpoints."""

    calls = NEAR

    def __init__(self, store: Store, by: str, grew: Callable[[str, int], None]) -> None:
        super().__init__(_Immediate(store), by)
        self._grew = grew

    def _logged(self, name: str, args: Json) -> None:
        size = grown(name, args)
        if size is not None:
            self._grew(args["run"], size)

    def call_now(self, name: str, args: Json) -> Any:
        call = self.call(name, **args)
        try:
            call.send(None)
        except StopIteration as end:
            return end.value
        raise AssertionError(f"{name} waits for something else than its store")


def growing(work: Work, loop: AbstractEventLoop) -> Callable[[str, int], None]:
    """Tells `work`, which lives on this loop, of what others added to the log; from any thread."""

    def grew(run: str, size: int) -> None:
        if work.checkpoints.counted(run, size):
            # A loop that has ended saves no more checkpoints; what was written is written, and that is the answer.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(work.checkpoints.look, run)

    return grew
