"""Writes that are acknowledged ahead of SQLite's commit: nothing of them is lost, and nobody sees them missing."""

from __future__ import annotations

import asyncio
import contextlib
import io
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.client import archive
from holdfast.model.errors import HoldfastError
from holdfast.store import ahead, sqlite
from holdfast.store.base import Quick
from holdfast.store.sqlite import SqliteStore
from holdfast.work.near import NearWork
from holdfast.work.service import Work
from tests.support.home import until_async

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine is, writes of a thread follow each other quickly, and nothing is committed for them."""
    monkeypatch.setattr(sqlite, "_HASTE_US", 3600 * 1_000_000)
    monkeypatch.setattr(sqlite, "_LAND_S", 3600.0)


class Worker:
    """Steps on a thread of their own, as a lane of the host makes them."""

    def __init__(self, store: SqliteStore, made: Json) -> None:
        self.near = NearWork(store, "op", lambda run, size: None)
        self.mine = {"run": made["run"], "epoch": made["epoch"]}

    async def begin(self, key: str, **more: Any) -> Json:
        answer: Json = await asyncio.to_thread(self.near.call_now, "step_begin", {"key": key, **self.mine, **more})
        return answer

    async def end(self, key: str, result: Any = None, **more: Any) -> None:
        await asyncio.to_thread(self.near.call_now, "step_end", {"key": key, "result": result, **self.mine, **more})

    async def steps(self, first: int, count: int) -> None:
        for n in range(first, first + count):
            assert (await self.begin(f"s{n}"))["decision"] == "execute"
            await self.end(f"s{n}", result=n)


@asynccontextmanager
async def working(path: Path) -> AsyncIterator[tuple[SqliteStore, Work, Worker]]:
    store = await SqliteStore.open(str(path))
    try:
        work = Work(store, "op")
        yield store, work, Worker(store, await work.begin_run(worker="w", ttl_s=3600))
    finally:
        await store.close()


def committed(path: Path) -> int:
    """Steps as somebody finds them who looks into the file alone."""
    with contextlib.closing(sqlite3.connect(path)) as database:
        return int(database.execute("SELECT COUNT(*) FROM step WHERE state = 'done'").fetchone()[0])


async def found(path: Path) -> dict[str, Any]:
    """What a store says of the only run: results by key, and how long its log is."""
    store = await SqliteStore.open(str(path))
    try:
        work = Work(store)
        run = (await work.run_ls())[0]["run"]
        steps = {s["key"]: s["result"] for s in await work.step_ls(run=run) if s["state"] == "done"}
        return {"steps": steps, "log": (await work.run_status(run=run))["log_end"]}
    finally:
        await store.close()


def dead(path: Path) -> Path:
    """The files as they are now: as a process leaves them that is killed at this moment."""
    folder = path.parent / "dead"
    folder.mkdir()
    for file in path.parent.glob("work.db*"):
        if not file.name.endswith("-shm"):
            shutil.copy(file, folder / file.name)
    return folder / path.name


async def test_what_was_acknowledged_and_not_committed_is_there_after_a_death(tmp_path: Path) -> None:
    async with working(tmp_path / "work.db") as (_, _, worker):
        await worker.steps(0, 20)
        left = dead(tmp_path / "work.db")
    assert await found(left) == {"steps": {f"s{n}": n for n in range(20)}, "log": 41}
    assert await found(left) == {"steps": {f"s{n}": n for n in range(20)}, "log": 41}, "and only once"


async def test_without_its_records_such_a_file_would_lack_them(tmp_path: Path) -> None:
    async with working(tmp_path / "work.db") as (_, _, worker):
        await worker.steps(0, 20)
        left = dead(tmp_path / "work.db")
    (left.parent / "work.db-ahead").unlink()
    assert len((await found(left))["steps"]) < 20, "the test above shows something"


async def test_a_death_after_many_commits_and_rounds_of_the_file_loses_nothing(tmp_path: Path) -> None:
    async with working(tmp_path / "work.db") as (_, work, worker):
        for n in range(10):
            await worker.steps(n * 45, 45)
            await work.log_append(run=worker.mine["run"], body=f"note {n}", kind="note")
        left = dead(tmp_path / "work.db")
    assert await found(left) == {"steps": {f"s{n}": n for n in range(450)}, "log": 1 + 900 + 10}


async def test_whoever_reads_through_the_store_sees_everything_at_once(tmp_path: Path) -> None:
    async with working(tmp_path / "work.db") as (_, work, worker):
        for n in range(5):
            await worker.steps(n, 1)
            assert (await worker.begin(f"s{n}"))["result"] == n, "the worker itself"
            await worker.begin(f"look{n}", effect="none")
            await worker.end(f"look{n}", effect="none")
            assert len(await work.step_ls(run=worker.mine["run"])) == 2 * (n + 1), "anybody else"


async def test_a_step_without_effect_finds_what_is_not_committed(tmp_path: Path) -> None:
    async with working(tmp_path / "work.db") as (store, _, worker):
        await worker.steps(0, 3)
        await worker.end("look", effect="none", result=7)
        assert store._kept, "these writes are ahead"
        assert (await worker.begin("look", effect="none"))["result"] == 7
        assert store._kept, "and a look at them is no reason for a commit"


async def test_the_file_itself_has_it_a_moment_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite, "_LAND_S", 0.05)
    async with working(tmp_path / "work.db") as (_, _, worker):
        await worker.steps(0, 6)
        await until_async(lambda: committed(tmp_path / "work.db") == 6)


async def test_another_store_waits_for_what_is_ahead_and_from_then_on_there_is_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "_LAND_S", 0.05)
    async with working(tmp_path / "work.db") as (store, work, worker):
        await worker.steps(0, 6)
        assert (await found(tmp_path / "work.db"))["steps"] == {f"s{n}": n for n in range(6)}
        other = await SqliteStore.open(str(tmp_path / "work.db"))
        for n in range(6, 12):
            await worker.steps(n, 1)
            assert not store._kept
            assert committed(tmp_path / "work.db") == n + 1
            await Work(other).log_append(run=worker.mine["run"], body="also here", kind="note")
        await other.close()
        await worker.steps(12, 2)
        assert store._kept, "alone again"
        assert (await work.run_status(run=worker.mine["run"]))["steps"]["done"] == 14


async def test_what_is_not_as_foreseen_is_told_and_what_was_before_it_stays(tmp_path: Path) -> None:
    async with working(tmp_path / "work.db") as (_, _, worker):
        await worker.steps(0, 4)
        with pytest.raises(HoldfastError, match="ended already"):
            await worker.end("s2", result="other")
        await worker.steps(4, 4)
        worker.mine["epoch"] += 1
        with pytest.raises(HoldfastError, match="taken over"):
            await worker.begin("late")
        left = dead(tmp_path / "work.db")
    assert (await found(left))["steps"] == {f"s{n}": n for n in range(8)}


async def test_a_full_disk_refuses_and_forgets_nothing(tmp_path: Path) -> None:
    async with working(tmp_path / "work.db") as (store, work, worker):
        await worker.steps(0, 8)
        assert store._kept
        assert store._writer is not None
        pages = store._writer.execute("PRAGMA page_count").fetchone()[0]
        store._writer.execute(f"PRAGMA max_page_count={pages}")
        await worker.begin("large")
        for _ in range(3):
            with pytest.raises(HoldfastError, match="disk is full"):
                await worker.end("large", result="x" * 60_000)
        left = dead(tmp_path / "work.db")
        store._writer.execute("PRAGMA max_page_count=100000")
        await worker.end("large", result=0)
        await worker.steps(8, 4)
        assert (await work.run_status(run=worker.mine["run"]))["steps"]["done"] == 13
    assert (await found(left))["steps"] == {f"s{n}": n for n in range(8)}
    assert (await found(tmp_path / "work.db"))["steps"] == {f"s{n}": n for n in range(12)} | {"large": 0}


async def test_a_commit_that_fails_is_made_up_for_by_whoever_comes_next(tmp_path: Path) -> None:
    async with working(tmp_path / "work.db") as (store, work, worker):
        await worker.steps(0, 8)
        assert store._writer is not None
        store._writer.execute("ROLLBACK")  # as SQLite does by itself when a disk fails
        assert store._ahead is not None
        store._ahead.open = False
        await worker.steps(8, 2)
        assert (await work.run_status(run=worker.mine["run"]))["steps"]["done"] == 10


@pytest.mark.parametrize("before", ["something ahead", "nothing ahead"])
async def test_records_that_cannot_be_flushed_are_no_reason_to_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    async with working(tmp_path / "work.db") as (store, work, worker):
        await worker.steps(0, 4)
        if before == "nothing ahead":
            await work.run_status(run=worker.mine["run"])
            assert not store._kept

        def broken(self: ahead.AheadFile) -> None:
            raise OSError(5, "Input/output error")

        monkeypatch.setattr(ahead.AheadFile, "flush", broken)
        await worker.steps(4, 4)
        assert not store._kept, "the usual way from here on"
        left = dead(tmp_path / "work.db")
    assert (await found(left))["steps"] == {f"s{n}": n for n in range(8)}


async def test_values_larger_than_the_file_go_the_usual_way(tmp_path: Path) -> None:
    async with working(tmp_path / "work.db") as (_, _, worker):
        for n in range(4):
            await worker.begin(f"s{n}")
            await worker.end(f"s{n}", result="x" * 900_000)
        left = dead(tmp_path / "work.db")
    assert [len(v) for v in (await found(left))["steps"].values()] == [900_000] * 4


def appended(path: Path, *quicks: Quick) -> None:
    """More records behind those that are there."""
    data = path.read_bytes()
    last = ahead.outstanding(data, int.from_bytes(data[4:8], "little") - 1)[-1]
    written = data.rindex(b"hfa1") // 4096 * 4096 + 4096
    more = [ahead.packed(last.chapter, last.place + 1 + n, quick, last.now) for n, quick in enumerate(quicks)]
    path.write_bytes(data[:written] + ahead.padded(more) + bytes(4096))


async def test_a_last_record_that_sqlite_refused_is_left_out_and_any_other_is_a_damage(tmp_path: Path) -> None:
    async with working(tmp_path / "work.db") as (_, _, worker):
        await worker.steps(0, 5)
        left = dead(tmp_path / "work.db")
    refused = Quick("step_ended", (worker.mine["run"], "never", worker.mine["epoch"], "op", "{}", "1", "req"), None)
    other = tmp_path / "other"
    shutil.copytree(left.parent, other)
    appended(left.parent / "work.db-ahead", refused)
    assert (await found(left))["steps"] == {f"s{n}": n for n in range(5)}
    appended(other / "work.db-ahead", refused, refused)
    with pytest.raises(HoldfastError, match="do not fit"):
        await SqliteStore.open(str(other / "work.db"))


async def test_records_of_another_database_are_left_alone(tmp_path: Path) -> None:
    async with working(tmp_path / "work.db") as (_, _, worker):
        await worker.steps(0, 5)
        left = dead(tmp_path / "work.db")
    for name in ("work.db", "work.db-wal"):
        (left.parent / name).unlink()
    store = await SqliteStore.open(str(left))
    assert await Work(store).run_ls() == []
    await store.close()


# -- the records -------------------------------------------------------------------------------------------------------


def told(chapter: int, places: range) -> list[bytes]:
    return [ahead.packed(chapter, n, Quick("step_begun", ("run", n, None, "ä"), None), 17) for n in places]


def names(data: bytes, chapter: int) -> list[tuple[int, int]]:
    return [(r.chapter, r.place) for r in ahead.outstanding(data, chapter)]


def test_records_come_back_in_order_from_the_chapter_after_the_databases() -> None:
    first, second = ahead.padded(told(7, range(2))), ahead.padded(told(7, range(2, 3)))
    data = first + second + ahead.padded(told(8, range(1)))
    assert names(data, 6) == [(7, 0), (7, 1), (7, 2), (8, 0)]
    assert names(data, 7) == [(8, 0)]
    assert names(data, 8) == []
    assert names(data, 4) == [], "something between is missing"
    record = ahead.outstanding(data, 6)[1]
    assert (record.name, record.now, record.args) == ("step_begun", 17, ("run", 1, None, "ä"))


def test_what_an_earlier_round_left_behind_the_end_is_not_read() -> None:
    old = ahead.padded(told(7, range(1))) + ahead.padded(told(7, range(1, 2))) + ahead.padded(told(8, range(1)))
    new = ahead.padded(told(9, range(1)))
    assert names(new + old[len(new) :], 8) == [(9, 0)]


def test_a_torn_write_takes_nothing_with_it() -> None:
    whole, torn = ahead.padded(told(7, range(2))), bytearray(ahead.padded(told(7, range(2, 4))))
    for at in (0, 6, 15, 18, 25, 40):
        spoilt = bytearray(torn)
        spoilt[at] ^= 1
        assert names(whole + bytes(spoilt), 6)[:2] == [(7, 0), (7, 1)]
        assert (7, 2) not in names(whole + bytes(spoilt), 6)
    for length in range(0, len(torn), 7):
        assert names(whole + bytes(torn[:length]), 6)[:2] == [(7, 0), (7, 1)]


def test_chapters_go_round() -> None:
    data = ahead.padded(told(ahead.CHAPTERS - 1, range(1))) + ahead.padded(told(0, range(1)))
    assert names(data, ahead.CHAPTERS - 2) == [(ahead.CHAPTERS - 1, 0), (0, 0)]
    assert names(data, ahead.CHAPTERS - 1) == [(0, 0)]
    assert names(data, 0) == []


def test_an_empty_file_and_one_of_zeros_hold_nothing() -> None:
    assert names(b"", 0) == names(bytes(8192), 0) == names(b"hfa1", 0) == []


# -- backups -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("when", ["in the middle", "after a death"])
async def test_a_backup_has_what_is_not_committed(tmp_path: Path, when: str) -> None:
    async with working(tmp_path / "work.db") as (_, _, worker):
        await worker.steps(0, 20)
        left = dead(tmp_path / "work.db")
        home = tmp_path / "home"
        if when == "in the middle":
            home.symlink_to(tmp_path)
        else:
            home.symlink_to(left.parent)
        packed = io.BytesIO()
        archive.write(str(home), packed, {"holdfast_backup": archive.FORMAT})
        assert committed(home / "work.db") < 20, "the backup is taken before anybody commits it"
    back = tmp_path / "back"
    back.mkdir()
    packed.seek(0)
    archive.unpack(packed, str(back), 1 << 30)
    assert sorted(p.name for p in back.glob("work.db*")) == ["work.db"]
    assert (await found(back / "work.db"))["steps"] == {f"s{n}": n for n in range(20)}
