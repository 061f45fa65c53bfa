"""The conformance suite of claims, briefs, reports and retention: the same answers from every backend."""

from __future__ import annotations

import base64
import hashlib
import time
from typing import Any

from ..work.briefs import budget
from ..work.service import Work
from .store import refused
from .workers import working

Json = dict[str, Any]
_DAY_S = 86400.0


async def project(work: Work, *, name: str = "demo") -> None:
    """Two phases; 1 is done, 2 is active, 3 waits for it, 4 is of the next phase."""
    await work.project_init(name=name, root="/tmp", phases=["make", "ship"])
    contract = {"goal": "it works", "constraints": ["no shortcuts"]}
    for id, phase, after in (("1", "make", []), ("2", "make", []), ("3", "make", ["2"]), ("4", "ship", ["3"])):
        await work.task_add(project=name, title=f"Task {id}", id=id, phase=phase, contract=contract, after=after)
    for id in ("1", "2"):
        await work.task_start(task=f"{name}/{id}")
    await work.task_done(task=f"{name}/1")


async def claim(work: Work, **whose: Any) -> Json:
    return await work.claim_add(kind="port", spec={"port": 80}, seen={"pid": 7}, host="hst_1", **whose)


class BriefsSuite:
    """Every backend passes all of it."""

    async def test_claims_are_kept_listed_and_taken_back(self, store_url: str) -> None:
        async with working(store_url) as work:
            await project(work)
            run = (await work.task_show(task="demo/2"))["run_id"]
            first = await claim(work, task="2", project="demo", request="req_one")
            assert (await claim(work, task="2", project="demo", request="req_one"))["id"] == first["id"]
            second = await claim(work, run=run)
            loose = await claim(work, run=(await work.begin_run())["run"])
            assert [c["id"] for c in await work.claim_ls(task="demo/2")] == [first["id"], second["id"]]
            assert [c["id"] for c in await work.claim_ls(run=run)] == [first["id"], second["id"]]
            assert len(await work.claim_ls()) == 3
            assert (first["state"], first["checked_at"], first["host"]) == ("unknown", None, "hst_1")
            result = {"id": first["id"], "state": "drifted", "said": "gone", "evidence": {"exit": {"code": 3}}}
            await work.claim_checked(results=[result, {**result, "id": "clm_gone"}])
            kept = (await work.claim_ls(task="demo/2"))[0]
            assert (kept["state"], kept["said"], kept["evidence"]["exit"]["code"]) == ("drifted", "gone", 3)
            assert kept["checked_at"]
            gone = await work.claim_rm(claim=loose["id"], request="req_gone")
            assert await work.claim_rm(claim=loose["id"], request="req_gone") == gone  # its answer was lost
            assert [c["id"] for c in await work.claim_ls()] == [first["id"], second["id"]]
            with refused("not_found"):
                await work.claim_rm(claim=loose["id"])
            await work.claim_checked(results=[{**result, "id": loose["id"]}])
            assert len(await work.claim_ls()) == 2

    async def test_bad_claims_are_refused(self, store_url: str) -> None:
        async with working(store_url) as work:
            run = (await work.begin_run())["run"]
            with refused("invalid"):
                await claim(work)
            with refused("invalid"):
                await claim(work, run=run, task="deploy")
            with refused("not_found"):
                await claim(work, task="no/such")
            with refused("not_found"):
                await claim(work, run="run_" + "0" * 16)
            with refused("invalid"):
                await work.claim_add(kind="wish", spec={}, seen={}, run=run)
            with refused("invalid"):
                await work.claim_add(kind="file", spec={"path": "x" * 70_000}, seen={}, run=run)
            with refused("invalid"):
                await work.claim_checked(results=[{"id": "clm_1", "state": "fine"}])

    async def test_the_facts_of_a_task_a_run_and_a_project(self, store_url: str) -> None:
        async with working(store_url) as work:
            await project(work)
            run = (await work.task_show(task="demo/2"))["run_id"]
            state = {"plan": [{"key": "a"}, {"key": "b"}], "constraints": ["be quick"]}
            await work.checkpoint_save(run=run, state=state)
            await work.step_begin(run=run, key="a")
            await work.step_end(run=run, key="a")
            await work.step_begin(run=run, key="pay")
            await work.step_fail(run=run, key="pay", error="lost", known=False)
            for kind, body in (
                ("decision", {"text": "by hand", "why": "quicker"}),
                ("rejected", "by mail"),
                ("question", "when?"),
                ("answer", "now"),
                ("question", "where?"),
            ):
                await work.log_append(run=run, kind=kind, body=body)
            facts = await work.brief_facts(target="2", project="demo")
            assert (facts["goal"], facts["constraints"]) == ("it works", ["no shortcuts", "be quick"])
            assert [(p["key"], p["state"]) for p in facts["plan"]] == [("a", "done"), ("b", "pending")]
            assert [s["key"] for s in facts["in_doubt"]] == ["pay"]
            assert facts["decisions"][0]["text"] == "by hand"
            assert facts["paths_not_taken"][0]["text"] == "by mail"
            assert [(q["text"], q["answer"]) for q in facts["questions"]] == [("where?", None), ("when?", "now")]
            whole = await work.brief_facts(project="demo")
            assert [t["id"] for t in whole["active"]] == ["2"]
            assert whole["active"][0]["in_doubt"] == 1
            assert whole["focus"]["task"]["id"] == "2"
            assert whole["counts"] == {"active": 1, "done": 1, "pending": 2}
            assert (await work.brief_facts(target=run))["of"] == "run"
            await work.task_fail(task="demo/2", why="given up")
            left = (await work.brief_facts(target="2", project="demo"))["in_doubt"]
            assert [(s["key"], s["run_state"]) for s in left] == [("pay", "failed")]
            document = budget.build(facts | {"sessions": []}, 4000)
            assert document["next_action"]["kind"] == "settle_step"
            with refused("not_found"):
                await work.brief_facts(target="99", project="demo")

    async def test_without_a_project_all_runs_under_way_are_told(self, store_url: str) -> None:
        async with working(store_url) as work:
            empty = await work.brief_facts()
            assert (empty["of"], empty["active"], empty["focus"]) == ("runs", [], None)
            first = (await work.begin_run(task="deploy"))["run"]
            await work.run_end(run=(await work.begin_run())["run"])
            facts = await work.brief_facts()
            assert [t["run"] for t in facts["active"]] == [first]
            assert facts["focus"]["run"]["run"] == first
            assert (await work.brief_facts(target="deploy"))["run"]["run"] == first

    async def test_a_report_counts_what_was_done_in_its_span(self, store_url: str) -> None:
        async with working(store_url) as work:
            began = time.time()
            await project(work)
            await work.task_fail(task="demo/2", why="the disk is full")
            run = (await work.begin_run(task="loose"))["run"]
            await work.step_begin(run=run, key="a")
            await work.step_end(run=run, key="a")
            found = await work.report(since=began - 60)
            assert found["totals"]["tasks"] == 4
            assert found["totals"]["attempts"] == {"begun": 3, "done": 1, "failed": 1}
            assert found["totals"]["events"]["done"] == 1
            assert found["totals"]["steps"] == {"done": 1}
            assert [r["run"] for r in found["runs"]] == [run]
            assert found["people"][0]["done"] == 1
            of_one = await work.report(task="2", project="demo")
            assert [t["task_id"] for t in of_one["tasks"]] == ["2"]
            assert of_one["tasks"][0]["attempts"][0]["outcome"] == "failed"
            assert [t["task_id"] for t in (await work.report(since=began - 60, project="demo"))["tasks"]] == [
                "1",
                "2",
                "3",
                "4",
            ]
            before = await work.report(since=began - 120, until=began - 60)
            assert (before["tasks"], before["runs"], before["people"]) == ([], [], [])
            with refused("not_found"):
                await work.report(since=0, project="nothing")

    async def test_only_ended_work_without_doubts_is_forgotten_with_its_artifacts(self, store_url: str) -> None:
        async with working(store_url) as work:
            ended = (await work.begin_run())["run"]
            content = b"made by a run"
            sha256 = hashlib.sha256(content).hexdigest()
            data = base64.b64encode(content).decode()
            await work.artifact_put(run=ended, name="f", sha256=sha256, data=data)
            await work.checkpoint_save(run=ended, state={"goal": "x"})
            await work.step_begin(run=ended, key="a")
            await work.step_end(run=ended, key="a")
            await claim(work, run=ended)
            await work.run_end(run=ended)
            doubted = (await work.begin_run())["run"]
            await work.step_begin(run=doubted, key="pay")
            await work.step_fail(run=doubted, key="pay", error="lost", known=False)
            await work.run_end(run=doubted, state="failed")
            running = (await work.begin_run())["run"]
            await project(work)
            assert (await work.work_prune(older_than_s=_DAY_S))["runs"] == 0
            done = await work.work_prune(older_than_s=0)
            assert {k: done[k] for k in ("runs", "steps", "bytes", "projects", "more")} == {
                "runs": 1,
                "steps": 1,
                "bytes": len(content),
                "projects": 0,
                "more": False,
            }
            assert {r["run"] for r in await work.run_ls()} >= {doubted, running}
            with refused("not_found"):
                await work.run_status(run=ended)
            usage = await work.work_usage()
            assert (usage["rows"]["artifact"], usage["rows"]["claim"], usage["rows"]["project"]) == (0, 0, 1)

    async def test_a_project_is_forgotten_whole_once_it_is_finished(self, store_url: str) -> None:
        async with working(store_url) as work:
            await project(work)
            await project(work, name="other")
            for id in ("2", "3", "4"):
                await work.task_done(task=f"demo/{id}")
            await claim(work, task="demo/1")
            done = await work.work_prune(older_than_s=0)
            assert (done["projects"], done["tasks"], done["runs"]) == (1, 4, 4)
            assert [p["project_name"] for p in await work.project_ls()] == ["other"]
            assert (await work.claim_ls()) == []
