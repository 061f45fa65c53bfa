"""A write that goes as foreseen takes two statements on SQLite, and leaves what its transaction would have left."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.work.effects import Fenced
from holdfast.store.base import Quick, Transaction
from holdfast.store.sqlite import SqliteStore
from holdfast.work.foreseen import foreseen
from holdfast.work.service import Work
from tests.support.home import until_async

T = TypeVar("T")
TIMES = ("begun_at", "ended_at", "at", "run")


class Unforeseen:
    """The same store, which runs every transaction statement by statement."""

    def __init__(self, store: SqliteStore) -> None:
        self._store, self.url = store, store.url

    async def write(self, transaction: Callable[[], Transaction[T]]) -> T:
        return await self._store.write(transaction)

    async def quick(self, quick: Quick) -> bool:
        return False

    async def decide(self, change):
        return await self._store.decide(change)

    async def read(self, transaction: Callable[[], Transaction[T]]) -> T:
        return await self._store.read(transaction)

    async def close(self) -> None:
        await self._store.close()


def rows(path: Path, table: str, order: str) -> list[dict[str, Any]]:
    """What a table holds, but for times and the run's random id."""
    database = sqlite3.connect(path)
    database.row_factory = sqlite3.Row
    found = [dict(r) for r in database.execute(f"SELECT * FROM {table} ORDER BY {order}")]
    database.close()
    return [{k: v is not None if k in TIMES else v for k, v in row.items()} for row in found]


async def worked(work: Work) -> list[Any]:
    """Every kind of foreseen write, and each once more as a lost answer is asked for again; the answers."""
    made = await work.begin_run(worker="w", ttl_s=3600)
    mine: dict[str, Any] = {"run": made["run"], "epoch": made["epoch"], "by": "anna"}
    first = {"key": "a", "args": [1], "action": "do", "why": "because", "idem_key": "i1", "request": "req_1", **mine}
    ended = {"key": "a", "result": {"x": 1}, "request": "req_2", **mine}
    none = {"key": "n", "effect": "none", "args": [2], "action": "look", "result": 5, "request": "req_3", **mine}
    second = {"key": "b", "idem_key": "i2", "request": "req_4", **mine}
    done = {"key": "b", "result": 7, "request": "req_5"}
    following = {"ended": done, "key": "c", "args": [3], "effect": "idempotent", "request": "req_6", **mine}
    answers = []
    for name, args in (
        ("step_begin", first),
        ("step_end", ended),
        ("step_end", none),
        ("step_begin", second),
        ("step_next", following),
        ("step_fail", {"key": "c", "error": "no", "request": "req_7", **mine}),
        ("step_begin", {"key": "c", "args": [3], "effect": "idempotent", "request": "req_8", **mine}),
    ):
        answers += [await work.call(name, **args), await work.call(name, **args)]
    for answer in answers:  # the key is made from the run's id
        if str(answer.get("idem_key", "")).startswith("idem_"):
            answer["idem_key"] = "idem_"
        if answer.get("step"):
            answer["step"] = answer["step"]["state"]
    return answers


async def test_what_was_foreseen_leaves_the_rows_and_answers_of_its_transaction(tmp_path: Path) -> None:
    seen = []
    for name in ("quick.db", "plain.db"):
        store = await SqliteStore.open(str(tmp_path / name))
        work = Work(store if name == "quick.db" else Unforeseen(store), "op")
        answers = await worked(work)
        await store.close()
        steps = rows(tmp_path / name, "step", "key")
        for step in steps:
            step["idem_key"] = step["idem_key"][:5]
        seen.append((answers, steps, rows(tmp_path / name, "log", "seq")))
    assert seen[0] == seen[1]


async def test_a_foreseen_write_takes_two_statements_and_its_commit(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    work, said = Work(store, "op"), list[str]()
    made = await work.begin_run(worker="w", ttl_s=3600)
    assert store._writer is not None
    store._writer.set_trace_callback(said.append)
    mine = {"run": made["run"], "epoch": made["epoch"]}
    await work.call("step_begin", key="a", **mine)
    await work.call("step_end", key="a", result=1, **mine)
    store._writer.set_trace_callback(None)
    await store.close()
    words = [text.split()[0] for text in said]
    assert words == ["BEGIN", "INSERT", "INSERT", "COMMIT", "BEGIN", "UPDATE", "INSERT", "COMMIT"]


async def test_whoever_has_not_the_lease_writes_nothing_by_a_shorter_way_either(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    store = await SqliteStore.open(str(path))
    work = Work(store, "op")
    made = await work.begin_run(worker="w", ttl_s=3600)
    mine = {"run": made["run"], "epoch": made["epoch"]}
    await work.step_begin(key="open", **mine)
    await work.lease_release(**mine)  # free, and nobody took over
    before = rows(path, "step", "key"), rows(path, "log", "seq")
    late = {"ended": {"key": "open", "result": 1, "request": "r"}, "key": "next"}
    calls: list[tuple[str, dict[str, Any]]] = [
        ("step_begin", {"key": "new"}),
        ("step_end", {"key": "open"}),
        ("step_end", {"key": "n", "effect": "none"}),
        ("step_next", late),
    ]
    for name, args in calls:
        with pytest.raises(Fenced, match="ran out"):
            await work.call(name, **mine, **args)
        with pytest.raises(Fenced, match="taken over"):
            await work.call(name, run=made["run"], epoch=made["epoch"] + 1, **args)
    assert (rows(path, "step", "key"), rows(path, "log", "seq")) == before
    await store.close()


async def test_a_batch_in_which_one_fails_keeps_the_foreseen_writes_of_the_others(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    work = Work(store, "op")
    made = await work.begin_run(worker="w", ttl_s=3600)
    mine = {"run": made["run"], "epoch": made["epoch"]}
    await work.step_begin(key="k2", args=["other"], **mine)
    told = await asyncio.gather(
        *(work.call("step_begin", key=f"k{n}", args=[n], **mine) for n in range(5)), return_exceptions=True
    )
    assert isinstance(told[2], HoldfastError)
    assert "other arguments" in told[2].message
    assert [t["decision"] for t in told if isinstance(t, dict)] == ["execute"] * 4
    status = await work.run_status(run=made["run"])
    assert (status["steps"]["open"], status["log_end"]) == (5, 6)
    await store.close()


def begun(made: dict[str, Any], key: str) -> Quick:
    quick = foreseen("step_begin", {"run": made["run"], "epoch": made["epoch"], "key": key}, "op")
    assert quick is not None
    return quick


async def test_a_foreseen_write_that_finds_somebody_else_writing_waits_in_line_and_is_done_with_the_others(
    tmp_path: Path,
) -> None:
    path = tmp_path / "work.db"
    store = await SqliteStore.open(str(path))
    made = await Work(store, "op").begin_run(worker="w", ttl_s=3600)
    with store._turn:
        waiting = [asyncio.create_task(asyncio.to_thread(store.quick_now, begun(made, key))) for key in ("a", "b")]
        fenced = begun({**made, "epoch": 7}, "c")
        waiting.append(asyncio.create_task(asyncio.to_thread(store.quick_now, fenced)))
        await until_async(lambda: len(store._near) == 3)
    assert await asyncio.gather(*waiting) == [True, True, False]
    assert [r["key"] for r in rows(path, "step", "key")] == ["a", "b"]
    await store.close()


async def test_a_foreseen_write_whose_commit_fails_is_not_called_done(tmp_path: Path) -> None:
    """Neither by whoever commits alone, nor in line, nor for a coroutine."""
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    made = await Work(store, "op").begin_run(worker="w", ttl_s=3600)
    assert store._writer is not None
    store._writer.set_authorizer(
        lambda action, name, *_: sqlite3.SQLITE_DENY if (action, name) == (22, "COMMIT") else sqlite3.SQLITE_OK
    )
    assert not await asyncio.to_thread(store.quick_now, begun(made, "a"))
    assert not store._writer.in_transaction
    with store._turn:
        waiting = asyncio.create_task(asyncio.to_thread(store.quick_now, begun(made, "b")))
        await until_async(lambda: len(store._near) == 1)
    assert not await waiting
    assert not await store.quick(begun(made, "c"))
    assert not store._writer.in_transaction
    store._writer.set_authorizer(None)
    assert await asyncio.to_thread(store.quick_now, begun(made, "d"))
    assert [r["key"] for r in rows(tmp_path / "work.db", "step", "key")] == ["d"]
    await store.close()
    assert not await store.quick(begun(made, "e"))
    assert not store.quick_now(begun(made, "e"))


async def test_a_file_that_is_locked_by_another_program_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it was waited for twice, and everybody behind it as well: by the foreseen write, then by its transaction."""
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    work = Work(store, "op")
    made = await work.begin_run(worker="w", ttl_s=3600)
    assert store._writer is not None
    store._writer.execute("PRAGMA busy_timeout=1")
    monkeypatch.setattr(store, "_driven", None)  # the transaction is not even begun
    other = sqlite3.connect(tmp_path / "work.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(HoldfastError, match="locked"):
        await asyncio.to_thread(store.quick_now, begun(made, "a"))
    with pytest.raises(HoldfastError, match="locked"):
        await work.call("step_begin", run=made["run"], epoch=made["epoch"], key="a")
    other.close()
    await store.close()


async def test_the_log_is_lengthened_ahead_and_looked_after_also_where_every_write_is_foreseen(tmp_path: Path) -> None:
    log = tmp_path / "work.db-wal"
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    made = await Work(store, "op").begin_run(worker="w", ttl_s=3600)
    await until_async(lambda: not store._nudged and store._writes.empty())
    commits, sizes = store._commits, set[int]()
    for n in range(150):
        assert await asyncio.to_thread(store.quick_now, begun(made, f"k{n}"))
        sizes.add(log.stat().st_size)
    assert store._commits == commits + 150
    assert len(sizes) < 15
    assert store._nudged
    await until_async(lambda: not store._nudged)  # the writer thread has looked whether the log is to be folded in
    await store.close()


async def test_a_value_that_sqlite_cannot_take_harms_nobody_but_whoever_sent_it(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    work = Work(store, "op")
    made = await work.begin_run(worker="w", ttl_s=3600)
    plain = begun(made, "a")
    for odd in (2**70, "\udc80", object()):
        quick = plain._replace(args=(*plain.args[:2], odd, *plain.args[3:]))
        assert not await asyncio.to_thread(store.quick_now, quick)
        assert not await store.quick(quick)
    with pytest.raises(Fenced):
        await work.call("step_begin", run=made["run"], epoch=2**70, key="a")
    assert await asyncio.to_thread(store.quick_now, begun(made, "b"))
    await store.close()


async def test_a_step_whose_answer_was_lost_is_found_by_its_transaction_also_without_a_request_of_the_callers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    work, plain = Work(store, "op"), store.quick
    made = await work.begin_run(worker="w", ttl_s=3600)

    async def lost(quick: Quick) -> bool:
        assert await plain(quick)
        return False

    monkeypatch.setattr(store, "quick", lost)
    mine = {"run": made["run"], "epoch": made["epoch"], "key": "a"}
    assert (await work.call("step_begin", **mine))["decision"] == "execute"
    assert (await work.call("step_end", result=1, **mine))["state"] == "done"
    assert len(rows(tmp_path / "work.db", "log", "seq")) == 3
    await store.close()
