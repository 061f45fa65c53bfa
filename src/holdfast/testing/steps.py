"""The conformance suite of steps: intents, outcomes, doubt and what settles it. A part of `WorkSuite`."""

from __future__ import annotations

import asyncio
from typing import Any

from .store import refused
from .workers import interrupted, working

Json = dict[str, Any]


class StepsSuite:
    """Every backend passes all of it."""

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
                begun = await work.step_begin(run=taken["run"], key="k", epoch=taken["epoch"], effect=effect, args=[1])
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
                "settlement",
                "op_anna",
                "the bank's list",
            )

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
            ("unsafe", False): "in_doubt",
            ("verifiable", False): "in_doubt",
            ("idempotent", False): "failed",
            ("unsafe", True): "failed",
        }
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
