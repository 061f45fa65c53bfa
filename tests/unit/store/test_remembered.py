"""A change that is decided on the rows written last takes two statements, and leaves what rows that are read would."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.work.effects import Fenced
from holdfast.store.base import Change
from holdfast.store.remembered import Remembered
from holdfast.store.sqlite import SqliteStore
from holdfast.work.blocking_calls import NearWork
from holdfast.work.service import Work
from holdfast.work.steps import rows as steps
from holdfast.work.steps.intent import intended
from tests.support.home import until_async

TIMES = ("begun_at", "ended_at", "at", "run")


class Forgetful(Remembered):
    """Keeps nothing: every change reads its rows."""

    def keep(self, rows: Any, put: Any) -> None:
        """Not even this."""


def change(made: dict[str, Any], key: str, epoch: int | None = None) -> Change[dict[str, Any]]:
    intent = intended(made["run"], key, "unsafe", None, None, None, None, None, None, "op", f"req_{key}")
    return steps.begin(intent, made["epoch"] if epoch is None else epoch)


def rows(path: Path, table: str, order: str) -> list[dict[str, Any]]:
    """What a table holds, but for times and the run's random id."""
    database = sqlite3.connect(path)
    database.row_factory = sqlite3.Row
    found = [dict(r) for r in database.execute(f"SELECT * FROM {table} ORDER BY {order}")]
    database.close()
    return [{k: v is not None if k in TIMES else v for k, v in row.items()} for row in found]


async def worked(work: Work) -> list[Any]:
    """Every kind of change, and each once more as a lost answer is asked for again; the answers."""
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


async def test_a_change_from_memory_leaves_the_rows_and_answers_of_one_that_reads(tmp_path: Path) -> None:
    seen = []
    for name in ("kept.db", "read.db"):
        store = await SqliteStore.open(str(tmp_path / name))
        if name == "read.db":
            store._remembered = Forgetful()
        answers = await worked(Work(store, "op"))
        await store.close()
        steps = rows(tmp_path / name, "step", "key")
        for step in steps:
            step["idem_key"] = step["idem_key"][:5]
        seen.append((answers, steps, rows(tmp_path / name, "log", "seq")))
    assert seen[0] == seen[1]


async def test_a_change_from_memory_takes_two_statements_and_its_commit(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    work, said = Work(store, "op"), list[str]()
    made = await work.begin_run(worker="w", ttl_s=3600)
    assert store._writer is not None
    store._writer.set_trace_callback(said.append)
    mine = {"run": made["run"], "epoch": made["epoch"]}
    await work.call("step_begin", key="first", **mine)
    said.clear()
    await work.call("step_begin", key="a", **mine)
    await work.call("step_end", key="a", result=1, **mine)
    store._writer.set_trace_callback(None)
    await store.close()
    words = [text.split()[0] for text in said]
    assert words == ["BEGIN", "INSERT", "INSERT", "COMMIT", "BEGIN", "UPDATE", "INSERT", "COMMIT"]


async def test_whoever_has_not_the_lease_writes_nothing_from_memory_either(tmp_path: Path) -> None:
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


async def test_a_batch_in_which_one_fails_keeps_the_changes_of_the_others(tmp_path: Path) -> None:
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


async def test_a_change_that_finds_another_writing_waits_in_line_and_is_done_with_the_others(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    store = await SqliteStore.open(str(path))
    made = await Work(store, "op").begin_run(worker="w", ttl_s=3600)
    with store.line.turn:
        changes = [change(made, "a"), change(made, "b"), change(made, "c", epoch=7)]
        waiting = [asyncio.create_task(asyncio.to_thread(store.decide_now, one)) for one in changes]
        await until_async(lambda: len(store.line.near) == 3)
    told = await asyncio.gather(*waiting, return_exceptions=True)
    assert [t["decision"] for t in told if isinstance(t, dict)] == ["execute", "execute"]
    assert isinstance(told[2], Fenced)
    assert [r["key"] for r in rows(path, "step", "key")] == ["a", "b"]
    await store.close()


async def test_a_change_whose_commit_fails_is_not_called_done(tmp_path: Path) -> None:
    """Neither on a thread, nor in line, nor for a coroutine; and what it would have left is not remembered."""
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    made = await Work(store, "op").begin_run(worker="w", ttl_s=3600)
    await store.decide(change(made, "first"))
    assert store._writer is not None
    store._writer.set_authorizer(
        lambda action, name, *_: sqlite3.SQLITE_DENY if (action, name) == (22, "COMMIT") else sqlite3.SQLITE_OK
    )
    for ask in (
        lambda: asyncio.to_thread(store.decide_now, change(made, "a")),
        lambda: store.decide(change(made, "b")),
    ):
        with pytest.raises(HoldfastError):
            await ask()
        assert not store._writer.in_transaction
    store._writer.set_authorizer(None)
    assert (await asyncio.to_thread(store.decide_now, change(made, "d")))["decision"] == "execute"
    assert [r["key"] for r in rows(tmp_path / "work.db", "step", "key")] == ["d", "first"]
    assert [r["seq"] for r in rows(tmp_path / "work.db", "log", "seq")] == [1, 2, 3]
    await store.close()
    for late in (store.decide(change(made, "e")), asyncio.to_thread(store.decide_now, change(made, "e"))):
        with pytest.raises(HoldfastError, match="closed"):
            await late


async def test_a_file_that_is_locked_by_another_program_is_waited_for_once(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    made = await Work(store, "op").begin_run(worker="w", ttl_s=3600)
    assert store._writer is not None
    store._writer.execute("PRAGMA busy_timeout=1")
    asked = list[str]()
    store._writer.set_trace_callback(asked.append)
    other = sqlite3.connect(tmp_path / "work.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(HoldfastError, match="locked"):
        await asyncio.to_thread(store.decide_now, change(made, "a"))
    with pytest.raises(HoldfastError, match="locked"):
        await store.decide(change(made, "a"))
    assert asked == ["BEGIN IMMEDIATE"] * 2
    other.close()
    await store.close()


async def test_the_log_is_lengthened_ahead_and_looked_after_also_where_threads_write(tmp_path: Path) -> None:
    log = tmp_path / "work.db-wal"
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    made = await Work(store, "op").begin_run(worker="w", ttl_s=3600)
    await until_async(lambda: not store.line.nudged)
    commits, sizes = store.line.commits, set[int]()
    for n in range(150):
        await asyncio.to_thread(store.decide_now, change(made, f"k{n}"))
        sizes.add(log.stat().st_size)
    assert store.line.commits >= commits + 150
    assert len(sizes) < 15
    assert store.line.nudged
    await until_async(lambda: not store.line.nudged)  # the writer thread has looked whether it is to be folded in
    await store.close()


async def test_a_value_that_sqlite_cannot_take_harms_no_other_caller(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    work = Work(store, "op")
    made = await work.begin_run(worker="w", ttl_s=3600)
    await store.decide(change(made, "first"))

    def odd(by: str) -> Change[dict[str, Any]]:
        intent = intended(made["run"], "odd", "unsafe", None, None, None, None, None, None, by, "req_odd")
        return steps.begin(intent, made["epoch"])

    with store.line.turn:
        waiting = [
            asyncio.create_task(asyncio.to_thread(store.decide_now, one))
            for one in (change(made, "a"), odd("\udc80"), change(made, "b"))
        ]
        await until_async(lambda: len(store.line.near) == 3)
    told = await asyncio.gather(*waiting, return_exceptions=True)
    assert [isinstance(t, dict) for t in told] == [True, False, True]
    with pytest.raises(Fenced):
        await work.call("step_begin", run=made["run"], epoch=2**70, key="a")
    assert [r["key"] for r in rows(tmp_path / "work.db", "step", "key")] == ["a", "b", "first"]
    await store.close()


async def test_a_step_whose_answer_was_lost_is_found_when_it_is_asked_for_again(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    work, near = Work(store, "op"), NearWork(store, "op", lambda run, size: None)
    made = await work.begin_run(worker="w", ttl_s=3600)
    mine = {"run": made["run"], "epoch": made["epoch"], "key": "a"}
    for request, name in (("req_1", "step_begin"), ("req_2", "step_end")):
        told = await asyncio.to_thread(near.call_now, name, {**mine, "request": request})
        assert await work.call(name, **mine, request=request) == told
    assert len(rows(tmp_path / "work.db", "log", "seq")) == 3
    await store.close()


@pytest.mark.parametrize("between", ["log_append", "checkpoint_save", "step_settle", "begin_run"])
async def test_rows_that_another_call_changed_are_read_again(tmp_path: Path, between: str) -> None:
    """Whatever wrote to the run since has taken the number of the next entry, or the epoch."""
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    work, other = Work(store, "op"), Work(store, "op")
    made = await work.begin_run(worker="w", ttl_s=3600)
    mine = {"run": made["run"], "epoch": made["epoch"]}
    await work.call("step_begin", key="a", effect="idempotent", **mine)
    kept = dict(store._remembered._rows)
    calls: dict[str, dict[str, Any]] = {
        "log_append": {"run": made["run"], "body": "a remark"},
        "checkpoint_save": {"state": {"goal": "g"}, **mine},
        "step_settle": {"run": made["run"], "key": "a", "outcome": "done", "evidence": "e", "epoch": made["epoch"]},
        "begin_run": {"run": made["run"], "worker": "w"},
    }
    await other.call(between, **calls[between])
    store._remembered._rows.clear()
    store._remembered._rows |= kept  # as in another host, which does not see this one's writes
    if between in ("step_settle", "begin_run"):
        with pytest.raises((HoldfastError, Fenced)):
            await work.call("step_end", key="a", result=1, **mine)
    else:
        assert (await work.call("step_end", key="a", result=1, **mine))["state"] == "done"
    seqs = [r["seq"] for r in rows(tmp_path / "work.db", "log", "seq")]
    assert seqs == list(range(1, len(seqs) + 1))
    await work.aclose()
    await store.close()
