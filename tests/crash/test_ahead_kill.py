"""A process is killed in the middle of steps that are acknowledged ahead of SQLite's commit; the next one has them all."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

from holdfast.store.open import open_store
from holdfast.work.service import Work

_KILLS = 12
_STEPS_MAX = 160  # of one life: several commits, and less than a round of the file
PROGRAM = """
import asyncio, sys, threading
from holdfast.store import sqlite
from holdfast.work.near import NearWork
from holdfast.work.service import Work

def say(*words):
    sys.stdout.write(" ".join(words) + "\\n")
    sys.stdout.flush()

async def main(path, life):
    sqlite._HASTE_US = 3600 * 1_000_000
    store = await sqlite.SqliteStore.open(path)
    made = await Work(store, "op").begin_run(worker="w", ttl_s=3600)
    near = NearWork(store, "op", lambda run, size: None)

    def work(who):
        mine = {"run": made["run"], "epoch": made["epoch"]}
        for n in range(1000):
            key = f"{life}-{who}-{n}"
            near.call_now("step_begin", {"key": key, "args": [key], **mine})
            say("begun", made["run"], key)
            near.call_now("step_end", {"key": key, "result": "x" * 2000, **mine})
            say("ended", made["run"], key)

    await asyncio.gather(*(asyncio.to_thread(work, who) for who in range(2)))

asyncio.run(main(sys.argv[1], sys.argv[2]))
"""


def one_life(path: Path, life: int, steps: int) -> list[list[str]]:
    """What a process was told is on disk, until it was killed."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(path), str(life)], stdout=subprocess.PIPE, text=True
    )
    told = []
    try:
        assert process.stdout is not None
        for line in process.stdout:
            told.append(line.split())
            if len(told) == steps:
                process.kill()  # what it still says was acknowledged before it died, and is read here, too
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
    return [words for words in told if len(words) == 3]


async def states(path: Path) -> dict[tuple[str, str], Any]:
    store = await open_store(f"sqlite:///{path}")
    try:
        work = Work(store)
        return {
            (run["run"], s["key"]): s["state"]
            for run in await work.run_ls()
            for s in await work.step_ls(run=run["run"])
        }
    finally:
        await store.close()


async def test_every_acknowledged_step_is_there_after_each_of_many_kills(tmp_path: Path) -> None:
    chance, path = random.Random(7), tmp_path / "work.db"
    told: list[list[str]] = []
    for life in range(_KILLS):
        told += one_life(path, life, chance.randrange(1, _STEPS_MAX))
        if life % 3 == 2:  # else the next worker finds what is left, not a reader
            now = await states(path)
            wrong = [
                words
                for words in told
                if now.get((words[1], words[2])) not in (("done",) if words[0] == "ended" else ("open", "done"))
            ]
            assert wrong == []
    assert len(told) > _KILLS
