"""What is written into the record by somebody careless or hostile breaks nothing for whoever reads it next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._async.host import AsyncHost
from holdfast.model.errors import HoldfastError
from holdfast.model.work.effects import Fenced
from holdfast.worker.runner.verify import verify as runner_verify
from tests.support.home import HomeForTests
from tests.support.runners import Project
from tests.support.tasks import ok, one_line


@pytest.fixture
def project(hold: HomeForTests, tmp_path: Path) -> Iterator[Project]:
    made = Project(hold, tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="module")
def standing(shared: HomeForTests, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """One with a task, for tests that change nothing."""
    made = Project(shared, tmp_path_factory.mktemp("standing"))
    made.add("1")
    yield made
    made.close()


@pytest.mark.parametrize(
    ("kind", "spec", "seen"),
    [
        ("port", {"port": "80; rm"}, {}),
        ("port", {"port": 0}, {}),
        ("port", {"port": True}, {}),
        ("port", {"port": 80}, {"generation": "x"}),
        ("pid", {"pid": -1}, {}),
        ("pid", {"pid": [1]}, {}),
        ("file", {"path": "/etc/passwd"}, {}),
        ("file", {"path": 7}, {"sha256": "a", "size": 1}),
        ("file", {"path": "/x"}, {"sha256": 5, "size": 1}),
        ("command", {"command": "true"}, {}),
        ("command", {"command": ["true"], "cwd": "/", "timeout_s": 5}, {}),
        ("session", {"session": {}}, {}),
        ("session", {"session": "web"}, {"session": 3}),
    ],
)
def test_a_claim_that_could_not_be_looked_at_later_is_refused(
    standing: Project, kind: str, spec: dict[str, Any], seen: dict[str, Any]
) -> None:
    with pytest.raises(HoldfastError) as refused:
        standing.hold.host.work.call("claim_add", kind=kind, spec=spec, seen=seen, task="demo/1")
    assert refused.value.code == "invalid"
    assert standing.hold.host.work.resume("demo/1")["sections"].get("drifted") is None


def test_evidence_that_is_none_is_refused_and_the_brief_goes_on(project: Project) -> None:
    project.add("1")
    work = project.hold.host.work
    claim = work.add_claim(task="demo/1", command="true")
    for bad in ({"evidence": "x"}, {"said": 5}):
        with pytest.raises(HoldfastError, match="in words"):
            work.call("claim_checked", results=[{"id": claim["id"], "state": "drifted", **bad}])
    assert work.resume("demo/1")["next_action"]["kind"] == "start_task"


@pytest.mark.parametrize(
    "noted",
    [
        {"created": ["a"]},
        {"created": [{"x": 1}]},
        "junk",
        {"created": {"a": 1}},
        {"created": [{"path": "../../etc/x", "after": "0", "size": 1}]},
    ],
)
def test_changes_that_somebody_made_up_stop_neither_the_list_of_orphans_nor_the_runner(
    project: Project, noted: object
) -> None:
    project.backend("tidy", "touch made\n")
    project.add("1", verification=["test -e made"])
    made = project.tasks.start("1", project="demo")
    project.hold.host.work.call("attempt_note", run=made["run"], changes=noted)
    project.tasks.fail("1", project="demo")
    assert project.hold("artifact", "orphans", "--json").json == []
    project.run_once()
    assert project.status() == "done"
    assert project.hold("artifact", "discard", "demo/1", "--yes", "--json").json[0]["path"] == "made"


def test_results_whose_command_is_no_command_are_refused(project: Project) -> None:
    project.add("1", verification=["true"])
    project.tasks.start("1", project="demo")
    for command in (5, None, ["a", 5], {"a": 1}):
        results = [{"command": command, "state": "failed", "exit_code": 1}]
        with pytest.raises(HoldfastError) as refused:
            project.hold.host.work.call("task_verified", task="demo/1", results=results)
        assert refused.value.code == "invalid"


def test_phases_are_not_put_into_an_order_in_which_a_task_could_never_begin(hold: HomeForTests, shop: Path) -> None:
    ok(hold, "project", "edit", "--phase", "build", "--phase", "ship")
    ok(hold, "task", "add", "a", "--id", "a", "--phase", "build")
    ok(hold, "task", "add", "b", "--id", "b", "--phase", "ship", "--after", "a")
    refused = hold("project", "edit", "--phase", "ship", "--phase", "build")
    assert refused.code == 5, refused.out
    assert one_line(refused.err)
    assert ok(hold, "project", "show")["active_phase"] == "build"


def test_the_brief_of_a_tasks_run_has_the_tasks_goal_and_constraints(hold: HomeForTests, shop: Path) -> None:
    ok(
        hold,
        "task",
        "add",
        "Bake",
        "--id",
        "1",
        "--goal",
        "a warm bread",
        "--constraint",
        "no sugar",
        "--accept",
        "crisp",
    )
    first = ok(hold, "task", "start", "1")["run_id"]
    brief = ok(hold, "resume", first)
    assert (brief["of"], brief["goal"], brief["constraints"]) == ("run", "a warm bread", ["no sugar"])
    assert brief["acceptance"] == ["crisp"]
    assert brief["next_action"]["command"][:3] == ["hold", "task", "done"]  # not the run's end: the task decides
    text = hold("resume", first).out
    assert "of task shop/1: Bake" in text
    assert "> a warm bread" in text
    ok(hold, "task", "fail", "1")
    ok(hold, "task", "start", "1")
    earlier = ok(hold, "resume", first)
    assert (earlier["goal"], earlier["constraints"]) == ("a warm bread", ["no sugar"])
    assert earlier["next_action"]["kind"] == "done"


def test_whoever_follows_the_brief_is_never_sent_in_circles(hold: HomeForTests, shop: Path) -> None:
    ok(hold, "task", "add", "first", "--id", "a")
    ok(hold, "task", "add", "second", "--id", "b", "--after", "a")
    ok(hold, "task", "cancel", "a")
    told = ok(hold, "resume", "b")["next_action"]
    assert told["kind"] == "unblock"
    assert told["choices"]["drop"] == ["hold", "task", "edit", "shop/b", "--no-after"]
    assert hold(*told["choices"]["drop"][1:]).code == 0
    assert ok(hold, "resume", "b")["next_action"]["kind"] == "start_task"
    # One that failed, and that waits for another since.
    ok(hold, "task", "start", "b")
    ok(hold, "task", "fail", "b")
    ok(hold, "task", "add", "third", "--id", "c")
    ok(hold, "task", "edit", "b", "--after", "c")
    told = ok(hold, "resume", "b")["next_action"]
    assert (told["kind"], told["command"][:3]) == ("resume_task", ["hold", "resume", "shop/c"])
    ok(hold, "task", "pause", "b")
    assert ok(hold, "resume", "b")["next_action"]["kind"] == "resume_task"


def test_a_session_that_ends_each_time_is_not_restarted_for_ever(hold: HomeForTests, shop: Path) -> None:
    ok(hold, "task", "add", "serve", "--id", "1")
    ok(hold, "task", "start", "1")
    web = hold.host.run(["sh", "-c", "exit 3"], name="web")
    assert web.wait(exit=True, timeout=60).event != "timeout"
    hold.host.work.add_claim(task="1", session="web", project="shop")
    kinds = []
    for _ in range(6):
        told = ok(hold, "resume", "1")["next_action"]
        kinds.append(told["kind"])
        if told["kind"] != "restart_session":
            break
        assert hold(*told["command"][1:]).code == 0
        assert web.wait(exit=True, timeout=60).event != "timeout"
    assert kinds == ["restart_session"] * 3 + ["rerun_verification"]
    assert "web" in str(ok(hold, "resume", "1")["sections"]["drifted"])  # it is still said


def test_a_dependency_that_is_not_there_is_not_taken_for_the_task_itself(hold: HomeForTests, shop: Path) -> None:
    refused = hold("task", "add", "second", "--after", "1")
    assert (refused.code, one_line(refused.err)) == (3, True), refused.err
    assert "no task '1'" in refused.err


async def test_a_verification_of_a_runner_that_was_fenced_while_it_began_leaves_nothing_running(
    project: Project,
) -> None:
    project.add("1", verification=["exec sleep 600"])
    made = project.tasks.start("1", worker="w", lease=600, project="demo")
    about = project.show()
    async with AsyncHost(str(project.hold.path)) as host:
        with pytest.raises(Fenced):
            await runner_verify(
                host, about, n=1, run=made["run"], epoch=made["epoch"] + 1, tell=lambda event, **facts: None
            )
    assert project.hold.host.call("ls", all=False) == []
