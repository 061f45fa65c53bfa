"""SIGKILL at every boundary of a checkpoint, a snapshot, a restore, a fork and a prune, on both stores."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.delta import encode
from holdfast.delta.value_codec import JSON
from holdfast.store.open import open_store
from holdfast.work.service import Work
from holdfast.work.threads.threads import Threads
from tests.support.killing import lines
from tests.support.mortal import Nursery

KILLING = "tests.support.killing_checkpoints"
PARTS = 4  # every fourth boundary each: shorter tests, side by side
_BOUNDARIES_MAX = 2000  # more than any scenario has: the loop ends when a worker lives to its end


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery(KILLING, "holdfast.store.sqlite", "holdfast.store.postgres", "zstandard")
    yield made
    made.close()


@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_a_save_killed_anywhere_is_there_wholly_or_not_at_all_and_an_acknowledged_one_is_there(
    nursery: Nursery, url: str, tmp_path: Path, part: int
) -> None:
    async def look(work: Work, acks: list[Any]) -> None:
        run = next((a[1] for a in acks if a[0] == "run"), None)
        if run is None:
            return
        made = {c["seq"]: c for c in await work.checkpoint_ls(run=run)}
        for seq in made:  # every one that is there can be restored: its hash is checked
            shown = await work.checkpoint_show(run=run, seq=seq)
            assert encode.state_hash(shown["state"]) == made[seq]["hash"]
        for ack in acks:
            if ack[0] == "saved":
                assert made[ack[1]]["hash"] == ack[2], "an acknowledged checkpoint is lost"
            elif ack[0] == "forked":
                assert (await work.state_at(run=ack[1]))["state"]["goal"] == "a"
        said = [m["content"] for m in (await work.memory_window(run=run))["messages"]]
        if not any(c["label"] == "restored from 1" for c in made.values()):
            heard = [a[1] for a in acks if a[0] == "message"]
            assert said[: len(heard)] == heard, "an acknowledged message is lost"
        await work.log_append(run=run, kind="note", body={"text": "after"})  # and the run can go on
        await work.state_at(run=run)

    async def rounds() -> None:
        store = await open_store(url)
        work = Work(store, "op_witness")
        try:
            for die_at in range(part, _BOUNDARIES_MAX, PARTS):
                folder = tmp_path / str(die_at)
                folder.mkdir()
                job = {"url": url, "folder": str(folder), "task": f"t{die_at}"}
                lived = await asyncio.to_thread(nursery.run, f"{KILLING}:saves", die_at, **job)
                await look(work, [json.loads(line) for line in lines(folder / "acks")])
                if lived:
                    assert die_at > 30, "there are more boundaries than that"
                    return
            raise AssertionError("the worker never lived to its end")
        finally:
            await work.aclose()
            await store.close()

    asyncio.run(rounds())


@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_a_prune_killed_anywhere_leaves_every_surviving_checkpoint_restorable(
    nursery: Nursery, url: str, tmp_path: Path, part: int
) -> None:
    async def look(threads: Threads, thread: str, acks: list[Any]) -> None:
        kept = [found async for found in threads.listed(thread, None)]  # each is restored, its hash checked
        wanted = dict(a for a in acks if a[0].startswith("c"))
        for found in kept:
            assert found.head.hash == wanted.get(found.head.id, found.head.hash)
        there, words = {found.head.id for found in kept}, {a[0] for a in acks}
        if "going" not in words:
            assert set(wanted) <= there, "an acknowledged checkpoint is lost"
        elif "gone" in words:
            assert "c3" in there
            assert not {"c0", "c2"} & there

    async def rounds() -> None:
        store = await open_store(url)
        threads = Threads(store, JSON)
        try:
            for die_at in range(part, _BOUNDARIES_MAX, PARTS):
                folder = tmp_path / str(die_at)
                folder.mkdir()
                job = {"url": url, "folder": str(folder), "task": f"t{die_at}"}
                lived = await asyncio.to_thread(nursery.run, f"{KILLING}:prunes", die_at, **job)
                await look(threads, f"t{die_at}", [json.loads(line) for line in lines(folder / "acks")])
                if lived:
                    assert die_at > 15, "there are more boundaries than that"
                    return
            raise AssertionError("the worker never lived to its end")
        finally:
            await store.close()

    asyncio.run(rounds())
