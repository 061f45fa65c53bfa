"""The conformance suite of runs that workers find: who gets which, when a standby may, what waits for a person."""

from __future__ import annotations

import asyncio
from typing import Any

from ..work.service import Work
from .store import refused
from .workers import SHORT_S, expired, working

_LONG_S = 600.0  # a lease that does not run out meanwhile


async def claim(work: Work, worker: str, *, jobs: tuple[str, ...] = ("a",), **options: Any) -> dict[str, Any]:
    return await work.run_claim(jobs=list(jobs), worker=worker, **{"ttl_s": _LONG_S, **options})


class JobsSuite:
    """Every backend passes all of it."""

    async def test_workers_get_the_oldest_run_of_their_jobs_each_its_own(self, store_url: str) -> None:
        async with working(store_url) as work:
            first = (await work.begin_run(job="a", params={"n": 1}, items=["x"]))["run"]
            other = (await work.begin_run(job="b"))["run"]
            second = (await work.begin_run(job="a"))["run"]
            await work.begin_run()  # nobody's job
            got = await claim(work, "w1")
            assert (got["run"], got["job"], got["epoch"]) == (first, "a", 1)
            assert (got["params"], got["items"]) == ({"n": 1}, ["x"])
            assert (got["resumed"], got["before"]) == (False, None)
            assert (await claim(work, "w2"))["run"] == second
            none = await claim(work, "w3")
            assert (none["run"], none["active"]) == (None, 2)
            assert 0 < none["next_in_s"] <= _LONG_S
            assert (await claim(work, "w3", jobs=("c", "b")))["run"] == other
            await work.run_end(run=first, epoch=1)
            assert (await claim(work, "w3"))["active"] == 1

    async def test_many_workers_at_once_never_get_the_same_run(self, store_url: str) -> None:
        async with working(store_url) as work:
            runs = {(await work.begin_run(job="a"))["run"] for _ in range(12)}
            got = await asyncio.gather(*(claim(work, f"w{n}") for n in range(20)))
            while len(found := [g["run"] for g in got if g["run"]]) < len(runs):  # who was late looks again
                got += await asyncio.gather(*(claim(work, f"x{len(got)}.{n}") for n in range(4)))
            assert sorted(found) == sorted(runs)

    async def test_a_worker_whose_answer_was_lost_gets_its_run_again(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run(job="a"))["run"]
            first = await claim(work, "w1")
            again = await claim(work, "w1")
            assert (again["run"], again["epoch"]) == (run, first["epoch"] + 1)
            assert (await claim(work, "w2"))["run"] is None

    async def test_what_a_dead_worker_left_is_taken_over_with_its_open_steps_in_doubt(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run(job="a"))["run"]
            first = await claim(work, "w1", ttl_s=2.0)
            await work.step_begin(run=run, key="k", epoch=first["epoch"])
            assert (await claim(work, "w2", standby=True))["run"] is None
            await expired(work, run)
            taken = await claim(work, "w2", standby=True)
            assert (taken["run"], taken["epoch"], taken["in_doubt"], taken["before"]) == (run, 2, ["k"], "w1")
            assert taken["resumed"]
            with refused("fenced"):
                await work.step_end(run=run, key="k", epoch=first["epoch"])

    async def test_a_standby_leaves_a_new_run_to_others_for_as_long_as_a_lease(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run(job="a"))["run"]
            waiting = await claim(work, "w2", standby=True)
            assert (waiting["run"], waiting["active"]) == (None, 1)
            for _ in range(3000):
                got = await claim(work, "w2", standby=True, ttl_s=SHORT_S)
                if got["run"]:
                    break
                await asyncio.sleep(0.02)
            assert got["run"] == run

    async def test_what_was_given_back_is_a_standbys_at_once(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run(job="a"))["run"]
            first = await claim(work, "w1")
            await work.lease_release(run=run, epoch=first["epoch"])
            assert (await claim(work, "w2", standby=True))["run"] == run

    async def test_a_parked_run_waits_for_its_step_and_comes_back_when_that_is_settled(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run(job="a"))["run"]
            epoch = (await claim(work, "w1"))["epoch"]
            with refused("conflict"):
                await work.run_park(run=run, epoch=epoch, key="pay")
            await work.step_begin(run=run, key="pay", epoch=epoch)
            await work.step_fail(run=run, key="pay", epoch=epoch, error="no answer", known=False)
            await work.run_park(run=run, epoch=epoch, key="pay")
            await work.run_park(run=run, epoch=epoch, key="pay")  # a lost answer
            status = await work.run_status(run=run)
            assert (status["waits_for"], status["leased"], status["job"]) == ("pay", False, "a")
            none = await claim(work, "w2")
            assert (none["run"], none["active"]) == (None, 0)
            await work.step_settle(run=run, key="pay", outcome="done", result=3, evidence="the bank's list")
            again = await claim(work, "w2")
            assert (again["run"], again["epoch"]) == (run, 2)
            assert (await work.run_status(run=run))["waits_for"] is None
            with refused("fenced"):
                await work.run_park(run=run, epoch=epoch, key="pay")

    async def test_a_run_that_a_person_holds_is_left_to_them(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run(job="a"))["run"]
            await work.step_begin(run=run, key="k")
            assert (await claim(work, "w1"))["run"] is None
            await work.step_end(run=run, key="k")
            assert (await claim(work, "w1"))["run"] == run

    async def test_a_step_that_failed_for_certain_is_settled_so_and_may_run_again(self, store_url: str) -> None:
        async with working(store_url) as work:
            made = await work.begin_run(worker="w1")
            mine = {"run": made["run"], "epoch": made["epoch"], "key": "k"}
            await work.step_begin(**mine)
            await work.step_fail(**mine, error="gone", known=False)
            settled = await work.step_settle(**mine, outcome="failed", evidence="exit code 3")
            assert settled["state"] == "failed"
            step = await work.step_find(run=made["run"], key="k")
            assert step is not None
            assert (step["state"], step["error"], step["settled_by"]) == ("failed", "exit code 3", "op_test")
            assert (await work.step_begin(**mine))["decision"] == "execute"
            assert await work.step_find(run=made["run"], key="other") is None

    async def test_bad_claims_are_refused(self, store_url: str) -> None:
        async with working(store_url) as work:
            for jobs in ([], ["x"] * 101, [""], "a"):
                with refused("invalid"):
                    await work.run_claim(jobs=jobs, worker="w")  # type: ignore[arg-type]
            with refused("invalid"):
                await claim(work, "w", ttl_s=0)
            run = (await work.begin_run(job="a", task="t"))["run"]
            assert (await work.begin_run(job="a", task="t"))["run"] == run
            with refused("conflict"):
                await work.begin_run(job="b", task="t")
            assert [r["run"] for r in await work.run_ls(job="a")] == [run]
            assert await work.run_ls(job="b") == []
