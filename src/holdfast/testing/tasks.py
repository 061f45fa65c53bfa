"""The conformance suite of tasks: contracts, readiness, verification, policies and backends."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import Any

from ..work.service import Work
from .store import refused
from .workers import working

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator

Json = dict[str, Any]
LONG_S = 600.0  # a lease that does not expire during the test
ROOT = "/nonexistent/project"  # a folder of another machine: its programs are not searched


def passed(*commands: Any) -> list[Json]:
    return [{"command": c, "exit_code": 0, "state": "passed", "session": None, "tail": ""} for c in commands]


def failing(command: Any, code: int = 1) -> Json:
    return {"command": command, "exit_code": code, "state": "failed", "session": "ses_v", "tail": "no\n"}


@asynccontextmanager
async def project(store_url: str, *phases: str) -> AsyncIterator[Work]:
    async with working(store_url) as work:
        await work.project_init(name="demo", root=ROOT, phases=list(phases) or None)
        yield work


async def take(work: Work, worker: str, **options: Any) -> Json:
    return await work.task_next(worker=worker, **{"ttl_s": LONG_S, **options})


async def status(work: Work, task: str) -> str:
    return str((await work.task_show(task=task))["status"])


class TasksSuite:
    """Every backend passes all of it."""

    async def test_tasks_get_ids_in_order_and_chosen_ones_are_passed_over(self, store_url: str) -> None:
        async with project(store_url) as work:
            await work.task_add(title="chosen", id="2")
            given = [(await work.task_add(title="t"))["task_id"] for _ in range(2)]
            assert given == ["1", "3"]
            with refused("conflict"):
                await work.task_add(title="again", id="2")
            assert [t["task_id"] for t in await work.task_ls()] == ["2", "1", "3"]
            assert [t["task_id"] for t in await work.task_ls(limit=1, after="2")] == ["1"]
            assert [t["task_id"] for t in await work.task_ls(limit=9, after="3")] == []

    async def test_a_project_begun_again_is_the_same_and_another_one_is_told(self, store_url: str) -> None:
        async with project(store_url, "a", "b") as work:
            again = await work.project_init(name="demo", root=ROOT, phases=["a", "b"])
            assert (again["created"], again["phases"]) == (False, ["a", "b"])
            for other in ({"root": "/elsewhere"}, {"root": ROOT, "phases": ["b"]}):
                with refused("conflict"):
                    await work.project_init(name="demo", **other)
            for bad in (
                {"name": "a/b", "root": ROOT},
                {"name": "x", "root": "rel"},
                {"name": "x", "root": ROOT, "phases": ["p", "p"]},
            ):
                with refused("invalid"):
                    await work.project_init(**bad)
            await work.project_edit(project="demo", phases=["a", "b", "c"])
            await work.task_add(title="t", phase="c")
            with refused("conflict"):
                await work.project_edit(project="demo", phases=["a"])

    async def test_the_current_project_is_named_or_holds_the_folder_or_is_the_only_one(self, store_url: str) -> None:
        async with project(store_url) as work:
            await work.task_add(title="t", id="x")
            assert (await work.task_show(task="x", cwd="/elsewhere"))["project"] == "demo"
            await work.project_init(name="inner", root=ROOT + "/inner")
            assert (await work.project_show(cwd=ROOT + "/inner/deep"))["project_name"] == "inner"
            assert (await work.project_show(cwd=ROOT + "/innermost"))["project_name"] == "demo"
            assert (await work.task_show(task="demo/x"))["task_id"] == "x"
            with refused("invalid") as seen:
                await work.project_show(cwd="/elsewhere")
            assert "--project" in seen[0].hint
            for call in (work.project_show(project="gone"), work.task_show(task="y", project="demo")):
                with refused("not_found"):
                    await call

    async def test_dependencies_and_phases_say_what_is_ready(self, store_url: str) -> None:
        async with project(store_url, "a", "b") as work:
            await work.task_add(title="first", id="1", contract={"verification": ["check"]})
            await work.task_add(title="second", id="2", after=["1"])
            await work.task_add(title="third", id="3", phase="b")
            ready = [t["task_id"] for t in await work.task_ls(status="ready")]
            assert ready == ["1"]
            for waiting in ("2", "3"):
                with refused("conflict"):
                    await work.task_start(task=waiting)
                with refused("conflict"):
                    await work.task_done(task=waiting)
            await work.task_start(task="1")
            with refused("failed"):
                await work.task_done(task="1")
            assert (await work.project_show())["active_phase"] == "a"
            await work.task_done(task="1", results=passed("check"))
            assert [t["task_id"] for t in await work.task_ls(status="ready")] == ["2"]
            told = await work.task_done(task="2")
            assert told["active_phase"] == "b"
            state = await work.project_show()
            assert (state["completed_phases"], state["active_phase"], state["remaining_phases"]) == (["a"], "b", [])
            assert [(t["task_id"], t["status"], t["backend"]) for t in state["tasks"]] == [
                ("1", "done", None),
                ("2", "done", None),
                ("3", "ready", None),
            ]
            await work.task_done(task="3")
            state = await work.project_show()
            assert (state["active_phase"], state["completed_phases"]) == (None, ["a", "b"])

    async def test_circles_unknown_ones_and_later_phases_are_refused_as_dependencies(self, store_url: str) -> None:
        async with project(store_url, "a", "b") as work:
            for id, after in (("x", []), ("y", ["x"]), ("z", ["y"])):
                await work.task_add(title=id, id=id, after=after)
            with refused("invalid") as seen:
                await work.task_contract(task="x", after=["z"])
            assert "x -> z -> y -> x" in seen[0].message
            with refused("invalid"):
                await work.task_contract(task="x", contract={"depends_on": ["x"]})
            with refused("not_found"):
                await work.task_add(title="t", after=["nowhere"])
            await work.task_add(title="late", id="late", phase="b")
            with refused("invalid"):
                await work.task_contract(task="x", after=["late"])
            assert (await work.task_show(task="x"))["depends_on"] == []
            await work.task_contract(task="z", after=["x"], why="y is not needed")
            assert (await work.task_show(task="z"))["depends_on"] == ["x"]

    async def test_a_contract_has_versions_and_done_asks_for_the_one_in_force(self, store_url: str) -> None:
        async with project(store_url) as work:
            await work.task_add(title="t", id="1", contract={"goal": "g", "verification": ["one"]})
            started = await work.task_start(task="1")
            await work.task_verified(task="1", run=started["run"], results=passed("one"))
            edit = {"verification": ["one", {"command": ["two", "arg"], "timeout_s": 5}], "constraints": ["c"]}
            made = await work.task_contract(task="1", contract=edit, why="more is needed", by="op_anna")
            assert made["contract_version"] == 2
            with refused("failed") as seen:
                await work.task_done(task="1")
            assert "version 1" in seen[0].message
            with refused("failed"):
                await work.task_done(task="1", results=passed("one"))  # not all that the contract wants
            shown = await work.task_show(task="1")
            assert [(v["version"], v["by"], v["why"]) for v in shown["contract_versions"]][1] == (
                2,
                "op_anna",
                "more is needed",
            )
            assert shown["contract"]["goal"] == "g"
            assert shown["attempts"][0]["contract_version"] == 1
            assert (await work.task_versions(task="1", version=1))["contract"]["constraints"] == []
            await work.task_done(task="1", results=passed("one", ["two", "arg"]))
            assert await status(work, "1") == "done"

    async def test_done_is_refused_where_verification_fails_and_the_results_are_kept(self, store_url: str) -> None:
        async with project(store_url) as work:
            await work.task_add(title="t", id="1", contract={"verification": ["a", "b"]})
            await work.task_start(task="1")
            results = [*passed("a"), failing("b", 3)]
            record = await work.task_verified(task="1", results=results)
            assert record["passed"] is False
            before = await work.task_show(task="1")
            for call in (work.task_done(task="1"), work.task_done(task="1", results=results)):
                with refused("failed") as seen:
                    await call
                assert "'b' failed with exit code 3" in seen[0].message
                assert seen[0].hint == "hold logs ses_v"
            after = await work.task_show(task="1")
            assert after["status"] == "active"
            assert after["attempts"] == before["attempts"]
            assert after["attempts"][0]["verification"]["results"] == results
            with refused("invalid"):
                await work.task_done(task="1", results=[{**failing("a"), "state": "passed"}])

    async def test_an_attempt_keeps_the_policy_it_began_with(self, store_url: str) -> None:
        async with project(store_url) as work:
            profiles = {"quick": ["lint"], "slow": [{"command": "test", "timeout_s": 9}]}
            rules = {"verification": {"profiles": profiles}, "backends": ["codex", "claude"]}
            first = await work.policy_set(policy=rules)
            contract = {"verification": [{"profile": "quick"}], "backend": "claude"}
            await work.task_add(title="t", id="1", contract=contract)
            started = await work.task_start(task="1")
            assert (first["version"], started["policy_version"]) == (1, 1)
            assert [c["command"] for c in started["checks"]] == ["lint"]
            assert started["backends"] == ["claude", "codex"]
            await work.policy_set(policy={"verification": {"profiles": {"quick": ["other"]}}}, why="quicker")
            with refused("failed"):
                await work.task_done(task="1", results=passed("other"))
            await work.task_done(task="1", results=passed("lint"))
            shown = await work.policy_show()
            assert (shown["version"], shown["versions"][0]["why"]) == (2, "quicker")
            assert (await work.policy_show(version=1))["policy"]["backends"] == ["codex", "claude"]
            with refused("invalid"):
                await work.task_add(title="t", contract={"verification": [{"profile": "slow"}]})

    async def test_a_repeated_request_is_applied_once(self, store_url: str) -> None:
        async with project(store_url) as work:
            for _ in range(2):
                made = await work.task_add(title="t", request="req_add")
            assert len(await work.task_ls()) == 1
            id = made["task_id"]
            got = [await take(work, "w1", request="req_next") for _ in range(2)]
            assert got[0]["run"] == got[1]["run"]
            assert got[0]["epoch"] == got[1]["epoch"]
            for _ in range(2):
                told = await work.task_fail(task=id, run=got[0]["run"], epoch=1, request="req_fail")
            assert (told["status"], told["attempt_count"]) == ("failed", 1)
            await take(work, "w2")
            with refused("busy"):
                await take(work, "w1", request="req_next")  # its lease has gone to another since
            for _ in range(2):
                told = await work.task_done(task=id, epoch=1, request="req_done")
            assert told["status"] == "done"
            for _ in range(2):
                assert (await work.policy_set(policy={}, request="req_policy"))["version"] == 1

    async def test_begin_run_of_a_task_is_its_start_and_free_names_stay_free(self, store_url: str) -> None:
        async with project(store_url) as work:
            await work.task_add(title="t", id="1.5")
            free = await work.begin_run(task="deploy", worker="w")
            assert free["task"] == "deploy"
            made = await work.begin_run(task="1.5", worker="w1", params={"a": 1}, ttl_s=LONG_S)
            assert (made["task"], made["params"], made["n"]) == ("demo/1.5", {"a": 1}, 1)
            assert await status(work, "1.5") == "active"
            await work.run_end(run=made["run"], epoch=made["epoch"], state="failed", why="no luck")
            assert await status(work, "1.5") == "failed"
            made = await work.begin_run(task="demo/1.5", worker="w1")
            await work.run_end(run=made["run"], epoch=made["epoch"])
            assert await status(work, "1.5") == "active"  # the run has ended; the task is accepted by `done`
            assert (await work.begin_run(task="1.5", worker="w1"))["state"] == "done"
            await work.task_done(task="1.5")
            assert await status(work, "1.5") == "done"
            assert (await work.begin_run(task="1.5", worker="w1"))["run"] == made["run"]
            assert {r["n"] for r in await work.run_ls(task="1.5")} == {1, 2}

    async def test_what_cannot_be_is_refused_and_nothing_is_kept(self, store_url: str) -> None:
        async with project(store_url) as work:
            late: Json = {"command": "x", "timeout_s": 0}
            for contract in (
                {"verification": [""]},
                {"verification": ["a\0b"]},
                {"verification": [late]},
                {"verification": "true"},
                {"scope": ["/etc"]},
                {"scope": ["../x"]},
                {"surprise": 1},
                {"goal": 7},
                {"constraints": ["x"] * 500},
                {"goal": "a", "intent": "b"},
                {"timeout_s": -1},
                "text",
            ):
                with refused("invalid"):
                    await work.task_add(title="t", contract=contract)  # type: ignore[arg-type]
            for title in ("", "two\nlines", "x" * 500, "\0"):
                with refused("invalid"):
                    await work.task_add(title=title)
            with refused("invalid"):
                await work.task_add(title="t", id="a b")
            for bad in ({"phase": "nowhere"}, {"contract": {"backend": "nobody"}}):
                with refused("not_found"):
                    await work.task_add(title="t", **bad)
            policies: tuple[Any, ...] = (
                {"retry": {"attempts_max": 0}},
                {"retries": 1},
                {"routing": [{"match": {"x": "y"}}]},
                [],
                {"verification": {"profiles": {"p": [""]}}},
                {"timeout_s": 0},
            )
            for policy in policies:
                with refused("invalid"):
                    await work.policy_set(policy=policy)
            with refused("not_found"):
                await work.policy_set(policy={"backends": ["nobody"]})
            assert await work.task_ls() == []
            assert (await work.policy_show())["version"] == 0

    async def test_backends_are_kept_by_name(self, store_url: str) -> None:
        async with project(store_url) as work:
            await work.backend_add(name="own", template=["run", "{contract}"], env={"A": "b"}, timeout_s=5)
            await work.backend_add(name="own", template=["run2"])
            found = {b["name"]: b for b in await work.backend_ls()}
            assert set(found) == {"claude", "codex", "shell", "own"}
            assert (found["own"]["template"], found["own"]["builtin"]) == (["run2"], False)
            await work.task_add(title="t", id="1", contract={"backend": "own"})
            with refused("conflict"):
                await work.backend_rm(name="own")
            await work.task_cancel(task="1")
            for _ in range(2):  # the answer was lost, and is asked for again
                assert (await work.backend_rm(name="own", request="req_rm"))["removed"]
            with refused("not_found"):
                await work.backend_rm(name="own")
            assert "own" not in {b["name"] for b in await work.backend_ls()}
            with refused("not_found"):
                await work.task_add(title="t", contract={"backend": "own"})
            await work.backend_add(name="own", template=["run3"])
            assert (await work.backend_rm(name="own"))["removed"]
            with refused("invalid"):
                await work.backend_add(name="own", template="run me")  # type: ignore[arg-type]

    async def test_an_attempt_is_told_what_is_known_of_it(self, store_url: str) -> None:
        async with project(store_url) as work:
            await work.task_add(title="t", id="1")
            got = await take(work, "w1")
            mine = {"run": got["run"], "epoch": got["epoch"]}
            await work.attempt_note(**mine, backend="claude", changes={"created": ["a"]})
            await work.attempt_note(**mine, classification={"failure_type": "timeout"})
            with refused("busy"):
                await work.attempt_note(run=got["run"], changes={})
            with refused("fenced"):
                await work.attempt_note(run=got["run"], epoch=9, changes={})
            attempt = (await work.task_show(task="1"))["attempts"][0]
            assert (attempt["backend"], attempt["changes"]) == ("claude", {"created": ["a"]})
            assert attempt["classification"]["failure_type"] == "timeout"
            assert (await work.project_show())["tasks"][0]["backend"] == "claude"
