"""What a conversation of 400 turns costs to keep: the file it makes, and its last save beside its first."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import tempfile
import time
from typing import Annotated, Any, TypedDict

from .result import Result, Target, spread

KEY = "checkpoints"
_MESSAGES = 3  # a turn: what the user said, what the agent did, what it answered
_BYTES = 1000
_EDGE = 20  # saves at each end that are compared, by their medians
_WARM_UP = 3


def measure(quick: bool) -> list[Result]:
    turns = 60 if quick else 400
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as folder:
        run = _result(KEY, "a run's checkpoint", turns, *asyncio.run(_runs(f"{folder}/run.db", turns)))
        put = "LangGraph with HoldfastSaver, one `put`"
        graph = _result(f"{KEY}-langgraph", put, turns, *_graph(f"{folder}/graph.db", turns))
    return [run, graph]


def _result(key: str, what: str, turns: int, times_ms: list[float], file_bytes: int) -> Result:
    payload = turns * _MESSAGES * _BYTES
    first = statistics.median(times_ms[_WARM_UP : _WARM_UP + _EDGE])
    last = statistics.median(times_ms[-_EDGE:])
    return Result(
        key=key,
        name=f"{what}, {turns} turns of {_MESSAGES} messages of 1 KB",
        unit="ms",
        ours=last,
        targets=(
            Target("last save ÷ first save", last / first, 1.5, "lower"),
            Target("file ÷ payload", file_bytes / payload, 3.0, "lower"),
        ),
        notes=(
            f"SQLite, synchronous=FULL; {payload:,} bytes of random hexadecimal text, which compresses to about half",
            f"the file once the write-ahead log is folded in: {file_bytes:,} bytes",
            f"first {_EDGE} saves: {spread(times_ms[_WARM_UP : _WARM_UP + _EDGE])}; last: {spread(times_ms[-_EDGE:])}",
        ),
    )


def _text(chance: random.Random) -> str:
    return chance.randbytes(_BYTES // 2).hex()


def _size(path: str) -> int:
    import sqlite3

    database = sqlite3.connect(path)
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    return os.path.getsize(path)


async def _runs(path: str, turns: int) -> tuple[list[float], int]:
    from holdfast.store.open import open_store
    from holdfast.work.service import Work

    chance, times = random.Random(1), []
    store = await open_store(f"sqlite:///{path}")
    work = Work(store, "bench")
    made = await work.begin_run(worker="bench", ttl_s=3600)
    messages: list[dict[str, str]] = []
    for _ in range(turns):
        messages += [{"role": "user", "content": _text(chance)} for _ in range(_MESSAGES)]
        began = time.perf_counter()
        await work.checkpoint_save(run=made["run"], epoch=made["epoch"], state={"messages": messages})
        times.append((time.perf_counter() - began) * 1e3)
    await work.aclose()
    await store.close()
    return times, _size(path)


class _Chat(TypedDict):
    messages: Annotated[list[Any], lambda old, new: old + new]


def _graph(path: str, turns: int) -> tuple[list[float], int]:
    from langgraph.graph import END, START, StateGraph

    from holdfast.integrations.langgraph import HoldfastSaver

    chance, times = random.Random(1), []

    class Timed(HoldfastSaver):
        def put(self, *args: Any) -> Any:
            began = time.perf_counter()
            done = super().put(*args)
            times.append((time.perf_counter() - began) * 1e3)
            return done

    def said(role: str) -> dict[str, str]:
        return {"role": role, "content": _text(chance)}

    builder = StateGraph(_Chat)
    builder.add_node("agent", lambda state: {"messages": [said("tool"), said("assistant")]})
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    with Timed.open(f"sqlite:///{path}") as saver:
        graph: Any = builder.compile(checkpointer=saver)
        for _ in range(turns):
            graph.invoke({"messages": [said("user")]}, {"configurable": {"thread_id": "1"}}, durability="sync")
    return times, _size(path)
