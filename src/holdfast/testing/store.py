"""The conformance suite of a store. Subclass it, and give it a `store_url`.

    class TestMine(StoreSuite):
        @pytest.fixture
        def store_url(self) -> str:          # of an empty database, anew for each test
            return "sqlite:////tmp/…"

The tests are coroutines (pytest-asyncio, `asyncio_mode = "auto"`). `WorkSuite` in `holdfast.testing.work` tests the
rules of leases, steps and artifacts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from ..model.errors import HoldfastError
from ..store.base import Query, Store, Transaction
from ..store.open import open_store


@contextmanager
def refused(code: str) -> Iterator[list[HoldfastError]]:
    """Check that the block raises a HoldfastError with this code, a message and a hint."""
    seen: list[HoldfastError] = []
    try:
        yield seen
    except HoldfastError as e:
        seen.append(e)
    assert seen, f"it was not refused as {code}"
    error = seen[0]
    assert error.code == code, f"{error.code}: {error.line()}"
    assert error.message, "an error says what happened"
    assert "\n" not in error.line(), error.line()


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = await open_store(url)
    try:
        yield store
    finally:
        await store.close()


def put(name: str, text: str = "v") -> Transaction[int]:
    """Write a row; returns its number of writes."""
    rows = yield Query(
        "INSERT INTO attempt (id, n, epoch, lease_until, request, created_at, worker) VALUES (?, 1, 1, 0, '', 0, ?)"
        " ON CONFLICT (id) DO UPDATE SET epoch = attempt.epoch + 1, worker = excluded.worker RETURNING epoch",
        (name, text),
    )
    return int(rows[0][0])


def get(name: str) -> Transaction[tuple[int, str] | None]:
    rows = yield Query("SELECT epoch, worker FROM attempt WHERE id = ?", (name,))
    return (rows[0][0], rows[0][1]) if rows else None


def names() -> Transaction[list[str]]:
    rows = yield Query("SELECT id FROM attempt")
    return sorted(name for (name,) in rows)


class Refusal(Exception):
    """Raised by a test inside a transaction."""


def put_and_fail(name: str) -> Transaction[int]:
    yield from put(name)
    raise Refusal(name)


def increment(name: str) -> Transaction[int]:
    """Read under a lock, compute, write: as every rule of work does."""
    rows = yield Query("SELECT n FROM attempt WHERE id = ? {for_update}", (name,))
    yield Query("UPDATE attempt SET n = ? WHERE id = ?", (rows[0][0] + 1, name))
    return int(rows[0][0]) + 1


class StoreSuite:
    """Every backend passes all of it."""

    async def test_what_a_write_returned_is_there_for_a_read_and_for_another_process_of_the_store(
        self, store_url: str
    ) -> None:
        async with opened(store_url) as store, opened(store_url) as other:
            assert await store.write(lambda: put("a", "text")) == 1
            assert await store.read(lambda: get("a")) == (1, "text")
            assert await other.read(lambda: get("a")) == (1, "text")

    async def test_a_closed_store_was_durable_and_opens_again(self, store_url: str) -> None:
        async with opened(store_url) as store:
            await store.write(lambda: put("a"))
        async with opened(store_url) as store:
            assert await store.read(names) == ["a"]
        with refused("failed"):
            await store.read(names)

    async def test_a_transaction_that_raises_leaves_nothing_behind_and_its_error_comes_through(
        self, store_url: str
    ) -> None:
        async with opened(store_url) as store:
            (came,) = await asyncio.gather(store.write(lambda: put_and_fail("a")), return_exceptions=True)
            assert isinstance(came, Refusal), "the error was swallowed"
            assert await store.read(names) == []
            assert await store.write(lambda: put("b")) == 1

    async def test_many_at_once_each_succeed_or_fail_alone(self, store_url: str) -> None:
        async with opened(store_url) as store:
            answers = await asyncio.gather(
                *(store.write(partial(put_and_fail if i % 3 == 0 else put, f"n{i:03}")) for i in range(90)),
                return_exceptions=True,
            )
            assert [i for i, a in enumerate(answers) if isinstance(a, Refusal)] == list(range(0, 90, 3))
            assert await store.read(names) == [f"n{i:03}" for i in range(90) if i % 3]

    async def test_what_one_reads_under_lock_no_other_changes_meanwhile(self, store_url: str) -> None:
        async with opened(store_url) as store, opened(store_url) as other:
            await store.write(lambda: put("a"))
            both = (store, other)
            answers = await asyncio.gather(*(s.write(lambda: increment("a")) for s in both for _ in range(20)))
            assert sorted(answers) == list(range(2, 42))

    async def test_a_read_sees_one_moment(self, store_url: str) -> None:
        async with opened(store_url) as store:
            done = False

            async def write_pairs() -> None:
                for i in range(40):
                    await store.write(partial(pair, f"p{i:03}"))
                nonlocal done
                done = True

            def pair(name: str) -> Transaction[None]:
                yield from put(name + "a")
                yield from put(name + "b")

            def twice() -> Transaction[tuple[list[str], list[str]]]:
                return (yield from names()), (yield from names())

            writing = asyncio.create_task(write_pairs())
            while not done:
                first, second = await store.read(twice)
                assert first == second, "a read is one moment"
                assert len(first) % 2 == 0, "a transaction is seen whole or not at all"
                await asyncio.sleep(0)
            await writing

    async def test_a_read_cannot_write(self, store_url: str) -> None:
        async with opened(store_url) as store:
            try:
                await store.read(lambda: put("a"))
            except HoldfastError:
                pass
            else:
                raise AssertionError("a read wrote")
            assert await store.read(names) == []

    async def test_text_bytes_and_numbers_come_back_as_they_went(self, store_url: str) -> None:
        texts = ["", "ä€🙂", "'; DROP TABLE run; --", "line\nline\r\t", "$1 ? {now}"[:4], "x" * 100_000]
        raw = bytes(range(256)) * 512
        numbers = [0, -1, 2**62, -(2**62)]

        def keep() -> Transaction[list[tuple[object, ...]]]:
            for i, text in enumerate(texts):
                yield from put(f"t{i}", text)
            for i, number in enumerate(numbers):
                yield Query("INSERT INTO piece (sha256, n, at, data) VALUES ('h', ?, ?, ?)", (i, number, raw))
            workers = yield Query("SELECT worker FROM attempt ORDER BY id")
            pieces = yield Query("SELECT at, data FROM piece ORDER BY n")
            return [*workers, *((at, bytes(data)) for at, data in pieces)]

        async with opened(store_url) as store:
            kept = await store.write(keep)
        assert kept == [*((t,) for t in texts), *((n, raw) for n in numbers)]

    async def test_the_clock_is_the_databases_in_microseconds_and_moves_within_a_transaction(
        self, store_url: str
    ) -> None:
        def moments() -> Transaction[list[int]]:
            seen: list[int] = []
            while len(set(seen)) < 3:
                rows = yield Query("SELECT {now}")
                seen.append(rows[0][0])
            return seen

        async with opened(store_url) as store:
            seen = await store.write(moments)
        assert seen == sorted(seen)
        assert 1_700_000_000_000_000 < seen[0] < 10_000_000_000_000_000

    async def test_opening_a_new_database_twice_at_once_migrates_it_once(self, store_url: str) -> None:
        stores = await asyncio.gather(*(open_store(store_url) for _ in range(4)))

        def versions() -> Transaction[list[int]]:
            rows = yield Query("SELECT version FROM schema_version ORDER BY version")
            return [version for (version,) in rows]

        seen = [await store.read(versions) for store in stores]
        for store in stores:
            await store.close()
        assert seen[0], "a migrated database knows its version"
        assert seen == [list(range(1, seen[0][-1] + 1))] * 4

    async def test_a_database_of_a_newer_version_is_refused_in_one_line(self, store_url: str) -> None:
        def newer() -> Transaction[None]:
            yield Query("INSERT INTO schema_version VALUES (9999, {now})")

        async with opened(store_url) as store:
            await store.write(newer)
        with refused("store_newer") as seen:
            await open_store(store_url)
        assert "9999" in seen[0].message
        assert "upgrade" in seen[0].hint
