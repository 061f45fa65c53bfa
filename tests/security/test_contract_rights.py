"""What an agent wrote and a person has run: commands of contracts, policies, claims and backends act no wider than it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client.verification_sync import verify
from holdfast.model.errors import HoldfastError
from tests.support.home import HomeForTests
from tests.support.operators import INSIDE, acting_as, enrol
from tests.support.runners import Project

STARTS = f"{INSIDE} run -d --json -- sleep 600"  # more than `work` allows


@pytest.fixture
def project(hold: HomeForTests, tmp_path: Path) -> Iterator[Project]:
    made = Project(hold, tmp_path)
    enrol(hold, "mole", verbs=["view", "work"])
    yield made
    made.close()


def names(hold: HomeForTests) -> list[str]:
    return [s["command"][0] for s in hold.host.call("ls", all=True)]


def test_a_verification_that_an_agent_wrote_has_no_more_rights_when_a_person_has_it_run(project: Project) -> None:
    hold = project.hold
    with acting_as(hold, "mole") as mole:
        mole.work.tasks.add("dig", id="1", contract={"verification": [STARTS]}, project="demo")
    project.tasks.edit("1", {"goal": "dig deeper"}, project="demo")  # a person's edit does not make it theirs
    project.tasks.start("1", project="demo")
    result = project.tasks.verify("1", project="demo")[0]
    assert (result["state"], result["exit_code"]) == ("failed", 4), result
    assert "sleep" not in names(hold)


def test_a_verification_that_a_person_wrote_keeps_a_persons_rights(project: Project) -> None:
    project.add("1", verification=[f"{INSIDE} run -d --json -- true"])
    project.tasks.start("1", project="demo")
    assert project.tasks.verify("1", project="demo")[0]["state"] == "passed"


def test_a_profile_that_an_agent_put_into_the_policy_has_no_more_rights_either(project: Project) -> None:
    with acting_as(project.hold, "mole") as mole:
        mole.work.tasks.set_policy({"verification": {"profiles": {"all": [STARTS]}}}, project="demo")
    project.add("1", verification=[{"profile": "all"}])
    project.tasks.start("1", project="demo")
    assert project.tasks.verify("1", project="demo")[0]["exit_code"] == 4
    assert "sleep" not in names(project.hold)


def test_a_command_that_an_agent_claims_is_checked_with_the_agents_rights(project: Project) -> None:
    project.add("1")
    with acting_as(project.hold, "mole") as mole:
        mole.work.add_claim(task="1", command=STARTS, project="demo")
    checked = project.hold.host.work.check_claims(task="1", project="demo")
    assert checked[0]["state"] == "drifted"
    assert checked[0]["evidence"]["exit_code"] == 4
    assert "sleep" not in names(project.hold)


def test_a_backend_that_an_agent_described_has_no_more_rights_when_a_persons_runner_starts_it(project: Project) -> None:
    script = project.script("tidy", f"{STARTS} > said 2>&1; echo $? > code; exit 0\n")
    with acting_as(project.hold, "mole") as mole:
        mole.work.tasks.add_backend("tidy", [str(script)])
    project.add("1", verification=["test -e code"])
    project.run_once()
    assert project.status() == "done"
    assert (project.root / "code").read_text() == "4\n", (project.root / "said").read_text()
    assert "sleep" not in names(project.hold)


def passed(session: str | None = None, command: str = "test -e made") -> list[dict[str, object]]:
    return [{"command": command, "exit_code": 0, "state": "passed", "tail": "", "session": session, "at": None}]


def test_results_that_an_agent_made_up_are_not_believed(project: Project) -> None:
    project.add("1", verification=["test -e made"])
    enrol(project.hold, "worker", verbs=["view", "work", "start", "stop"])
    with acting_as(project.hold, "worker") as agent:
        run = agent.work.tasks.start("1", project="demo")
        elsewhere = agent.run(["true"], pipes=True)
        elsewhere.wait(exit=True, timeout=30)
        failed = agent.work.tasks.verify("1", project="demo")[0]
        assert failed["state"] == "failed"
        for session in (None, "ses_nothing", elsewhere.id, failed["session"]):
            for call in ("task_verified", "task_done"):
                with pytest.raises(HoldfastError, match="not believed") as refused:
                    agent.work.call(call, task="demo/1", run=run["run"], results=passed(session))
                assert refused.value.code == "failed"
    assert project.status() == "active"
    assert project.hold.host.work.tasks.project("demo")["completed_phases"] == []


def test_a_verification_that_ran_in_another_folder_or_before_the_attempt_is_not_believed(
    project: Project, tmp_path: Path
) -> None:
    enrol(project.hold, "worker", verbs=["view", "work", "start", "stop"])
    (tmp_path / "made").touch()
    with acting_as(project.hold, "worker") as agent:
        checks = [{"command": "test -e made", "timeout_s": 30}]
        there = verify(agent, checks, cwd=str(tmp_path))
        (project.root / "made").touch()
        before = verify(agent, checks, cwd=str(project.root))
        (project.root / "made").unlink()
        project.add("1", verification=["test -e made"])
        agent.work.tasks.start("1", project="demo")
        for results, why in ((there, "elsewhere"), (before, "before the attempt")):
            assert results[0]["state"] == "passed"
            with pytest.raises(HoldfastError, match=why):
                agent.work.call("task_done", task="demo/1", results=results)
    assert project.status() == "active"


def test_an_agent_whose_verification_passed_is_believed(project: Project) -> None:
    project.add("1", verification=["test -e made"])
    enrol(project.hold, "worker", verbs=["view", "work", "start", "stop"])
    (project.root / "made").touch()
    with acting_as(project.hold, "worker") as agent:
        agent.work.tasks.start("1", project="demo")
        assert agent.work.tasks.done("1", project="demo")["status"] == "done"
