"""Threads on a store of their own, reached from any thread or event loop: the base of the framework integrations."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import Future
from typing import Any, TypeVar

from ..delta.encode import squeeze, unsqueeze
from ..delta.value_codec import LIST, OBJECT, PLAIN, shadow
from ..model.errors import HoldfastError
from ..store.open import open_store
from ..work.threads.conversations import Conversations
from ..work.threads.rows import Head, Stored, Write
from ..work.threads.threads import Threads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Iterator

    from ..store.base import Store

__all__ = [
    "LIST",
    "OBJECT",
    "PLAIN",
    "Conversations",
    "Head",
    "StoreThread",
    "Stored",
    "Threads",
    "Write",
    "shadow",
    "squeeze",
    "unsqueeze",
]

T = TypeVar("T")


class StoreThread:
    """A store with an event loop of its own, in a thread of its own. Both faces of a saver call through it."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self.store: Store | None = None
        self._closing: list[Any] = []

    def start(self) -> Store:
        """Open the store if it is not; what is wrong with it is said here."""
        with self._lock:
            if self.store is None:
                if self._loop is None:
                    self._loop = asyncio.new_event_loop()
                    # A daemon: what was acknowledged is on disk, and a forgotten close keeps no process from ending.
                    self._thread = threading.Thread(target=self._loop.run_forever, name="holdfast-store", daemon=True)
                    self._thread.start()
                try:
                    self.store = self._submit(open_store(self._url)).result()
                except BaseException:
                    self._stop()
                    raise
            return self.store

    def before_close(self, coroutine: Any) -> None:
        """A coroutine function to await before the store is closed."""
        self._closing.append(coroutine)

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._loop is None:
            work.close()
            raise HoldfastError("failed", "the store is closed", "open it again")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """From a thread: wait for it."""
        return self._submit(work).result()

    async def acall(self, work: Coroutine[Any, Any, T]) -> T:
        """From any event loop."""
        return await asyncio.wrap_future(self._submit(work))

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        while True:
            try:
                yield self.call(anext(items))  # type: ignore[arg-type]
            except StopAsyncIteration:
                return

    async def aiterate(self, items: AsyncIterator[T]) -> AsyncIterator[T]:
        while True:
            try:
                item: T = await self.acall(anext(items))  # type: ignore[arg-type]
            except StopAsyncIteration:
                return
            yield item

    def close(self) -> None:
        with self._lock:
            if self.store is not None:
                while self._closing:
                    self.call(self._closing.pop()())
                self.call(self.store.close())
                self.store = None
            self._stop()

    def _stop(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._loop = self._thread = None
