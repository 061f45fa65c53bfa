"""This host says on a shared store that it is there, while it holds leases; without one nothing wakes it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

from ...model.errors import HoldfastError
from ...model.limits import HOST_BEAT_S
from ...work.runs import hosts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...store.base import Store

log = logging.getLogger("holdfast.host")


class Heartbeat:
    """Of one open store. `replaced` is called once another daemon of this home has opened it: this one is to leave.
    None: the store is a file, which no other host waits for."""

    def __init__(self, store: Store, generation: int, replaced: Callable[[], None] | None, every_s: float) -> None:
        self._store, self._generation, self._replaced, self._every_s = store, generation, replaced, every_s
        self._held = asyncio.Event()
        self._held.set()  # what a daemon before this one granted is still held
        self._task = None if replaced is None else asyncio.get_running_loop().create_task(self._beat())

    @classmethod
    async def begin(
        cls, store: Store, name: str, version: str, replaced: Callable[[], None] | None, every_s: float = HOST_BEAT_S
    ) -> Heartbeat:
        return cls(store, await store.write(lambda: hosts.register(name, version)), replaced, every_s)

    def nudge(self) -> None:
        """A lease may have been given."""
        self._held.set()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _beat(self) -> None:
        while True:
            await self._held.wait()
            self._held.clear()
            if await self._once():
                self._held.set()
                await asyncio.sleep(self._every_s)

    async def _once(self) -> bool:
        """Whether there is more to keep alive."""
        try:
            beat = await self._store.write(lambda: hosts.beat(self._generation))
        except HoldfastError as e:
            log.warning("the store was not told that this host is there: %s", e)
            return True
        if beat.replaced and self._replaced is not None:
            log.error("another daemon of this home has opened its store: this one leaves")
            self._replaced()
            return False
        if beat.late:
            log.warning("this host was late: others may have taken over what its workers held")
        return beat.holds
