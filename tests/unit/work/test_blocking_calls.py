"""Calls on the caller's own thread: the same rules, shared flushes, and the writer's own line beside them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.store.base import Query, Transaction
from holdfast.store.sqlite import SqliteStore
from holdfast.work.blocking_calls import NEAR, NearWork, growing
from holdfast.work.service import Work
from tests.support.home import until_async

pytestmark = pytest.mark.process

_THREADS, _STEPS = 8, 12


def _ignored(run: str, size: int) -> None:
    """Nobody saves checkpoints here."""


async def test_threads_and_coroutines_write_one_file_and_every_step_is_kept(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "w.db"))
    work, near = Work(store, "op"), NearWork(store, "op", _ignored)
    runs = [await work.begin_run(worker="w", ttl_s=3600) for _ in range(_THREADS + 1)]
    failed: list[BaseException] = []

    def on_a_thread(made: dict[str, Any]) -> None:
        mine = {"run": made["run"], "epoch": made["epoch"]}
        try:
            for n in range(_STEPS):
                assert near.call_now("step_begin", {"key": f"s{n}", **mine})["decision"] == "execute"
                near.call_now("step_end", {"key": f"s{n}", "result": n, **mine})
        except BaseException as e:  # noqa: BLE001 - told to the test below
            failed.append(e)

    threads = [threading.Thread(target=on_a_thread, args=(made,)) for made in runs[1:]]
    for thread in threads:
        thread.start()
    for n in range(_STEPS):
        await work.step_begin(run=runs[0]["run"], epoch=runs[0]["epoch"], key=f"s{n}")
        await work.step_end(run=runs[0]["run"], epoch=runs[0]["epoch"], key=f"s{n}")
    for thread in threads:
        await asyncio.to_thread(thread.join, 60)
    assert failed == []
    for made in runs:
        status = await work.run_status(run=made["run"])
        assert (status["steps"]["done"], status["log_end"]) == (_STEPS, 1 + 2 * _STEPS)
    await store.close()
    with pytest.raises(HoldfastError, match="closed"):
        near.call_now("step_begin", {"run": runs[0]["run"], "key": "late", "epoch": 1})


async def test_a_failure_on_a_thread_is_told_there_and_undoes_nobody_elses_write(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "w.db"))
    work, near = Work(store, "op"), NearWork(store, "op", _ignored)
    made = await work.begin_run(worker="w", ttl_s=3600)
    held = threading.Event()
    asked = threading.Event()

    def slow() -> Transaction[None]:
        held.set()
        assert asked.wait(30)
        yield Query("SELECT 1")

    first = threading.Thread(target=lambda: store.write_now(slow))
    first.start()
    assert await asyncio.to_thread(held.wait, 30)
    outcomes: dict[str, Any] = {}

    def ask(name: str, **args: Any) -> None:
        try:
            outcomes[name] = near.call_now("step_begin", {"run": made["run"], "key": name, **args})["decision"]
        except HoldfastError as e:
            outcomes[name] = e.code

    others = [
        threading.Thread(target=ask, args=("good",), kwargs={"epoch": made["epoch"]}),
        threading.Thread(target=ask, args=("fenced",), kwargs={"epoch": made["epoch"] + 1}),
    ]
    for other in others:
        other.start()
    # Both are in line behind the one that has the turn: they share the next commit.
    await until_async(lambda: len(store.line.near) == 2, 60)
    asked.set()
    for thread in (first, *others):
        await asyncio.to_thread(thread.join, 60)
    assert outcomes == {"good": "execute", "fenced": "fenced"}
    assert [s["key"] for s in await work.step_ls(run=made["run"])] == ["good"]
    await store.close()


async def test_every_near_call_ends_without_waiting_for_anything_but_its_store(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "w.db"))
    grew: list[str] = []
    near = NearWork(store, "op", lambda run, size: grew.append(run))
    made = await Work(store, "op").begin_run(worker="w", ttl_s=3600)
    mine = {"run": made["run"], "epoch": made["epoch"]}
    told = {
        "step_begin": near.call_now("step_begin", {"key": "a", **mine}),
        "step_next": near.call_now(
            "step_next", {"ended": {"key": "a", "request": "r", "result": 1}, "key": "b", **mine}
        ),
        "step_end": near.call_now("step_end", {"key": "b", **mine}),
        "log_append": near.call_now("log_append", {"body": "text", **mine}),
        "lease_renew": near.call_now("lease_renew", mine),
    }
    near.call_now("step_begin", {"key": "c", **mine})
    told["step_fail"] = near.call_now("step_fail", {"key": "c", "error": "no", **mine})
    assert told.keys() == NEAR
    assert told["step_next"]["decision"] == "execute"
    assert grew == [made["run"]] * 6  # all but the renewal add to the log
    await store.close()


async def test_what_was_committed_is_answered_also_when_the_loop_behind_has_ended(tmp_path: Path) -> None:
    store = await SqliteStore.open(str(tmp_path / "w.db"))
    work = Work(store, "op")
    ended = asyncio.new_event_loop()
    ended.close()
    near = NearWork(store, "op", growing(work, ended))
    made = await work.begin_run(worker="w", ttl_s=3600)
    for n in range(400):  # enough entries that a checkpoint is due
        near.call_now("log_append", {"run": made["run"], "epoch": made["epoch"], "body": f"{n} " + "x" * 2000})
    assert len(await work.log_read(run=made["run"])) >= 400
    await work.aclose()
    await store.close()
