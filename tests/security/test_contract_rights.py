"""What an agent wrote and a person has run: commands of contracts, policies, claims and backends act no wider than it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
