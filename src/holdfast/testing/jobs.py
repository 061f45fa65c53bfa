"""The conformance suite of jobs: which worker gets which run, when a standby may, what waits for a person."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ..system import own_process
from ..work.service import Work
from .store import refused
from .workers import SHORT_S, expired, working

_LONG_S = 600.0  # a lease that does not expire during the test


async def claim(work: Work, worker: str, *, jobs: tuple[str, ...] = ("a",), **options: Any) -> dict[str, Any]:
    return await work.run_claim(jobs=list(jobs), worker=worker, **{"ttl_s": _LONG_S, **options})


def process(id: str) -> dict[str, Any]:
    """This process as a worker with this number."""
    place, pid, started = own_process.identity()
    return {"id": id, "place": place, "pid": pid, "started": started}


def dead(id: str) -> dict[str, Any]:
    """A dead worker: another process with another start time may have its pid by now."""
    return {**process(id), "started": 1}


@asynccontextmanager
async def here_is(place: str) -> AsyncIterator[None]:
    """The same, seen from another machine."""
    real, own_process.place = own_process.place, lambda: place
    try:
        yield
    finally:
        own_process.place = real


class JobsSuite:
    """Every backend passes all of it."""

    async def test_workers_get_the_oldest_run_of_their_jobs_each_its_own(self, store_url: str) -> None:
        async with working(store_url) as work:
            first = (await work.begin_run(job="a", params={"n": 1}, items=["x"]))["run"]
            other = (await work.begin_run(job="b"))["run"]
            second = (await work.begin_run(job="a"))["run"]
            await work.begin_run()  # no worker's job
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
            while len(found := [g["run"] for g in got if g["run"]]) < len(runs):  # a late worker looks again
                got += await asyncio.gather(*(claim(work, f"x{len(got)}.{n}") for n in range(4)))
            assert sorted(found) == sorted(runs)

    async def test_a_worker_whose_answer_was_lost_gets_its_run_again(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run(job="a"))["run"]
            first = await claim(work, "w1", process=process("p1"))
            again = await claim(work, "w1", process=process("p1"))
            assert (again["run"], again["epoch"]) == (run, first["epoch"] + 1)
            assert (await claim(work, "w2", process=process("p2")))["run"] is None

    async def test_another_process_of_the_same_name_does_not_get_a_live_lease(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run(job="a"))["run"]
            first = await claim(work, "W", process=process("p1"))
            for other in (process("p2"), None):
                assert (await claim(work, "W", process=other))["run"] is None
                with refused("busy"):
                    await work.begin_run(run=run, worker="W", process=other)
            status = await work.run_status(run=run)
            assert (status["worker"], status["epoch"]) == ("W", first["epoch"])
            assert [r["worker"] for r in await work.run_ls()] == ["W"]
            await work.lease_release(run=run, epoch=first["epoch"])
            assert (await claim(work, "W", process=process("p2")))["run"] == run

    async def test_a_tasks_live_lease_is_not_given_to_another_process_of_the_same_name(self, store_url: str) -> None:
        async with working(store_url) as work:
            await work.project_init(name="p", root="/p")
            await work.task_add(project="p", title="t", id="1")
            mine: dict[str, Any] = {"task": "1", "project": "p", "worker": "W", "ttl_s": _LONG_S}
            first = await work.task_start(**mine, process=process("p1"))
            for other in (process("p2"), None):
                with refused("busy"):
                    await work.task_start(**mine, process=other)
            again = await work.task_start(**mine, process=process("p1"))
            assert (again["run"], again["epoch"]) == (first["run"], first["epoch"] + 1)

    # -- crashes ---------------------------------------------------------------------------------------------------

    async def test_workers_that_died_at_a_run_are_counted_and_then_it_is_parked_until_it_is_retried(
        self, store_url: str
    ) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run(job="a"))["run"]
            for n in range(1, 4):
                got = await claim(work, f"w{n}", process=dead(f"p{n}"))  # its lease lasts, and its process is gone
                assert (got["run"], got["epoch"]) == (run, n)
                if n == 3:
                    await work.step_begin(run=run, key="boom", epoch=n)
            none = await claim(work, "w4", process=process("p4"))
            assert (none["run"], none["active"], none["parked"]) == (None, 0, 1)
            status = await work.run_status(run=run)
            assert (status["state"], status["crashes"], status["leased"]) == ("parked", 3, False)
            report = status["parked"]
            assert (report["reason"], report["count"], report["max_crashes"]) == ("crashes", 3, 3)
            assert [c["worker"] for c in report["crashes"]] == ["w1", "w2", "w3"]
            assert report["crashes"][2]["in_doubt"] == ["boom"]
            assert report["hint"].endswith(f"hold work retry {run}")
            assert [(r["run"], r["state"]) for r in await work.run_ls(state="parked")] == [(run, "parked")]
            assert await work.run_ls(state="active") == []
            assert [p["run"] for p in await work.run_parked()] == [run]
            with refused("fenced"):
                await work.step_end(run=run, key="boom", epoch=3)
            await work.run_retry(run=run, why="the library is mended")
            assert await work.run_parked() == []
            again = await claim(work, "w5", process=process("p5"))
            assert (again["run"], again["epoch"], again["in_doubt"]) == (run, 4, ["boom"])
            assert (await work.run_status(run=run))["crashes"] == 0

    async def test_how_many_may_die_is_the_jobs_own_number(self, store_url: str) -> None:
        async with working(store_url) as work:
            await work.begin_run(job="a")
            await claim(work, "w1", process=dead("p1"), max_crashes={"a": 1})
            assert (await claim(work, "w2", process=process("p2"), max_crashes={"a": 1}))["parked"] == 1
            for bad in ({"a": 0}, {"a": "3"}, [3], {"a": True}):
                with refused("invalid"):
                    await claim(work, "w3", max_crashes=bad)

    async def test_who_gave_its_run_back_or_was_asked_to_stop_or_is_elsewhere_has_not_crashed(
        self, store_url: str
    ) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run(job="a"))["run"]
            epoch = (await claim(work, "released", process=dead("p1")))["epoch"]
            await work.lease_release(run=run, epoch=epoch)
            epoch = (await claim(work, "asked to stop, then killed", process=dead("p2"), ttl_s=SHORT_S))["epoch"]
            await work.run_leaves(run=run, epoch=epoch)
            await expired(work, run)
            other = {**dead("p3"), "place": "another-boot/pid:[1]"}
            await claim(work, "lost host", process=other, ttl_s=SHORT_S)
            await expired(work, run)
            await claim(work, "too slow", process=process("p4"), ttl_s=SHORT_S)  # it lives, and lost its lease
            await expired(work, run)
            await claim(work, "its store was away", process=dead("p6"), ttl_s=SHORT_S)
            await expired(work, run)
            assert (await claim(work, "w", process=process("p5"), left=["p6"]))["run"] == run
            assert (await work.run_status(run=run))["crashes"] == 0

    async def test_a_crash_counts_also_where_another_machine_took_over_first(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run(job="a"))["run"]
            # Taken over on another machine, by a worker that did not know the outcome of the first.
            await claim(work, "here", process=dead("p1"), ttl_s=SHORT_S, jobs=("a", "b"))
            await expired(work, run)
            async with here_is("elsewhere"):
                taken = await claim(work, "there", process={**dead("p2"), "place": "elsewhere"})
            assert (taken["run"], taken["epoch"]) == (run, 2)
            assert (await claim(work, "here again", process=process("p3"), max_crashes={"a": 1}))["run"] is None
            status = await work.run_status(run=run)
            assert (status["crashes"], status["state"], status["leased"]) == (1, "active", True)  # there is a worker
            async with here_is("elsewhere"):
                assert (await claim(work, "w", process=process("p4"), max_crashes={"a": 2}))["parked"] == 1
            assert (await work.run_status(run=run))["crashes"] == 2

    async def test_bad_processes_are_refused(self, store_url: str) -> None:
        async with working(store_url) as work:
            good = process("p")
            for bad in ("p", {}, {**good, "pid": "1"}, {**good, "pid": -1}, {**good, "more": 1}, {**good, "id": ""}):
                with refused("invalid"):
                    await claim(work, "w", process=bad)

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
