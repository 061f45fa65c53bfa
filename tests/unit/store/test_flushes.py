"""How often a step waits for the disk, counted by strace: what durability costs is part of the promise."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.needs import program

PROGRAM = """
import asyncio, os, sys
from holdfast.store.open import open_store
from holdfast.work.blocking_calls import NearWork
from holdfast.work.service import Work

async def main(folder, effect, steps, callers, thread):
    store = await open_store(f"sqlite:///{folder}/work.db")
    work = Work(store)
    runs = [await work.begin_run(worker="w") for _ in range(callers)]
    def mark(name):
        try: os.stat(f"/mark-{name}")
        except OSError: pass
    near = NearWork(store, "op", lambda run, size: None)
    async def call(name, **args):
        await asyncio.to_thread(near.call_now, name, args) if thread else await work.call(name, **args)
    async def one(made):
        for n in range(steps):
            step = {"run": made["run"], "key": f"k{n}", "epoch": made["epoch"], "effect": effect, "args": [n]}
            await call("step_begin", **step)
            await call("step_end", result="x" * 2000, **step)
    mark("begin")
    await asyncio.gather(*(one(made) for made in runs))
    mark("end")
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5] == "thread"))
"""


def flushes(folder: Path, effect: str, steps: int, callers: int = 1, where: str = "loop") -> int:
    """fdatasync and fsync between the two marks."""
    trace = folder / "trace"
    subprocess.run(
        [
            program("strace"),
            "-f",
            "-o",
            str(trace),
            "-e",
            "trace=fdatasync,fsync,newfstatat,stat",
            sys.executable,
            "-c",
            PROGRAM,
            str(folder),
            effect,
            str(steps),
            str(callers),
            where,
        ],
        check=True,
        timeout=100,
    )
    lines = trace.read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if "/mark-begin" in line)
    end = next(i for i, line in enumerate(lines) if "/mark-end" in line)
    # A call that another thread interrupts in the trace is shown twice; its end is marked as resumed.
    return sum(1 for line in lines[begin:end] if "sync(" in line and "resumed" not in line)


@pytest.mark.parametrize(("effect", "most"), [("unsafe", 2), ("idempotent", 2), ("verifiable", 2), ("none", 1)])
def test_a_step_waits_for_the_disk_twice_and_one_without_effect_once(tmp_path: Path, effect: str, most: int) -> None:
    steps = 20
    assert flushes(tmp_path, effect, steps) == most * steps


@pytest.mark.parametrize(("effect", "most"), [("unsafe", 2), ("none", 1)])
def test_a_step_on_a_thread_of_its_own_waits_no_more_often(tmp_path: Path, effect: str, most: int) -> None:
    steps = 20
    assert flushes(tmp_path, effect, steps, where="thread") == most * steps


def test_many_callers_share_their_flushes(tmp_path: Path) -> None:
    alone = 2 * 6 * 32
    assert flushes(tmp_path, "unsafe", 6, callers=32) < alone / 3
