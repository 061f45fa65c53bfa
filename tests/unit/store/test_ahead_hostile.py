"""Writes ahead of SQLite's commit, where something else goes wrong as well: what is left of others, commits of nothing."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from holdfast.store import ahead, sqlite
from holdfast.store.base import Query, Quick, Transaction
from holdfast.store.sqlite import SqliteStore
from holdfast.work.near import NearWork
from holdfast.work.service import Work

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes of a thread follow each other quickly, and nothing is committed for them by itself."""
    monkeypatch.setattr(sqlite, "_HASTE_US", 3600 * 1_000_000)
    monkeypatch.setattr(sqlite, "_LAND_S", 3600.0)


class Worker:
    def __init__(self, store: SqliteStore, made: Json) -> None:
        self.near, self.made = NearWork(store, "op", lambda run, size: None), made

    def begin(self, key: str) -> Json:
        answer: Json = self.near.call_now("step_begin", {"key": key, "run": self.made["run"], "epoch": self.made["epoch"]})
        return answer

    def steps(self, *keys: str) -> None:
        for key in keys:
            mine = {"key": key, "run": self.made["run"], "epoch": self.made["epoch"]}
            assert self.near.call_now("step_begin", mine)["decision"] == "execute"
            self.near.call_now("step_end", {"result": key, **mine})


async def worker_of(store: SqliteStore) -> tuple[Work, Worker]:
    work = Work(store, "op")
    worker = Worker(store, await work.begin_run(worker="w", ttl_s=3600))
    worker.steps("first")
    await work.log_append(run=worker.made["run"], body="all of it is flushed", kind="note")
    worker.steps("second")  # the next ones follow in haste
    return work, worker


def files(path: Path, to: Path) -> Path:
    """A copy of what is on disk, as a kill leaves it."""
    to.mkdir()
    for end in ("", "-wal", "-ahead"):
        if Path(f"{path}{end}").exists():
            shutil.copy(f"{path}{end}", f"{to / path.name}{end}")
    return to / path.name


def content(path: Path, end: str) -> bytes:
    return Path(f"{path}{end}").read_bytes()


def overwrite(path: Path, end: str, data: bytes) -> None:
    with open(f"{path}{end}", "r+b") as file:
        file.write(data)


async def states(path: Path) -> dict[str, str]:
    store = await SqliteStore.open(str(path))
    try:
        work = Work(store)
        return {s["key"]: s["state"] for s in await work.step_ls(run=(await work.run_ls())[0]["run"])}
    finally:
        await store.close()


async def test_a_commit_that_changed_no_page_is_no_reason_to_give_records_up(tmp_path: Path) -> None:
    path = tmp_path / "work.db"

    def the_same() -> Transaction[None]:
        yield Query("UPDATE run SET state = state")

    store = await SqliteStore.open(str(path))
    try:
        work, worker = await worker_of(store)
        await work.log_append(run=worker.made["run"], body="flushed", kind="note")
        worker.begin("warm")
        cut = files(path, tmp_path / "cut")  # flushed, all of it
        worker.steps("a", "b")
        await work.run_ls()  # commits them, and flushes nothing
        before = content(path, "-wal")
        await store.write(the_same)
        assert worker.begin("a")["decision"] != "execute"  # writes nothing either
        if content(path, "-wal") != before:  # then it was flushed
            shutil.copy(f"{path}-wal", f"{cut}-wal")
        worker.steps("c")
        shutil.copy(f"{path}-ahead", f"{cut}-ahead")
    finally:
        await store.close()
    assert await states(cut) == dict.fromkeys(["first", "second", "a", "b", "c"], "done") | {"warm": "open"}


async def test_a_transaction_that_sqlite_ended_by_itself_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    store = await SqliteStore.open(str(path))
    try:
        work, worker = await worker_of(store)
        for way in ("write", "read", "look"):
            worker.steps(f"{way} 1")
            assert store._kept
            assert store._writer is not None
            store._writer.execute("ROLLBACK")  # as SQLite does when it cannot read a page for somebody who looks
            if way == "write":
                worker.steps(f"{way} 2")
            elif way == "read":
                assert f"{way} 1" in {s["key"] for s in await work.step_ls(run=worker.made["run"])}
            else:
                assert worker.begin(f"{way} 1")["decision"] != "execute", "a worker's own look misses nothing"
            worker.steps(f"{way} 3")
        left = files(path, tmp_path / "left")
    finally:
        await store.close()
    kept = {"first", "second", "write 1", "write 2", "write 3", "read 1", "read 3", "look 1", "look 3"}
    assert await states(left) == await states(path) == dict.fromkeys(kept, "done")


async def test_records_beside_a_database_that_was_put_back_by_hand_never_join_on_to_it(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    store = await SqliteStore.open(str(path))
    _, worker = await worker_of(store)
    worker.steps("a")
    await store.close()
    saved = Path(shutil.copy(path, tmp_path / "saved"))

    async def life(*keys: str, more: tuple[str, ...] = ()) -> Path:
        store = await SqliteStore.open(str(path))
        try:
            living = Worker(store, worker.made)
            for key in keys:
                await Work(store, "op").log_append(run=worker.made["run"], body=key, kind="note")
                living.begin(f"slow {key}")
                living.begin(key)  # a chapter of its own
            living.steps(*more)
            return files(path, tmp_path / keys[0])
        finally:
            await store.close()

    stale = await life("o1", "o2", "o3", more=("o4", "o5"))
    shutil.copy(saved, path)  # after a clean end there is no log beside it
    shutil.copy(f"{stale}-ahead", f"{path}-ahead")
    left = await life("n1", "n2", "n3")
    assert set(await states(left)) == {"first", "second", "a", "n1", "n2", "n3", "slow n1", "slow n2", "slow n3"}


async def test_what_a_power_cut_left_of_a_torn_write_does_not_join_on_to_the_next_one(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    store = await SqliteStore.open(str(path))
    work, worker = await worker_of(store)
    worker.steps("a")
    await work.log_append(run=worker.made["run"], body="flushed", kind="note")
    await store.close()
    with contextlib.closing(sqlite3.connect(path)) as database:
        chapter = int(database.execute("PRAGMA user_version").fetchone()[0])

    def begun(key: str) -> Quick:
        some = ("none", "act", "hash", "[]", "idem", "req", *(None,) * 4)
        return Quick("step_begun", (worker.made["run"], key, worker.made["epoch"], "op", "{}", *some), None)

    torn = [ahead.packed(chapter + 1, n, begun(f"torn {n}"), 17) for n in range(3)]
    blocks = [bytes(4096), ahead.padded(torn[1:2]), ahead.padded(torn[2:3])]  # the first one did not reach the disk
    overwrite(path, "-ahead", b"".join(blocks))
    store = await SqliteStore.open(str(path))
    try:
        living = Worker(store, worker.made)
        living.begin("warm")
        living.begin("only")
        left = files(path, tmp_path / "left")
    finally:
        await store.close()
    assert set(await states(left)) == {"first", "second", "a", "warm", "only"}


async def test_a_link_leads_to_the_same_records(tmp_path: Path) -> None:
    path, link = tmp_path / "work.db", tmp_path / "elsewhere.db"
    link.symlink_to(path)
    store = await SqliteStore.open(str(link))
    try:
        _, worker = await worker_of(store)
        worker.steps("a")
        assert store._kept
        left = files(path, tmp_path / "left")
    finally:
        await store.close()
    other = left.parent / "other.db"
    other.symlink_to(left)
    assert await states(other) == dict.fromkeys(["first", "second", "a"], "done")
