"""SQLite's log is lengthened ahead of its use: commits overwrite, which a file system flushes faster than growth."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

from holdfast.store.sqlite import SqliteStore
from holdfast.work.service import Work

ENTRIES = 150


def size(path: Path) -> int:
    return path.stat().st_size


async def fill(work: Work, log: Path) -> tuple[str, list[int]]:
    """Write entries to a run's log; its id, and how long SQLite's log was after each."""
    run = str((await work.begin_run())["run"])
    sizes = []
    for n in range(ENTRIES):
        await work.log_append(run=run, body=f"{n}" * 500, kind="note")
        sizes.append(size(log))
    return run, sizes


async def read(path: Path, run: str) -> list[str]:
    store = await SqliteStore.open(str(path))
    entries = await Work(store).log_read(run=run)
    await store.close()
    return [e["body"] for e in entries if e["kind"] == "note"]


async def test_commits_seldom_lengthen_the_log(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    _, sizes = await fill(Work(store), tmp_path / "work.db-wal")
    await store.close()
    assert len(set(sizes)) < ENTRIES / 10
    assert sizes == sorted(sizes)


async def test_a_lengthened_log_left_behind_by_a_dead_process_gives_everything_back(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    run, _ = await fill(Work(store), tmp_path / "work.db-wal")
    dead = tmp_path / "dead"
    dead.mkdir()
    for name in ("work.db", "work.db-wal"):  # as they are on disk now, without what a closing store tidies up
        shutil.copy(tmp_path / name, dead / name)
    await store.close()
    log = (dead / "work.db-wal").read_bytes()
    assert log.endswith(bytes(4096)), "there is room ahead in it"
    assert await read(dead / "work.db", run) == [f"{n}" * 500 for n in range(ENTRIES)]


async def test_a_log_grows_no_longer_with_each_process_that_is_killed(tmp_path: Path) -> None:
    place, sizes = tmp_path / "0", []
    for n in range(4):
        place.mkdir(exist_ok=True)
        store = await SqliteStore.open(str(place / "work.db"))
        for _ in range(2):  # the second commit is the first that finds the log outgrown
            await Work(store).begin_run()
        sizes.append(size(place / "work.db-wal"))
        after = tmp_path / str(n + 1)
        after.mkdir()
        for name in ("work.db", "work.db-wal"):  # killed here: nothing is tidied up
            shutil.copy(place / name, after / name)
        await store.close()
        place = after
    assert set(sizes) == {sizes[0]}, "there was room for all of it in what the first one made"


async def test_a_log_that_somebody_cut_short_is_lengthened_again(tmp_path: Path) -> None:
    log = tmp_path / "work.db-wal"
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    await fill(Work(store), log)
    other = sqlite3.connect(tmp_path / "work.db")  # as a backup or a person might
    other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    other.close()
    assert size(log) == 0
    run, sizes = await fill(Work(store), log)
    await store.close()
    assert len(set(sizes)) < ENTRIES / 10
    assert await read(tmp_path / "work.db", run) == [f"{n}" * 500 for n in range(ENTRIES)]


async def test_a_log_is_folded_in_and_written_over_before_it_grows_large(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    work, text, most = Work(store), "x" * (512 << 10), 0
    run = str((await work.begin_run())["run"])
    for _ in range(60):
        await work.log_append(run=run, body=text, kind="note")
        most = max(most, size(tmp_path / "work.db-wal"))
    await store.close()
    assert 16 << 20 < most < 22 << 20, "30 MiB went through it"
