"""SIGKILL at every boundary of a step, a takeover, an artifact and a collection, on both stores."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from holdfast.store.open import open_store
from holdfast.testing.by_hand import sound
from holdfast.work.service import Work
from tests.support.killing import STEPS, lines
from tests.support.mortal import Nursery

T = TypeVar("T")
KILLING = "tests.support.killing"
PARTS = 4  # every fourth boundary each: shorter tests, side by side
_BOUNDARIES_MAX = 2000  # more than any scenario has: the loop ends when a worker lives to its end


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    made = Nursery(KILLING, "holdfast.store.sqlite", "holdfast.store.postgres", "holdfast.work.service")
    yield made
    made.close()


class Witness:
    """The test's own look at the store, kept open: it asks hundreds of times."""

    def __init__(self, url: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._store = self._loop.run_until_complete(open_store(url))  # migrated: a job's boundaries are its own work's
        self.work = Work(self._store, "op_witness")

    def __call__(self, call: str, **args: Any) -> Any:
        return self.run(self.work.call(call, **args))

    def run(self, what: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(what)

    def close(self) -> None:
        self._loop.run_until_complete(self._store.close())
        self._loop.close()


@pytest.fixture
def witness(url: str) -> Iterator[Witness]:
    made = Witness(url)
    yield made
    made.close()


def check_steps(asked: Witness, task: str, folder: Path) -> None:
    """What must hold at any moment after a kill."""
    acks, effects = lines(folder / "acks"), lines(folder / "effects")
    runs = asked("run_ls", task=task)
    assert len(runs) <= 1
    for ack in acks:
        assert not ack.startswith("run ") or ack == f"run {runs[0]['run']}"
    found = {s["key"]: s for s in asked("step_ls", run=runs[0]["run"])} if runs else {}
    for key, effect in STEPS:
        done, step = effects.count(key), found.get(key)
        if f"ended {key}" in acks:
            assert step, f"{key} was acknowledged as ended, and is lost"
            assert (step["state"], step["result"]) in (("done", key * 50), ("settled", key * 50)), step
        if effect != "none" and f"begun {key}" in acks:
            assert step, f"the intent of {key} was acknowledged, and is lost"
        if effect in ("unsafe", "verifiable"):
            assert done <= 1, f"{key} ran twice"
            assert not (done and step is None), f"{key} ran without an intent"
            if done and step and step["state"] not in ("done", "settled"):
                assert step["state"] in ("open", "in_doubt"), "an effect without an outcome is listed in doubt"


@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_a_worker_killed_at_any_boundary_of_its_steps_loses_nothing_and_repeats_nothing(
    nursery: Nursery, url: str, witness: Witness, tmp_path: Path, part: int
) -> None:
    chance = random.Random(part)
    for die_at in range(part, _BOUNDARIES_MAX, PARTS):
        folder = tmp_path / str(die_at)
        folder.mkdir()
        job: dict[str, Any] = {"url": url, "folder": str(folder), "task": f"t{die_at}"}
        if nursery.run(f"{KILLING}:steps", die_at, **job):
            assert die_at > 30, "there are more boundaries than that"  # PostgreSQL: a statement is a whole transaction
            break
        check_steps(witness, job["task"], folder)
        if chance.random() < 0.3:  # the one who takes over may die as well
            nursery.run(f"{KILLING}:steps", chance.randrange(1, 50), **job)
            check_steps(witness, job["task"], folder)
        assert nursery.run(f"{KILLING}:steps", **job)
        check_steps(witness, job["task"], folder)
        effects = lines(folder / "effects")
        assert {key: effects.count(key) for key, effect in STEPS if effect in ("unsafe", "verifiable")} == {
            "pay": 1,
            "copy": 1,
        }
        status = witness("run_status", run=witness("run_ls", task=job["task"])[0]["run"])
        assert (status["state"], status["items"]["pending"], status["in_doubt"]) == ("done", [], [])
    else:
        raise AssertionError("the worker never lived to its end")


@pytest.mark.parametrize("part", range(1, PARTS + 1))
def test_a_kill_in_the_middle_of_an_artifact_or_a_collection_leaves_no_orphan_and_no_dangling_name(
    nursery: Nursery, url: str, witness: Witness, tmp_path: Path, part: int
) -> None:

    async def check(work: Work) -> dict[str, str]:
        await sound(work)
        kept = await work.artifact_ls()
        for artifact in kept:  # the next round starts empty
            await work.artifact_rm(run=artifact["run"], name=artifact["name"])
        return {a["name"]: a["sha256"] for a in kept}

    for die_at in range(part, _BOUNDARIES_MAX, PARTS):
        folder = tmp_path / str(die_at)
        folder.mkdir()
        lived = nursery.run(f"{KILLING}:artifacts", die_at, url=url, folder=str(folder), task=f"t{die_at:04}")
        kept, acks = witness.run(check(witness.work)), lines(folder / "acks")
        wanted = dict(ack.split()[1:] for ack in acks if ack.startswith("put "))
        removing = any(ack.startswith("rm ") for ack in acks)
        for name, sha256 in wanted.items():
            if name == "b" or not removing:
                # The last acknowledged content, or the one whose acknowledgement was killed on its way.
                assert name in kept, f"{name} was acknowledged, and is lost"
                assert kept[name] == sha256 or name == "a", name
        if lived:
            assert list(kept) == ["b"]
            assert die_at > 40, "there are more boundaries than that"
            return
    raise AssertionError("the worker never lived to its end")


def test_a_takeover_killed_anywhere_has_happened_wholly_or_not_at_all(
    nursery: Nursery, url: str, witness: Witness, tmp_path: Path
) -> None:
    async def left_open(work: Work) -> str:
        made = await work.begin_run(worker="w")
        for key in ("one", "two"):
            await work.step_begin(run=made["run"], key=key, epoch=made["epoch"])
        return str(made["run"])

    for die_at in range(1, _BOUNDARIES_MAX):
        folder = tmp_path / str(die_at)
        folder.mkdir()
        run = witness.run(left_open(witness.work))
        lived = nursery.run(f"{KILLING}:takeover", die_at, url=url, folder=str(folder), run=run)
        status = witness("run_status", run=run)
        assert (status["epoch"], status["steps"]["open"], status["steps"]["in_doubt"]) in ((1, 2, 0), (2, 0, 2))
        if lines(folder / "acks"):
            assert status["epoch"] == 2
        if lived:
            assert die_at > 4, "there are more boundaries than that"
            return
    raise AssertionError("the worker never lived to its end")


def test_a_claim_and_a_parking_killed_anywhere_have_happened_wholly_or_not_at_all(
    nursery: Nursery, url: str, witness: Witness, tmp_path: Path
) -> None:
    async def given_back(work: Work, job: str) -> str:
        run = str((await work.begin_run(job=job))["run"])
        got = await work.run_claim(jobs=[job], worker="w1")
        await work.step_begin(run=run, key="pay", epoch=got["epoch"])
        await work.lease_release(run=run, epoch=got["epoch"])
        return run

    for die_at in range(1, _BOUNDARIES_MAX):
        folder = tmp_path / str(die_at)
        folder.mkdir()
        run = witness.run(given_back(witness.work, f"job{die_at}"))
        lived = nursery.run(f"{KILLING}:claiming", die_at, url=url, folder=str(folder), job=f"job{die_at}")
        status, acks = witness("run_status", run=run), lines(folder / "acks")
        stands = (status["epoch"], status["leased"], status["steps"]["in_doubt"], status["waits_for"])
        assert stands in ((1, False, 0, None), (2, True, 1, None), (2, False, 1, "pay"))
        if acks:
            assert status["epoch"] == 2
        if "parked" in acks:
            assert status["waits_for"] == "pay"
        if lived:
            assert die_at > 8, "there are more boundaries than that"
            return
    raise AssertionError("the worker never lived to its end")
