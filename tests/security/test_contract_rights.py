"""What an agent wrote and a person has run: commands of contracts, policies, claims and backends act no wider than it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.verification import verify
from holdfast.model.errors import HoldfastError
from tests.support.home import HomeForTests, until
from tests.support.operators import INSIDE, acting_as, enrol, refusals
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
        assert elsewhere.wait(exit=True, timeout=30).event != "timeout"
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


# -- what a person laid down


CONTRACT: dict[str, Any] = {"goal": "dig", "verification": ["make test"], "scope": ["src/**"]}


def refused(act: Callable[[], object]) -> HoldfastError:
    with pytest.raises(HoldfastError) as e:
        act()
    return e.value


@pytest.mark.parametrize("change", [{"verification": ["true"]}, {"scope": ["**"]}, {"goal": "rest"}])
def test_an_agent_does_not_change_a_persons_contract_and_is_told_to_ask(
    project: Project, change: dict[str, Any]
) -> None:
    project.add("1", **CONTRACT)
    with acting_as(project.hold, "mole") as mole:
        error = refused(lambda: mole.work.tasks.edit("1", change, project="demo"))
        assert (error.code, "hold ask" in error.hint) == ("not_allowed", True)
        assert refused(lambda: mole.work.tasks.edit("1", after=[], project="demo")).code == "not_allowed"
    shown = project.show("1")
    assert (shown["contract_version"], shown["contract"]["verification"][0]["command"]) == (1, "make test")
    assert [r["op"] for r in refusals(project.hold)] == ["task_contract"]


def test_an_agent_edits_what_agents_wrote_until_a_person_has_had_a_hand_in_it(project: Project) -> None:
    enrol(project.hold, "vole", verbs=["view", "work"])
    with acting_as(project.hold, "mole") as mole, acting_as(project.hold, "vole") as vole:
        mole.work.tasks.add("dig", id="1", contract=dict(CONTRACT), project="demo")
        mole.work.tasks.edit("1", {"goal": "dig deep"}, project="demo")
        vole.work.tasks.edit("1", {"scope": ["lib/**"]}, project="demo")
        assert project.show("1")["contract_version"] == 3
        project.tasks.edit("1", {"verification": ["make check"]}, project="demo")
        assert (
            refused(lambda: mole.work.tasks.edit("1", {"verification": ["true"]}, project="demo")).code == "not_allowed"
        )
        made = mole.work.tasks.start("1", project="demo")  # the work itself is still its own
        mole.work.tasks.fail("1", run=made["run"], why="too hard", project="demo")


def test_an_agent_does_not_change_how_a_person_has_it_verified_by_other_ways(project: Project) -> None:
    profiles = {"profiles": {"all": ["make test"]}}
    project.policy(verification=profiles, retry={"attempts_max": 2})
    with acting_as(project.hold, "mole") as mole:
        tasks = mole.work.tasks
        others: list[dict[str, Any]] = [{}, {"verification": {"profiles": {"all": ["true"]}}}]
        for other in others:
            assert refused(partial(tasks.set_policy, other, project="demo")).code == "not_allowed"
        assert refused(lambda: tasks.edit_project("demo", root="/tmp")).code == "not_allowed"
        tasks.set_policy({"verification": profiles, "retry": {"attempts_max": 5}}, project="demo")
    kept = project.tasks.policy(project="demo")["policy"]
    assert kept["verification"]["profiles"]["all"][0]["command"] == "make test"
    assert kept["retry"]["attempts_max"] == 5


def test_however_many_policies_an_agent_writes_a_persons_word_on_verification_stays(project: Project) -> None:
    profiles = {"profiles": {"all": ["make test"]}}
    project.policy(verification=profiles)
    with acting_as(project.hold, "mole") as mole:
        for n in range(101):  # more than a list of versions shows
            mole.work.tasks.set_policy({"verification": profiles, "timeout_s": 100 + n}, project="demo")
        other = {"verification": {"profiles": {"all": ["true"]}}}
        assert refused(lambda: mole.work.tasks.set_policy(other, project="demo")).code == "not_allowed"
    shown = project.tasks.policy(project="demo")
    assert shown["policy"]["verification"]["profiles"]["all"][0]["command"] == "make test"
    assert len(shown["authors"]) == 2


@pytest.mark.parametrize("yes", [True, False])
def test_a_rule_shows_an_agents_edit_to_a_person_who_decides(project: Project, yes: bool) -> None:
    hold = project.hold
    project.add("1", **CONTRACT)
    (hold.path / "config.toml").write_text('[[approve]]\nverbs = ["contract"]\nsession = "demo/*"\ntimeout = "10m"\n')
    outcome: list[Any] = []

    def edit() -> None:
        with acting_as(hold, "mole") as mole:
            try:
                outcome.append(mole.work.tasks.edit("1", {"verification": ["make fast"]}, project="demo", why="slow"))
            except HoldfastError as e:
                outcome.append(e)

    asking = threading.Thread(target=edit)
    asking.start()
    items = until(lambda: hold("inbox", "--json").json, timeout=60)
    (item,) = items["items"] if isinstance(items, dict) else items
    assert item["kind"] == "approval"
    assert "make test" in item["text"]
    assert "make fast" in item["text"]
    assert hold("answer", item["id"], "--approve" if yes else "--deny").code == 0
    asking.join(60)
    if yes:
        assert outcome[0]["contract_version"] == 2
        assert project.show("1")["contract_versions"][-1]["by"] == "mole"
    else:
        assert outcome[0].code == "not_allowed"
        assert project.show("1")["contract_version"] == 1
