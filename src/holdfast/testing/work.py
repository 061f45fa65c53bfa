"""The conformance suite of durable work: leases, steps, runs and the log, over any store. See `StoreSuite`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ..work.service import Work
from .store import opened, refused

Json = dict[str, Any]
_SHORT_S = 0.05  # a lease that is meant to run out


@asynccontextmanager
async def working(url: str) -> AsyncIterator[Work]:
    async with opened(url) as store:
        yield Work(store, "op_test")


async def expired(work: Work, run: str) -> None:
    """Until the database's clock has passed the lease."""
    for _ in range(3000):
        if not (await work.run_status(run=run))["leased"]:
            return
        await asyncio.sleep(0.02)
    raise AssertionError("the lease did not run out")


async def interrupted(work: Work, effect: str, key: str = "k", args: Any = None) -> Json:
    """A run whose worker died inside a step, taken over by another worker."""
    first = await work.begin_run(worker="w1", ttl_s=_SHORT_S)
    # The intent may come too late for so short a lease on a busy machine: then it is another run's turn.
    try:
        await work.step_begin(run=first["run"], key=key, epoch=first["epoch"], effect=effect, args=args)
    except Exception as e:
        if getattr(e, "code", "") == "fenced":
            return await interrupted(work, effect, key, args)
        raise
    await expired(work, first["run"])
    return await work.begin_run(run=first["run"], worker="w2")


class WorkSuite:
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
            "total": 5, "done": ["b1", "a:b"], "in_doubt": ["b3"], "failed": [], "pending": ["b2", "b4"]
        }  # fmt: skip
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
            await work.lease_renew(ttl_s=_SHORT_S, **mine)
            await expired(work, made["run"])
            for call in (
                work.step_end(key="k", **mine), work.step_fail(key="k", **mine), work.step_begin(key="other", **mine),
                work.lease_renew(**mine), work.log_append(body="x", **mine), work.run_end(**mine),
                work.artifact_put(name="a", data="eA==", **mine), work.step_begin(key="n", effect="none", **mine),
                work.step_end(key="n", effect="none", **mine), work.artifact_rm(name="a", **mine),
                work.step_settle(key="k", outcome="done", evidence="e", **mine),
                work.run_session(session="ses_x", generation=1, from_offset=0, **mine),
            ):  # fmt: skip
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

    # -- steps -----------------------------------------------------------------------------------------------------

    async def test_a_completed_step_never_runs_again_and_gives_its_result(self, store_url: str) -> None:
        async with working(store_url) as work:
            for effect in ("none", "idempotent", "verifiable", "unsafe"):
                made = await work.begin_run(worker="w1")
                step = {"run": made["run"], "key": "k", "effect": effect, "args": ["a", {"b": 1}]}
                begun = await work.step_begin(epoch=made["epoch"], **step)
                assert begun["decision"] == "execute"
                await work.step_end(epoch=made["epoch"], result={"n": [1, None, "ü"]}, **step)
                again = await work.step_begin(epoch=made["epoch"], **step)
                assert (again["decision"], again["result"]) == ("reuse", {"n": [1, None, "ü"]})
                taken = await work.begin_run(run=made["run"], worker="w1")
                again = await work.step_begin(epoch=taken["epoch"], **step)
                assert again["decision"] == "reuse"

    async def test_takeover_puts_what_was_open_in_doubt_by_the_rule_of_its_effect(self, store_url: str) -> None:
        wanted = {"idempotent": "execute", "verifiable": "in_doubt", "unsafe": "in_doubt"}
        async with working(store_url) as work:
            for effect, decision in wanted.items():
                taken = await interrupted(work, effect, args=[1])
                assert taken["in_doubt"] == ["k"]
                begun = await work.step_begin(
                    run=taken["run"], key="k", epoch=taken["epoch"], effect=effect, args=[1]
                )
                assert begun["decision"] == decision
                report = (await work.step_ls(run=taken["run"]))[0]
                assert report["tries"] == (2 if decision == "execute" else 1)
                assert begun["idem_key"] == report["idem_key"]
                if decision == "in_doubt":
                    assert begun["step"]["args"] == [1]
                    assert begun["step"]["settle_by"] > begun["step"]["in_doubt_since"]

    async def test_a_fenced_worker_cannot_end_the_step_it_began(self, store_url: str) -> None:
        async with working(store_url) as work:
            taken = await interrupted(work, "unsafe")
            old = {"run": taken["run"], "key": "k", "epoch": taken["epoch"] - 1}
            for call in (work.step_end(**old), work.step_fail(**old)):
                with refused("fenced"):
                    await call
            with refused("in_doubt"):
                await work.step_end(run=taken["run"], key="k", epoch=taken["epoch"])

    async def test_a_step_in_doubt_is_settled_by_name_with_evidence(self, store_url: str) -> None:
        async with working(store_url) as work:
            taken = await interrupted(work, "unsafe")
            step = {"run": taken["run"], "key": "k"}
            with refused("invalid"):
                await work.step_settle(outcome="done", **step)
            with refused("invalid"):
                await work.step_settle(outcome="perhaps", evidence="e", **step)
            await work.step_settle(outcome="done", result=7, evidence="the bank's list", by="op_anna", **step)
            begun = await work.step_begin(epoch=taken["epoch"], **step)
            assert (begun["decision"], begun["result"]) == ("reuse", 7)
            with refused("conflict"):
                await work.step_settle(outcome="not_done", evidence="e", **step)
            entry = (await work.log_read(run=taken["run"]))[-1]
            assert (entry["kind"], entry["by"], entry["body"]["evidence"]) == (
                "settlement", "op_anna", "the bank's list"
            )  # fmt: skip

    async def test_settled_as_not_done_it_runs_again_under_the_same_key(self, store_url: str) -> None:
        async with working(store_url) as work:
            taken = await interrupted(work, "unsafe")
            step = {"run": taken["run"], "key": "k"}
            before = (await work.step_ls(run=taken["run"]))[0]["idem_key"]
            await work.step_settle(outcome="not_done", evidence="no such payment", **step)
            begun = await work.step_begin(epoch=taken["epoch"], **step)
            assert (begun["decision"], begun["idem_key"]) == ("execute", before)
            await work.step_end(epoch=taken["epoch"], result=1, **step)

    async def test_a_doubt_has_an_owner_and_a_deadline(self, store_url: str) -> None:
        async with working(store_url) as work:
            taken = await interrupted(work, "unsafe")
            step = {"run": taken["run"], "key": "k"}
            with refused("invalid"):
                await work.step_assign(owner="op_anna", within_s=-1, **step)
            await work.step_assign(within_s=0.001, **step)
            for _ in range(3000):
                if (await work.run_status(run=taken["run"]))["in_doubt"][0]["overdue"]:
                    break
                await asyncio.sleep(0.01)
            report = await work.step_assign(owner="op_anna", within_s=3600, **step)
            assert (report["owner"], report["overdue"]) == ("op_anna", False)
            with refused("not_allowed"):
                await work.step_settle(outcome="done", evidence="e", by="op_bert", **step)
            await work.step_settle(outcome="done", evidence="e", by="op_anna", **step)

    async def test_nobody_settles_what_a_live_worker_is_doing(self, store_url: str) -> None:
        async with working(store_url) as work:
            made = await work.begin_run(worker="w1")
            await work.step_begin(run=made["run"], key="k", epoch=made["epoch"])
            with refused("conflict") as seen:
                await work.step_settle(run=made["run"], key="k", outcome="done", evidence="e")
            assert "w1" in seen[0].message

    async def test_a_failure_whose_effect_is_unknown_is_a_doubt(self, store_url: str) -> None:
        wanted = {
            ("unsafe", False): "in_doubt", ("verifiable", False): "in_doubt", ("idempotent", False): "failed",
            ("unsafe", True): "failed",
        }  # fmt: skip
        async with working(store_url) as work:
            for (effect, known), state in wanted.items():
                made = await work.begin_run(worker="w1")
                step = {"run": made["run"], "key": "k", "epoch": made["epoch"]}
                await work.step_begin(effect=effect, **step)
                failed = await work.step_fail(error="ValueError: no", known=known, **step)
                assert failed["state"] == state
                again = await work.step_begin(effect=effect, **step)
                assert again["decision"] == ("in_doubt" if state == "in_doubt" else "execute")

    async def test_the_same_key_with_other_arguments_or_another_effect_is_refused(self, store_url: str) -> None:
        async with working(store_url) as work:
            made = await work.begin_run(worker="w1")
            step = {"run": made["run"], "key": "k", "epoch": made["epoch"]}
            await work.step_begin(args={"a": 1, "b": 2}, **step)
            await work.step_end(**step)
            assert (await work.step_begin(args={"b": 2, "a": 1}, **step))["decision"] == "reuse"
            for other in ({"args": {"a": 2}}, {"args": {"a": 1, "b": 2}, "effect": "none"}):
                with refused("conflict"):
                    await work.step_begin(**other, **step)

    async def test_a_step_ended_twice_is_told_and_a_repeated_request_is_not_a_second_time(self, store_url: str) -> None:
        async with working(store_url) as work:
            made = await work.begin_run(worker="w1")
            step = {"run": made["run"], "key": "k", "epoch": made["epoch"]}
            first = await work.step_begin(request="req_b", **step)
            assert await work.step_begin(request="req_b", **step) == first  # the answer was lost
            await work.step_end(result=1, request="req_e", **step)
            await work.step_end(result=1, request="req_e", **step)
            for call in (work.step_end(result=2, **step), work.step_fail(**step)):
                with refused("conflict"):
                    await call
            assert (await work.step_begin(**step))["result"] == 1
            with refused("not_found"):
                await work.step_end(run=made["run"], key="never", epoch=made["epoch"])
            kinds = [e["kind"] for e in await work.log_read(run=made["run"])]
            assert kinds == ["run", "action", "observation"]

    async def test_a_run_does_not_end_well_while_a_step_is_in_doubt(self, store_url: str) -> None:
        async with working(store_url) as work:
            taken = await interrupted(work, "unsafe")
            with refused("in_doubt"):
                await work.run_end(run=taken["run"], epoch=taken["epoch"])
            await work.step_settle(run=taken["run"], key="k", outcome="done", evidence="seen")
            await work.run_end(run=taken["run"], epoch=taken["epoch"], request="req_end")
            await work.run_end(run=taken["run"], epoch=taken["epoch"], request="req_end")
            assert (await work.run_status(run=taken["run"]))["state"] == "done"

    # -- one after the other ---------------------------------------------------------------------------------------

    async def test_an_outcome_and_the_next_intent_are_one_write_and_a_repetition_is_not_a_second_one(
        self, store_url: str
    ) -> None:
        async with working(store_url) as work:
            made = await work.begin_run(worker="w1")
            mine: Json = {"run": made["run"], "epoch": made["epoch"]}
            await work.step_begin(key="a", args=[1], **mine)
            ended = {"key": "a", "result": {"n": 1}, "request": "req_end"}
            for _ in range(2):  # the answer to the first was lost
                answer = await work.step_next(ended=ended, key="b", args=[2], request="req_begin", **mine)
                assert (answer["decision"], answer["epoch"]) == ("execute", made["epoch"])
            states = {s["key"]: (s["state"], s["result"]) for s in await work.step_ls(run=made["run"])}
            assert states == {"a": ("done", {"n": 1}), "b": ("open", None)}
            log = (await work.log_read(run=made["run"]))[1:]  # the first says that the run was begun
            assert [(e["kind"], e["step"]) for e in log] == [("action", "a"), ("observation", "a"), ("action", "b")]

    async def test_a_next_step_that_was_done_before_is_reused_and_the_outcome_is_kept_all_the_same(
        self, store_url: str
    ) -> None:
        async with working(store_url) as work:
            made = await work.begin_run(worker="w1")
            mine: Json = {"run": made["run"], "epoch": made["epoch"]}
            await work.step_begin(key="b", **mine)
            await work.step_end(key="b", result="before", **mine)
            await work.step_begin(key="a", **mine)
            answer = await work.step_next(ended={"key": "a", "result": 1, "request": "req_1"}, key="b", **mine)
            assert (answer["decision"], answer["result"]) == ("reuse", "before")
            steps = {s["key"]: s["state"] for s in await work.step_ls(run=made["run"])}
            assert steps == {"a": "done", "b": "done"}
            log = await work.log_read(run=made["run"])
            assert [e["seq"] for e in log] == [1, 2, 3, 4, 5]
            with refused("conflict"):
                await work.step_next(ended={"key": "a", "request": "req_2"}, key="c", **mine)
            assert await work.step_find(run=made["run"], key="c") is None

    async def test_a_fenced_or_late_worker_writes_neither_the_outcome_nor_the_next_intent(self, store_url: str) -> None:
        async with working(store_url) as work:
            made = await interrupted(work, "unsafe")
            old: Json = {"run": made["run"], "epoch": made["epoch"] - 1}
            with refused("fenced"):
                await work.step_next(ended={"key": "k", "request": "r1"}, key="n", **old)
            with refused("fenced"):
                await work.step_begin(key="n", **old)
            with refused("fenced"):
                await work.step_end(key="n", effect="none", **old)
            assert [(s["key"], s["state"]) for s in await work.step_ls(run=made["run"])] == [("k", "in_doubt")]

    async def test_many_writers_of_one_run_number_its_log_without_holes(self, store_url: str) -> None:
        async with working(store_url) as work:
            made = await work.begin_run(worker="w1")
            mine: Json = {"run": made["run"], "epoch": made["epoch"]}

            async def one(n: int) -> None:
                await work.step_begin(key=f"s{n}", effect="idempotent", **mine)
                await work.log_append(body=f"note {n}", **mine)
                await work.step_end(key=f"s{n}", result=n, **mine)

            await asyncio.gather(*(one(n) for n in range(24)))
            log = await work.log_read(run=made["run"])
            assert [entry["seq"] for entry in log] == list(range(1, 74))
            assert sorted(s["result"] for s in await work.step_ls(run=made["run"])) == list(range(24))

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
            assert retried == [
                {"event": "retry", "failed_with": {"error": "no route"}, "why": "the network is back"}
            ]

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
