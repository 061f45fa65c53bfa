"""One engine in a process of its own, that runs durable steps on demand: `python -m bench.steppers ENGINE WHERE`.

It says `ready`, then for each line `N LABEL` it runs N steps and answers with the seconds they took. Each step's body
returns 2 KB at once, so that what is measured is what the engine does around it. Engines are used as their own
documentation shows, with their defaults; what they write for each step differs, and is said in the report.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

TEXT = os.urandom(1000).hex()  # 2 KB, in the outcome and, where the engine writes one, in the intent
_LEASE_S = 3600.0  # no heartbeat in the middle of a round
Rounds = Callable[[int, str], float]  # how many steps, and a label that no other round has; seconds


def body(text: str) -> str:
    return text


async def async_body(text: str) -> str:
    return text


def ours(where: str, batch: bool = False) -> Rounds:
    """The SDK, as a worker uses it: the host writes the store."""
    from holdfast import Host

    if "://" in where:
        os.environ["HOLDFAST_STORE"] = where
    host = Host(os.environ["HOLDFAST_HOME"] if "://" in where else where)
    run = host.work.run(lease=_LEASE_S)

    def rounds(count: int, label: str) -> float:
        effect = "none" if label.startswith("none") else "unsafe"
        if label.startswith("plain"):  # a periodic checkpoint, by default every 200 log entries, is no part of a step
            host.work.call("checkpoint_policy", run=run.id, entries=0, size=0)
        began = time.perf_counter()
        if batch:
            run.each(label, lambda item: body(item[-1]), [_Item(n) for n in range(count)], effect=effect)
            return time.perf_counter() - began
        for n in range(count):
            run.step(f"{label}-{n}", body, TEXT, effect=effect)
        return time.perf_counter() - began

    return rounds


class _Item(list[Any]):
    """An item with 2 KB in it, whose name is short."""

    def __init__(self, n: int) -> None:
        super().__init__([n, TEXT])

    def __str__(self) -> str:
        return str(self[0])


def each(where: str) -> Rounds:
    """The same steps as one batch: `run.each`."""
    return ours(where, batch=True)


def together(callers: int) -> Callable[[str], Rounds]:
    """The work plane in this process, `callers` at once: what group commit makes of the same steps."""

    def engine(where: str) -> Rounds:
        from holdfast.store.open import open_store
        from holdfast.work.service import Work

        loop = asyncio.new_event_loop()
        work = Work(loop.run_until_complete(open_store(where)), "bench")

        async def caller(count: int) -> None:
            made = await work.begin_run(worker="bench", ttl_s=_LEASE_S)
            mine = {"run": made["run"], "epoch": made["epoch"]}
            for n in range(count):
                await work.call("step_begin", key=f"s{n}", args=[TEXT], action="body", **mine)
                await work.call("step_end", key=f"s{n}", result=await async_body(TEXT), **mine)

        async def everybody(count: int) -> float:
            began = time.perf_counter()
            await asyncio.gather(*(caller(count // callers) for _ in range(callers)))
            return time.perf_counter() - began

        return lambda count, label: loop.run_until_complete(everybody(count))

    return engine


def dbos(where: str) -> Rounds:
    from dbos import DBOS, DBOSConfig

    config: DBOSConfig = {"name": "bench", "system_database_url": where, "log_level": "ERROR", "enable_otlp": False}
    DBOS(config=config)

    @DBOS.step()  # type: ignore[untyped-decorator]
    def step(text: str) -> str:
        return body(text)

    @DBOS.workflow()  # type: ignore[untyped-decorator]
    def flow(count: int) -> float:
        began = time.perf_counter()
        for _ in range(count):
            step(TEXT)
        return time.perf_counter() - began

    DBOS.launch()
    return lambda count, label: float(flow(count))


def absurd(where: str) -> Rounds:
    from absurd_sdk import Absurd

    app = Absurd(where)
    app.create_queue()
    took: list[float] = []

    @app.register_task(name="flow")
    def flow(params: Any, ctx: Any) -> None:
        began = time.perf_counter()
        for n in range(params["count"]):
            ctx.step(f"s{n}", lambda: body(TEXT))
        took.append(time.perf_counter() - began)

    def rounds(count: int, label: str) -> float:
        app.spawn("flow", {"count": count})
        app.work_batch(claim_timeout=int(_LEASE_S))
        return took.pop()

    return rounds


class _Copied(TypedDict):
    left: int
    messages: Annotated[list[str], lambda old, new: old + new]


def _langgraph(where: str, state: Any) -> Rounds:
    import sqlite3

    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.graph import END, START, StateGraph

    builder: Any = StateGraph(state)
    builder.add_node("step", lambda now: {"left": now["left"] - 1, "messages": [body(TEXT)]})
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda now: "step" if now["left"] else END)
    saver = SqliteSaver(sqlite3.connect(where, check_same_thread=False))
    graph = builder.compile(checkpointer=saver)

    def rounds(count: int, label: str) -> float:
        config = {"configurable": {"thread_id": label}, "recursion_limit": count + 10}
        began = time.perf_counter()
        graph.invoke({"left": count, "messages": []}, config, durability="sync")
        return time.perf_counter() - began

    return rounds


def langgraph(where: str) -> Rounds:
    return _langgraph(where, _Copied)


def langgraph_delta(where: str) -> Rounds:
    import warnings

    from langgraph.channels.delta import DeltaChannel

    warnings.simplefilter("ignore")  # it says that it is beta; so does the report

    def joined(old: list[str], writes: Any) -> list[str]:
        return [*old, *(text for write in writes for text in write)]

    fields = {"left": int, "messages": Annotated[list[str], DeltaChannel(joined)]}
    return _langgraph(where, TypedDict("_Delta", fields))  # type: ignore[operator]


ENGINES: dict[str, Callable[[str], Rounds]] = {
    "ours": ours,
    "each": each,
    "one": together(1),
    "together": together(64),
    "dbos": dbos,
    "absurd": absurd,
    "langgraph": langgraph,
    "langgraph-delta": langgraph_delta,
}


def main() -> None:
    logging.disable(logging.INFO)
    rounds = ENGINES[sys.argv[1]](sys.argv[2])
    print("ready", flush=True)
    for line in sys.stdin:
        count, label = line.split()
        print(rounds(int(count), label), flush=True)
    os._exit(0)  # the engines' threads have nothing to say any more


if __name__ == "__main__":
    main()
