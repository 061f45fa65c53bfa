"""The cache of short-term memory: in the process, or in Redis. It may be emptied at any time; the store has it all.

A window is a list of messages with where each stands in the run's log. A cache that fails is a cache that has nothing.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Any, NamedTuple, Protocol

from ..model.errors import HoldfastError, invalid
from ..model.limits import CACHE_BYTES_MAX

log = logging.getLogger("holdfast.store")
_EXPIRE_S = 7 * 86400  # Redis forgets a window nobody used for a week; the store does not
_TIMEOUT_S = 2.0  # a cache that takes longer is slower than the store


class Window(NamedTuple):
    """A run's newest messages, as JSON texts, true up to log entry `upto`; `whole`: no older one was left out."""

    upto: int
    whole: bool
    messages: list[bytes]
    scratch: bytes  # the scratch values, as one JSON object


class Cache(Protocol):
    async def get(self, run: str) -> Window | None: ...

    async def put(self, run: str, window: Window) -> None: ...

    async def extend(self, run: str, before: int, window: Window) -> None:
        """Add to a window that is at `before`; one that is elsewhere is dropped."""
        ...

    async def close(self) -> None: ...


class ProcessCache:
    """In this process, bounded; the run unused for longest goes first."""

    def __init__(self, most_bytes: int = CACHE_BYTES_MAX) -> None:
        self._windows: OrderedDict[str, tuple[Window, int]] = OrderedDict()
        self._most, self._bytes = most_bytes, 0

    async def get(self, run: str) -> Window | None:
        if run not in self._windows:
            return None
        self._windows.move_to_end(run)
        return self._windows[run][0]

    async def put(self, run: str, window: Window) -> None:
        self._drop(run)
        size = sum(map(len, window.messages))
        self._windows[run] = (window, size)
        self._bytes += size
        while self._bytes > self._most and len(self._windows) > 1:
            self._drop(next(iter(self._windows)))

    async def extend(self, run: str, before: int, window: Window) -> None:
        old = await self.get(run)
        if old is None or old.upto != before:
            self._drop(run)
            return
        await self.put(run, window._replace(whole=old.whole, messages=old.messages + window.messages))

    def _drop(self, run: str) -> None:
        self._bytes -= self._windows.pop(run, (None, 0))[1]

    async def close(self) -> None:
        self._windows.clear()


# One step for Redis, so that two writers never interleave: add where the window is at `before`, else drop it.
_EXTEND = """
if redis.call('HGET', KEYS[1], 'upto') ~= ARGV[1] then return redis.call('DEL', KEYS[1], KEYS[2]) end
redis.call('HSET', KEYS[1], 'upto', ARGV[2], 'scratch', ARGV[4])
redis.call('HINCRBY', KEYS[1], 'count', #ARGV - 4)
for n = 5, #ARGV do redis.call('RPUSH', KEYS[2], ARGV[n]) end
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[3])
return 1
"""


class RedisCache:
    """In Redis: `holdfast:RUN:at` says what the window is, `holdfast:RUN:window` holds it."""

    def __init__(self, url: str) -> None:
        try:
            import redis.asyncio as redis
        except ImportError:
            raise HoldfastError(
                "failed", "a cache in Redis needs the package redis", "pip install 'holdfast[redis]'"
            ) from None
        try:
            self._client: Any = redis.Redis.from_url(url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S)
        except ValueError as e:
            raise invalid(f"HOLDFAST_CACHE is no Redis URL: {e}", "redis://HOST:PORT/0 or unix:///PATH") from None
        self._away: tuple[type[Exception], ...] = (redis.RedisError, OSError, TimeoutError)
        self._told = False

    @staticmethod
    def _keys(run: str) -> tuple[str, str]:
        return f"holdfast:{run}:at", f"holdfast:{run}:window"

    def _failed(self, error: Exception) -> None:
        if not self._told:  # once: the store answers meanwhile
            log.warning("the cache does not answer (%s); short-term memory comes from the store", error)
            self._told = True

    async def get(self, run: str) -> Window | None:
        at, window = self._keys(run)
        try:
            async with self._client.pipeline(transaction=True) as both:
                known, messages = await both.hgetall(at).lrange(window, 0, -1).execute()
        except self._away as e:
            self._failed(e)
            return None
        self._told = False
        # Half a window (Redis may evict one key of the two) is none.
        if not known or int(known[b"count"]) != len(messages):
            return None
        return Window(int(known[b"upto"]), known[b"whole"] == b"1", [bytes(m) for m in messages], known[b"scratch"])

    async def put(self, run: str, window: Window) -> None:
        at, name = self._keys(run)
        told: dict[str, int | bytes] = {"upto": window.upto, "whole": int(window.whole), "count": len(window.messages)}
        told |= {"scratch": window.scratch}
        try:
            async with self._client.pipeline(transaction=True) as all_:
                all_.delete(at, name).hset(at, mapping=told).expire(at, _EXPIRE_S)
                if window.messages:
                    all_.rpush(name, *window.messages).expire(name, _EXPIRE_S)
                await all_.execute()
        except self._away as e:
            self._failed(e)

    async def extend(self, run: str, before: int, window: Window) -> None:
        words = (before, window.upto, _EXPIRE_S, window.scratch, *window.messages)
        try:
            await self._client.eval(_EXTEND, 2, *self._keys(run), *words)
        except self._away as e:
            self._failed(e)

    async def close(self) -> None:
        await self._client.aclose()


def open_cache(url: str | None) -> Cache:
    """What HOLDFAST_CACHE says; nothing means in the process."""
    if not url:
        return ProcessCache()
    if not url.startswith(("redis://", "rediss://", "unix://")):
        raise invalid(f"{url[:60]!r} is no cache", "HOLDFAST_CACHE is redis://HOST:PORT/0 or unix:///PATH")
    return RedisCache(url)
