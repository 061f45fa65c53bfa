"""The conformance suite of attempts: who has a task, and what happens if its worker dies, fails or is stopped."""

from __future__ import annotations

import asyncio

from ..work.service import Work
from .store import refused
from .tasks import LONG_S, project, take
from .workers import SHORT_S


async def expired(work: Work, task: str) -> None:
    for _ in range(3000):
        if (await work.task_show(task=task))["lease_until"] is None:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("the lease did not run out")


class TaskLivesSuite:
    """Every backend passes all of it."""

    async def test_workers_take_what_is_ready_each_its_own_and_the_dead_are_replaced(self, store_url: str) -> None:
        async with project(store_url) as work:
            for id in ("1", "2"):
                await work.task_add(title=id, id=id)
            first = await take(work, "w1")
            second = await take(work, "w2")
            assert (first["task_id"], second["task_id"], first["epoch"]) == ("1", "2", 1)
            none = await take(work, "w3")
            assert (none["run"], none["unfinished"]) == (None, 2)
            assert none["next_in_s"] is not None
            with refused("busy") as seen:
                await work.task_start(task="1", by="op_anna")
            assert "w1 until 2" in seen[0].message
            await work.step_begin(run=first["run"], key="k", epoch=first["epoch"])
            await work.lease_renew(run=first["run"], epoch=first["epoch"], ttl_s=SHORT_S)  # it dies
            await expired(work, "1")
            taken = await take(work, "w3")
            assert (taken["task_id"], taken["run"], taken["epoch"]) == ("1", first["run"], 2)
            assert (taken["resumed"], taken["in_doubt"], taken["n"]) == (True, ["k"], 1)
            for call in (
                work.task_done(task="1", run=first["run"], epoch=1),
                work.task_fail(task="1", run=first["run"], epoch=1),
                work.lease_renew(run=first["run"], epoch=1),
            ):
                with refused("fenced"):
                    await call
            with refused("in_doubt"):
                await work.task_done(task="1", run=taken["run"], epoch=2)
            await work.step_settle(run=first["run"], key="k", outcome="done", evidence="seen")
            await work.task_done(task="1", run=taken["run"], epoch=2)
            assert (await work.run_status(run=first["run"]))["state"] == "done"

    async def test_a_lease_that_was_given_back_is_anybodys(self, store_url: str) -> None:
        async with project(store_url) as work:
            await work.task_add(title="t")
            first = await take(work, "w1")
            await work.lease_release(run=first["run"], epoch=first["epoch"])
            assert (await take(work, "w2"))["run"] == first["run"]

    async def test_by_hand_there_is_no_lease_and_others_are_told_who(self, store_url: str) -> None:
        async with project(store_url) as work:
            await work.task_add(title="t", id="1")
            mine = await work.task_start(task="1", by="anna")
            assert (mine["worker"], mine["run"], mine["resumed"]) == (None, mine["run_id"], False)
            assert (await work.task_start(task="1", by="anna"))["run"] == mine["run"]
            assert (await take(work, "w1"))["run"] is None
            with refused("busy") as seen:
                await work.task_start(task="1", by="bert")
            assert "anna" in seen[0].message
            assert (await work.task_start(task="1", by="bert", take=True))["run"] == mine["run"]
            await work.task_done(task="1", by="bert")
            shown = await work.task_show(task="1")
            assert (shown["status"], shown["attempt_count"]) == ("done", 1)

    async def test_a_person_takes_a_task_over_in_the_middle_of_anothers_step_which_is_then_in_doubt(
        self, store_url: str
    ) -> None:
        async with project(store_url) as work:
            await work.task_add(title="t", id="1")
            run = (await work.task_start(task="1", by="anna"))["run"]
            await work.step_begin(run=run, key="a", by="anna")
            with refused("busy"):
                await work.task_start(task="1", by="bert")
            assert (await work.task_start(task="1", by="bert", take=True))["run"] == run
            assert (await work.step_begin(run=run, key="b", by="bert"))["decision"] == "execute"
            assert [s["key"] for s in await work.step_ls(run=run, state="in_doubt")] == ["a"]
            with refused("fenced"):
                await work.step_end(run=run, key="a", by="anna")
            await work.step_end(run=run, key="b", by="bert")

    async def test_attempts_are_tried_again_until_they_are_used_up_and_then_it_is_blocked(self, store_url: str) -> None:
        async with project(store_url) as work:
            await work.policy_set(policy={"retry": {"attempts_max": 2}})
            await work.task_add(title="t", id="1")
            for n in (1, 2):
                got = await take(work, "w1")
                assert (got["n"], got["attempts_left"]) == (n, 2 - n)
                what = {"failure_type": "network", "failure_detail": f"no answer {n}", "suggested_focus": "the proxy"}
                told = await work.task_fail(task="1", run=got["run"], epoch=got["epoch"], classification=what)
            assert told["status"] == "blocked"
            report = await work.task_report(task="1")
            assert (report["task_id"], report["status"], report["attempt_count"]) == ("1", "blocked", 2)
            assert report["run_id"] == got["run"]
            assert report["classification"] | {"failing": [], "signature": None} == {
                "failure_type": "network",
                "failure_detail": "no answer 2",
                "suggested_focus": "the proxy",
                "convergence": "steady",
                "failing": [],
                "signature": None,
            }
            assert [(a["n"], a["outcome"]) for a in report["attempts"]] == [(1, "failed"), (2, "failed")]
            assert (await take(work, "w1"))["run"] is None
            with refused("conflict"):
                await work.task_start(task="1")
            await work.task_unblock(task="1", why="the proxy is mended")
            again = await work.task_start(task="1", backend="codex", by="somebody else")
            assert (again["n"], again["backend"]) == (3, "codex")
            said = await work.log_read(run=got["run"])
            assert ("answer", "the proxy is mended") in [(e["kind"], e["body"]) for e in said]

    async def test_the_same_failure_again_and_again_is_stuck_and_blocks_early(self, store_url: str) -> None:
        async with project(store_url) as work:
            await work.policy_set(policy={"retry": {"attempts_max": 9}})
            for id in ("1", "2"):
                await work.task_add(title="t", id=id)
            for n in (1, 2, 3):
                got = await work.task_start(task="1", worker="w", ttl_s=LONG_S)
                what = {"failure_type": "test_failure", "signature": "same"}
                told = await work.task_fail(task="1", epoch=got["epoch"], classification=what)
                assert told["status"] == ("blocked" if n == 3 else "failed")
            got = await work.task_start(task="2", worker="w", ttl_s=LONG_S)
            with refused("invalid"):
                await work.task_fail(task="2", epoch=got["epoch"], classification={"failure_type": "bad luck"})
            told = await work.task_fail(task="2", epoch=got["epoch"], classification={"convergence": "stuck"})
            assert told["status"] == "blocked"

    async def test_blocked_by_hand_its_run_stays_open_and_is_gone_on_with(self, store_url: str) -> None:
        async with project(store_url) as work:
            await work.task_add(title="t", id="1")
            got = await take(work, "w1")
            await work.step_begin(run=got["run"], key="k", epoch=got["epoch"], effect="idempotent")
            await work.step_end(run=got["run"], key="k", epoch=got["epoch"], result=7)
            await work.task_block(task="1", question="which server?", why="two answer", by="anna")
            report = await work.task_show(task="1")
            assert (report["status"], report["question"], report["blocked_by"]) == ("blocked", "which server?", "anna")
            assert report["classification"]["suggested_focus"] == "which server?"
            with refused("fenced"):
                await work.lease_renew(run=got["run"], epoch=got["epoch"])
            await work.task_unblock(task="1", why="the second")
            later = await take(work, "w2")
            assert (later["run"], later["n"]) == (got["run"], 1)
            assert (await work.step_begin(run=got["run"], key="k", epoch=later["epoch"], effect="idempotent"))[
                "result"
            ] == 7
            kinds = [(e["kind"], e["body"]) for e in await work.log_read(run=got["run"])]
            assert ("question", "which server?") in kinds
            assert ("answer", "the second") in kinds

    async def test_cancelled_its_worker_is_fenced_and_its_sessions_are_named(self, store_url: str) -> None:
        async with project(store_url, "a", "b") as work:
            await work.task_add(title="t", id="1")
            await work.task_add(title="u", id="2", phase="b")
            got = await take(work, "w1")
            await work.step_begin(run=got["run"], key="k", epoch=got["epoch"])
            await work.run_session(run=got["run"], session="ses_x", generation=1, from_offset=0, epoch=got["epoch"])
            told = await work.task_cancel(task="1", why="not wanted")
            assert [s["session"] for s in told["sessions"]] == ["ses_x"]
            assert told["active_phase"] == "b"
            ended = await work.run_status(run=got["run"])
            assert (ended["state"], ended["steps"]["in_doubt"]) == ("cancelled", 1)
            for call in (
                work.step_end(run=got["run"], key="k", epoch=got["epoch"]),
                work.task_done(task="1", run=got["run"], epoch=got["epoch"]),
                work.log_append(run=got["run"], body="late", epoch=got["epoch"]),
            ):
                with refused("fenced"):
                    await call
            shown = await work.task_show(task="1")
            assert (shown["status"], shown["attempts"][0]["outcome"]) == ("cancelled", "cancelled")
            assert shown["attempts"][0]["worker"] == "w1"
            assert shown["events"][-1]["why"] == "not wanted"
            await work.task_retry(task="1")
            assert (await work.project_show())["active_phase"] == "a"
            assert (await take(work, "w2"))["n"] == 2

    async def test_paused_it_is_left_alone_until_somebody_goes_on(self, store_url: str) -> None:
        async with project(store_url) as work:
            await work.task_add(title="t", id="1")
            got = await take(work, "w1")
            await work.task_pause(task="1")
            assert (await take(work, "w2"))["run"] is None
            with refused("fenced"):
                await work.task_done(task="1", run=got["run"], epoch=got["epoch"])
            await work.task_unblock(task="1")
            assert (await take(work, "w2"))["run"] == got["run"]

    async def test_eight_workers_do_forty_tasks_with_dependencies_once_each(self, store_url: str) -> None:
        async with project(store_url, "a", "b") as work:
            for n in range(40):
                phase, first = ("a", 0) if n < 20 else ("b", 20)
                after = [f"t{m}" for m in (n - 3, n - 7) if m >= first]
                await work.task_add(title="t", id=f"t{n}", phase=phase, after=after)
            order: list[str] = []

            async def worker(name: str) -> None:
                while True:
                    got = await take(work, name)
                    if got["run"] is None:
                        if not got["unfinished"]:
                            return
                        await asyncio.sleep(0.01)
                        continue
                    order.append(got["task_id"])
                    await work.task_done(task=got["task"], run=got["run"], epoch=got["epoch"])

            await asyncio.gather(*(worker(f"w{n}") for n in range(8)))
            assert sorted(order) == sorted(f"t{n}" for n in range(40))
            for n in range(40):
                for m in (n - 3, n - 7):
                    if m >= (0 if n < 20 else 20):
                        assert order.index(f"t{m}") < order.index(f"t{n}")
            assert max(order.index(f"t{n}") for n in range(20)) < min(order.index(f"t{n}") for n in range(20, 40))
            shown = await work.project_show()
            assert (shown["active_phase"], shown["counts"]["done"]) == (None, 40)
            tries = [t["attempt_count"] for t in await work.task_ls()]
            assert tries == [1] * 40
