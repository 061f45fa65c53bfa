"""The calls of a worker in the middle of its work, made on the caller's own thread: no event loop, nothing handed over.

They are the same methods as `Work`'s. Over a store whose answers come before they are awaited, such a coroutine runs
to its end in one go. Only calls that need nothing but the store are made this way.
"""

from __future__ import annotations

import contextlib
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from ..store import queries
from ..store.base import Change, Quick, Store, Transaction
from .checkpoints.ops import grown
from .service import Work

T = TypeVar("T")
Json = dict[str, Any]
NEAR = frozenset({"step_begin", "step_end", "step_next", "step_fail", "log_append", "lease_renew"})


class NearStore(Protocol):
    """A store that a thread can wait for."""

    url: str

    def write_now(self, transaction: Callable[[], Transaction[T]]) -> T: ...

    def quick_now(self, quick: Quick) -> bool: ...

    def read_now(self, transaction: Callable[[], Transaction[T]]) -> T: ...


class _Immediate:
    """The store as `Work` knows it, with nothing left to wait for."""

    def __init__(self, store: NearStore) -> None:
        self._store, self.url = store, store.url

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        return self._store.write_now(transaction)

    async def quick(self, quick: Quick) -> bool:
        return self._store.quick_now(quick)

    async def decide(self, change: Change[T]) -> T:
        return self._store.write_now(lambda: queries.decided(change))

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        return self._store.read_now(transaction)

    async def close(self) -> None:
        """It is its opener's to close."""


class Beside(Work):
    """A second way to the same store. `grew(run, size)` hears of entries of the log, for whoever saves checkpoints."""

    def __init__(self, store: Store, by: str, grew: Callable[[str, int], None]) -> None:
        super().__init__(store, by)
        self._grew = grew

    def _logged(self, name: str, args: Json) -> None:
        size = grown(name, args)
        if size is not None:
            self._grew(args["run"], size)


class NearWork(Beside):
    """`call_now(name, args)`, from any thread."""

    calls = NEAR

    def __init__(self, store: NearStore, by: str, grew: Callable[[str, int], None]) -> None:
        super().__init__(_Immediate(store), by, grew)

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
