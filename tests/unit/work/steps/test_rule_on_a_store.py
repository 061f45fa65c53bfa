"""The rule on a database gives the answers and rows that it gives in memory, whichever way the store writes them."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.store import queries
from holdfast.store.base import Step
from holdfast.store.sqlite import SqliteStore
from holdfast.work.service import Work
from tests.support.rule_memory import MemoryRows

Call = tuple[str, dict[str, Any]]
_TIMES = frozenset({"begun_at", "ended_at", "doubt_since", "doubt_until", "at"})
_TOLD = frozenset({"begun_at", "ended_at", "in_doubt_since", "settle_by", "overdue"})


def a_call(r: random.Random, n: int, epoch: int) -> Call:
    """One of a worker's calls; some repeat a request, some come from a worker that was taken over."""
    name = r.choice(
        ["step_begin", "step_end"] * 4 + ["step_next", "step_fail", "step_settle", "log_append"] * 2 + _SELDOM
    )
    key, request = f"k{r.randrange(4)}", f"req_{r.randrange(6)}" if r.random() < 0.4 else f"own_{n}"
    effect = r.choice(["verifiable", "idempotent"]) if r.random() < 0.3 else "unsafe"
    mine: dict[str, Any] = {"epoch": epoch if r.random() < 0.93 else epoch - 1, "request": request}
    if name == "step_begin":
        return name, {"key": key, "effect": effect, "args": [r.choice([1, 1, 1, 2])], "action": "a", **mine}
    if name == "step_end":
        none = {"effect": "none", "args": [1]} if r.random() < 0.2 else {}
        return name, {"key": key, "result": {"v": n}, **none, **mine}
    if name == "step_next":
        ended = {"key": f"k{r.randrange(4)}", "result": n, "request": f"end_{n}"}
        return name, {"key": key, "effect": effect, "args": [1], "ended": ended, **mine}
    if name == "step_fail":
        return name, {"key": key, "error": "x", "known": r.random() < 0.5, "running": r.random() < 0.1, **mine}
    if name == "step_settle":
        outcome = r.choice(["done", "not_done", "failed"])
        return name, {"key": key, "outcome": outcome, "result": 1, "evidence": r.choice(["e", None]), **mine}
    if name == "step_assign":
        return name, {"key": key, "owner": r.choice([None, "b", "c"])}
    return name, {"body": f"n{n}", **mine, "request": request + "_log"} if name == "log_append" else {}


_SELDOM = ["step_assign", "take", "release"]


async def told(work: Work, run: str, call: Call) -> Any:
    try:
        answer = await work.call(call[0], run=run, **call[1])
    except HoldfastError as e:
        return e.code, e.message.partition("ran out")[0]  # by how much is a matter of the clock
    if answer.get("step"):
        answer["step"] = untimed(answer["step"])
    return untimed(answer)


def untimed(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if k not in _TOLD}


def rows(steps: list[Step], log: list[Any]) -> tuple[list[Any], list[Any]]:
    plain = [{k: v is not None if k in _TIMES else v for k, v in s._asdict().items()} for s in steps]
    return sorted(plain, key=lambda s: str(s["key"])), [
        {**e._asdict(), "at": None, "request": None, "body": e.body.partition(',"settle_by"')[0]} for e in log
    ]


@pytest.mark.parametrize("seed", range(12))
async def test_random_calls_are_answered_as_in_memory(tmp_path: Path, seed: int) -> None:
    r = random.Random(seed)
    store = await SqliteStore.open(str(tmp_path / "work.db"))
    work = Work(store, "b")
    made = await work.begin_run(worker="w", ttl_s=3600)
    run, epoch = made["run"], made["epoch"]
    memory = MemoryRows(run, await store.read(lambda: queries.seen(run)))
    memory.log = await store.read(lambda: queries.log(run, 0, 1 << 62, 10))
    beside = Work(memory, "b")
    for n in range(60):
        call = a_call(r, n, epoch)
        if call[0] == "take":
            epoch = (await work.begin_run(run=run, worker="w", ttl_s=3600))["epoch"]
            memory.take((await store.read(lambda: queries.log(run, len(memory.log), 1 << 62, 10)))[-1].body)
        elif call[0] == "release":
            await work.lease_release(run=run, epoch=epoch)
            memory.release()
        else:
            assert await told(work, run, call) == await told(beside, run, call), (n, call)
    steps = await store.read(lambda: queries.steps(run))
    log = await store.read(lambda: queries.log(run, 0, 1 << 62, 1000))
    there, here = rows(steps, log), rows([*memory.steps.values()], memory.log)
    assert there[0] == here[0]
    assert there[1] == here[1]
    await store.close()


async def test_every_change_of_a_step_appends_to_the_log_of_its_run(tmp_path: Path) -> None:
    """The number of a run's last entry is the version of its steps: a change without an entry would go unnoticed."""
    path = tmp_path / "work.db"
    store = await SqliteStore.open(str(path))
    work = Work(store, "b")
    made = await work.begin_run(worker="w", ttl_s=3600)
    run, mine = made["run"], {"run": made["run"], "epoch": made["epoch"]}
    database = sqlite3.connect(path, isolation_level=None)
    database.execute("CREATE TABLE touched (run TEXT, seq INTEGER, what TEXT)")
    for what in ("INSERT", "UPDATE"):
        database.execute(
            f"CREATE TRIGGER on_{what} AFTER {what} ON step BEGIN INSERT INTO touched VALUES"
            f" (NEW.run, (SELECT MAX(seq) FROM log WHERE run = NEW.run), NEW.key || ' ' || NEW.state); END"
        )
    seen = list[str]()

    async def noted() -> None:
        """Each change since the last look is older than the run's last entry."""
        for of, seq, what in database.execute("SELECT run, seq, what FROM touched").fetchall():
            last = database.execute("SELECT MAX(seq) FROM log WHERE run = ?", (of,)).fetchone()[0]
            assert last > seq, what
            seen.append(what)
        database.execute("DELETE FROM touched")

    await work.call("step_begin", key="a", **mine)
    await noted()
    assert (await work.call("step_begin", key="a", **mine))["decision"] == "in_doubt"  # begun twice
    await noted()
    await work.call("step_assign", run=run, key="a", owner="anna", within_s=60)
    await noted()
    await work.call("step_settle", run=run, key="a", outcome="not_done", evidence="e", by="anna")
    await noted()
    await work.call("step_begin", key="b", effect="idempotent", **mine)
    await work.call("step_next", ended={"key": "b", "request": "r"}, key="c", **mine)
    await noted()
    await work.call("step_fail", key="c", error="no", known=False, **mine)
    await noted()
    await work.call("step_begin", key="d", **mine)
    await noted()
    await work.begin_run(run=run, worker="w", ttl_s=3600)  # a takeover puts d in doubt
    await noted()
    assert {"a open", "a in_doubt", "a settled", "b done", "c open", "c in_doubt", "d in_doubt"} <= set(seen)
    database.close()
    await store.close()
