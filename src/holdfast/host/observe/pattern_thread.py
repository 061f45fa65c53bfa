"""The thread that searches for callers' patterns, and the line in front of it. The event loop itself never searches."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

from ...model.limits import MATCHES_EACH_MAX, MATCHES_MAX
from ...model.patterns import Pattern

Span = tuple[int, int]


class Matching:
    """One search at a time: RE2 lets go of the interpreter meanwhile, so this costs a processor and not the host."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "match")
        self._room = asyncio.Semaphore(MATCHES_MAX)
        self._shares: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(MATCHES_EACH_MAX))

    @contextlib.asynccontextmanager
    async def turn(self, operator: str) -> AsyncIterator[None]:
        """A place in the line. What is to be searched is read with it in hand: the line bounds that memory, too."""
        async with self._shares[operator], self._room:
            yield

    async def search(self, pattern: Pattern, window: bytes) -> tuple[Span | None, float]:
        """Where the first match is, and how long the search took. A search that nobody waits for any more is not begun;
        one under way is left to end, which it does soon."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, _timed, pattern, window)


def _timed(pattern: Pattern, window: bytes) -> tuple[Span | None, float]:
    began = time.monotonic()
    return pattern.search(window), time.monotonic() - began
