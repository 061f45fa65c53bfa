"""The conformance suite of durable work: leases, steps, runs and the log, over any store. See `StoreSuite`."""

from __future__ import annotations

import asyncio
from typing import Any

from .steps import StepsSuite
from .store import refused
from .workers import SHORT_S, expired, interrupted, working

__all__ = ["WorkSuite", "expired", "interrupted", "working"]

Json = dict[str, Any]


class WorkSuite(StepsSuite):
    """Every backend passes all of it."""

    # -- runs and leases -------------------------------------------------------------------------------------------

    async def test_a_run_keeps_its_parameters_and_says_which_items_are_done_in_doubt_and_pending(
        self, store_url: str
    ) -> None:
        async with working(store_url) as work:
            items = ["b1", "b2", "b3", "b4", "a:b"]
            made = await work.begin_run(params={"from": "x"}, items=items, worker="w1")
            run, epoch = made["run"], made["epoch"]
            for key in ("copy:b1", "check:b1", "a:b", "copy:b2"):
                await work.step_begin(run=run, key=key, epoch=epoch, effect="unsafe")
                await work.step_end(run=run, key=key, epoch=epoch)
            await work.step_begin(run=run, key="check:b2", epoch=epoch, effect="unsafe")  # open: not done yet
            await work.step_begin(run=run, key="copy:b3", epoch=epoch, effect="unsafe")
            await work.step_fail(run=run, key="copy:b3", epoch=epoch, error="timeout", known=False)
            status = await work.run_status(run=run)
        assert status["params"] == {"from": "x"}
        assert status["items"] == {
            "total": 5,
            "done": ["b1", "a:b"],
            "in_doubt": ["b3"],
            "failed": [],
            "pending": ["b2", "b4"],
        }
        assert status["steps"] == {"done": 4, "open": 1, "failed": 0, "in_doubt": 1}
        assert [d["key"] for d in status["in_doubt"]] == ["copy:b3"]

    async def test_a_tasks_run_is_found_again_and_other_parameters_are_refused(self, store_url: str) -> None:
        async with working(store_url) as work:
            first = await work.begin_run(task="1.5", params={"n": 1}, worker="w1")
            await work.lease_release(run=first["run"], epoch=first["epoch"])
            second = await work.begin_run(task="1.5", worker="w2")
            assert (second["run"], second["resumed"], second["params"]) == (first["run"], True, {"n": 1})
            assert second["epoch"] == first["epoch"] + 1
            with refused("conflict"):
                await work.begin_run(task="1.5", params={"n": 2}, worker="w2")

    async def test_a_finished_task_is_not_begun_again_unless_asked(self, store_url: str) -> None:
        async with working(store_url) as work:
            first = await work.begin_run(task="t", worker="w1")
            await work.run_end(run=first["run"], epoch=first["epoch"], outcome={"moved": 3})
            standby = await work.begin_run(task="t", worker="w2")
            assert (standby["run"], standby["state"]) == (first["run"], "done")
            with refused("fenced"):
                await work.step_begin(run=standby["run"], key="k", epoch=standby["epoch"])
            again = await work.begin_run(task="t", worker="w2", again=True)
            assert (again["n"], again["state"]) == (2, "active")
            await work.run_end(run=again["run"], epoch=again["epoch"], state="failed")
            assert (await work.begin_run(task="t", worker="w3"))["n"] == 3

    async def test_two_workers_that_begin_one_task_at_once_are_one_holder_and_one_refused(self, store_url: str) -> None:
        async with working(store_url) as work, working(store_url) as other:
            answers = await asyncio.gather(
                *(w.begin_run(task="t", worker=f"w{i}") for i, w in enumerate((work, other, work, other))),
                return_exceptions=True,
            )
            won = [a for a in answers if isinstance(a, dict)]
            assert len(won) == 1
            assert {getattr(a, "code", "") for a in answers if not isinstance(a, dict)} == {"busy"}
            assert len(await work.run_ls(task="t")) == 1

    async def test_a_repeated_request_begins_nothing_new(self, store_url: str) -> None:
        async with working(store_url) as work:
            first = await work.begin_run(worker="w1", request="req_1")
            second = await work.begin_run(worker="w1", request="req_1")
            assert second == first

    async def test_a_renewed_lease_goes_on_and_an_expired_one_cannot_write_even_without_a_successor(
        self, store_url: str
    ) -> None:
        async with working(store_url) as work:
            made = await work.begin_run(worker="w1", ttl_s=60)
            mine = {"run": made["run"], "epoch": made["epoch"]}
            await work.step_begin(key="k", **mine)
            await work.lease_renew(ttl_s=SHORT_S, **mine)
            await expired(work, made["run"])
            for call in (
                work.step_end(key="k", **mine),
                work.step_fail(key="k", **mine),
                work.step_begin(key="other", **mine),
                work.lease_renew(**mine),
                work.log_append(body="x", **mine),
                work.run_end(**mine),
                work.artifact_put(name="a", data="eA==", **mine),
                work.step_begin(key="n", effect="none", **mine),
                work.step_end(key="n", effect="none", **mine),
                work.artifact_rm(name="a", **mine),
                work.step_settle(key="k", outcome="done", evidence="e", **mine),
                work.run_session(session="ses_x", generation=1, from_offset=0, **mine),
            ):
                with refused("fenced"):
                    await call
            assert (await work.lease_release(**mine)) == {"released": False}
            status = await work.run_status(run=made["run"])
            assert status["steps"]["open"] == 1
            assert status["log_end"] == 2

    async def test_a_live_lease_is_not_taken_and_the_same_worker_may_come_back(self, store_url: str) -> None:
        async with working(store_url) as work:
            made = await work.begin_run(worker="w1", ttl_s=600)
            with refused("busy") as seen:
                await work.begin_run(run=made["run"], worker="w2")
            assert "w1" in seen[0].message
            back = await work.begin_run(run=made["run"], worker="w1")
            assert back["epoch"] == made["epoch"] + 1
            with refused("fenced"):
                await work.step_begin(run=made["run"], key="k", epoch=made["epoch"])

    # -- again -----------------------------------------------------------------------------------------------------

    async def test_a_failed_run_is_tried_again_from_its_last_step(self, store_url: str) -> None:
        async with working(store_url) as work:
            made = await work.begin_run(worker="w1", task="t", job="j")
            mine: Json = {"run": made["run"], "epoch": made["epoch"]}
            with refused("conflict"):
                await work.run_retry(run=made["run"])
            await work.step_begin(key="done", **mine)
            await work.step_end(key="done", result=1, **mine)
            await work.run_end(state="failed", outcome={"error": "no route"}, **mine)
            for _ in range(2):
                told = await work.run_retry(run=made["run"], why="the network is back", request="req_again")
                assert told == {"run": made["run"], "state": "active"}
            claimed = await work.run_claim(jobs=["j"], worker="w2")
            assert (claimed["run"], claimed["resumed"]) == (made["run"], True)
            again = await work.step_begin(run=made["run"], key="done", epoch=claimed["epoch"])
            assert (again["decision"], again["result"]) == ("reuse", 1)
            events = [e["body"] for e in await work.log_read(run=made["run"]) if e["kind"] == "run"]
            retried = [e for e in events if e["event"] == "retry"]
            assert retried == [{"event": "retry", "failed_with": {"error": "no route"}, "why": "the network is back"}]

    async def test_a_reason_stands_in_the_log_beside_what_it_is_about(self, store_url: str) -> None:
        async with working(store_url) as work:
            made = await work.begin_run(worker="w1")
            mine: Json = {"run": made["run"], "epoch": made["epoch"]}
            await work.log_append(body="use B", kind="decision", why="A is slower", **mine)
            await work.memory_append(message={"role": "user", "content": "hello"}, why="he asked", **mine)
            await work.memory_set(name="n", value=1, why="for later", **mine)
            for _ in range(2):
                await work.artifact_put(name="f", data="eA==", why="wanted", request="req_put", **mine)
            await work.artifact_rm(name="f", why="wrong one", **mine)
            log = [(e["kind"], e["body"]) for e in (await work.log_read(run=made["run"]))[1:]]
            assert log[0] == ("decision", {"text": "use B", "why": "A is slower"})
            assert log[1:3] == [
                ("message", {"role": "user", "content": "hello"}),
                ("reasoning", {"text": "he asked", "action": "append a message"}),
            ]
            assert log[3][1]["why"] == "for later"
            assert log[4:] == [
                ("reasoning", {"text": "wanted", "action": "put artifact f"}),
                ("reasoning", {"text": "wrong one", "action": "remove artifact f"}),
            ]
            window = await work.memory_window(run=made["run"])
            assert window["messages"] == [{"role": "user", "content": "hello"}]
