"""Short-term memory in Redis: a real server, which may lose everything at any time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.store.memory_cache import Cache, ProcessCache, Window, open_cache
from holdfast.testing.checkpoints import begun, working
from tests.support.redis import Redis


@pytest.fixture(scope="module")
def redis() -> Iterator[Redis]:
    server = Redis()
    yield server
    server.close()


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/work.db"


@pytest.fixture(params=["process", "redis"])
def cache(request: pytest.FixtureRequest) -> Cache:
    return open_cache(request.getfixturevalue("redis").url if request.param == "redis" else None)


async def test_a_window_comes_back_as_it_was_put_and_grows_where_it_ends(cache: Cache) -> None:
    assert await cache.get("run_a") is None
    window = Window(5, True, [b'{"a":1}', "é".encode()], b'{"s":1}')
    await cache.put("run_a", window)
    assert await cache.get("run_a") == window
    await cache.extend("run_a", 5, Window(7, True, [b"c"], b"{}"))
    assert await cache.get("run_a") == Window(7, True, [*window.messages, b"c"], b"{}")
    await cache.extend("run_a", 6, Window(9, True, [b"d"], b"{}"))  # from elsewhere: better nothing than a gap
    assert await cache.get("run_a") is None
    await cache.put("run_a", Window(1, False, [], b"{}"))
    assert await cache.get("run_a") == Window(1, False, [], b"{}")
    await cache.put("run_a", window)
    await cache.close()


async def test_the_process_keeps_the_windows_used_last_within_its_bound() -> None:
    cache = ProcessCache(most_bytes=100)
    for name in "abc":
        await cache.put(name, Window(1, True, [b"x" * 40], b"{}"))
        await cache.get("a")
    assert [await cache.get(n) is not None for n in "abc"] == [True, False, True]


async def talked(work: Any, mine: Any, count: int, first: int = 0) -> None:
    for n in range(first, first + count):
        await work.memory_append(message={"role": "user", "content": f"m{n}"}, **mine)
        if n % 7 == 0:
            await work.memory_set(name="n", value=n, **mine)


async def test_flushall_and_a_new_process_leave_the_window_as_it_was(redis: Redis, store_url: str) -> None:
    async with working(store_url, redis.url) as work:
        mine = await begun(work)
        await talked(work, mine, 40)
        before = await work.memory_window(run=mine["run"], max_tokens=200)
        assert redis.say(f"EXISTS holdfast:{mine['run']}:window") == b":1\r\n"  # it really is in there
        assert redis.say("FLUSHALL").startswith(b"+OK")
        assert await work.memory_window(run=mine["run"], max_tokens=200) == before
        assert (await work.memory_get(run=mine["run"], name="n"))["value"] == 35
    redis.say("FLUSHALL")
    async with working(store_url, redis.url) as work:
        assert await work.memory_window(run=mine["run"], max_tokens=200) == before


async def test_the_window_is_read_from_redis_and_only_what_is_new_from_the_store(
    redis: Redis, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with working(store_url, redis.url) as one, working(store_url, redis.url) as two:
        mine = await begun(one)
        await talked(one, mine, 10)
        assert len((await one.memory_window(run=mine["run"]))["messages"]) == 10
        filled = []
        monkeypatch.setattr(type(two.memory), "_fill", lambda self, run: filled.append(run))
        await talked(one, mine, 5, first=10)
        window = await two.memory_window(run=mine["run"])
        assert [m["content"] for m in window["messages"]] == [f"m{n}" for n in range(15)]
        assert filled == []


async def test_a_redis_that_is_away_is_no_error(store_url: str) -> None:
    server = Redis()
    try:
        async with working(store_url, server.url) as work:
            mine = await begun(work)
            await talked(work, mine, 10)
            before = await work.memory_window(run=mine["run"])
            server.stop()
            assert await work.memory_window(run=mine["run"]) == before
            await talked(work, mine, 1, first=10)
            server.start()  # empty
            assert len((await work.memory_window(run=mine["run"]))["messages"]) == 11
    finally:
        server.close()


@pytest.mark.parametrize("url", ["memcached://x", "nonsense", "redis://x:notaport"])
def test_a_cache_that_cannot_be_is_said_in_one_line(url: str) -> None:
    with pytest.raises(HoldfastError) as caught:
        open_cache(url)
    assert caught.value.code == "invalid"
