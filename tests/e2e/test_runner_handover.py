"""Runners of different operators, and sessions that changed their names: what is gone on with is what was begun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.home import HomeForTests, until
from tests.support.operators import enrol
from tests.support.runners import DEADLINE_S, Project, runner_of

GATED = 'echo "$$" >> pids; until [ -e "$1" ]; do sleep 0.05; done; echo x >> out'


@pytest.fixture
def project(hold: HomeForTests, tmp_path: Path) -> Iterator[Project]:
    made = Project(hold, tmp_path)
    yield made
    made.close()


def verifying(project: Project) -> Path:
    """A task whose verification writes a line, then waits for the file that is returned."""
    go = project.folder / "go"
    project.backend("quick", "echo x >> out")
    project.policy(backends=["quick"])
    check = f"echo one >> {project.folder}/begun; until [ -e {go} ]; do sleep 0.05; done"
    project.add("1", verification=[check])
    return go


def begun(project: Project) -> list[str]:
    path = project.folder / "begun"
    return path.read_text().split() if path.exists() else []


# -- another operator goes on


def test_another_persons_runner_goes_on_with_the_verification_that_was_begun(project: Project) -> None:
    enrol(project.hold, "second", "human", verbs=["view", "start", "work", "stop"], sessions=["*"])
    go = verifying(project)
    first = project.runner()
    first.saw("verifying")
    until(lambda: begun(project), timeout=DEADLINE_S)
    first.kill()
    second = runner_of(project, "second", "--once")
    second.saw("verifying")
    go.touch()
    assert second.wait() == 0, second.events
    assert project.status() == "done"
    assert begun(project) == ["one"], "the same verification, not another one"


def test_what_an_agents_runner_verified_is_verified_again_by_the_person_who_goes_on(project: Project) -> None:
    enrol(project.hold, "bot", "agent")
    go = verifying(project)
    first = runner_of(project, "bot")
    first.saw("verifying")
    until(lambda: begun(project), timeout=DEADLINE_S)
    first.kill()
    second = project.runner("--once")
    second.saw("verifying")
    assert begun(project) == ["one"], "not while the other one runs"
    go.touch()
    assert second.wait() == 0, second.events
    assert project.status() == "done"
    assert begun(project) == ["one", "one"]


def test_another_persons_runner_adopts_the_backends_session(project: Project) -> None:
    enrol(project.hold, "second", "human", verbs=["view", "start", "work", "stop"], sessions=["*"])
    go = project.folder / "go"
    project.backend("gated", GATED, str(go))
    project.policy(backends=["gated"])
    project.add("1")
    first = project.runner()
    pid = first.saw("started")["pid"]
    first.kill()
    project.hold("rename", "demo.1-1", "elsewhere")
    second = runner_of(project, "second", "--once")
    assert second.saw("adopted")["pid"] == pid
    go.touch()
    assert second.wait() == 0, second.events
    assert len((project.root / "pids").read_text().split()) == 1


# -- names change hands


@pytest.mark.parametrize("runner_lives", [True, False])
def test_the_end_of_a_task_never_ends_a_session_that_only_has_the_name(project: Project, runner_lives: bool) -> None:
    hold = project.hold
    project.backend("gated", GATED, str(project.folder / "go"))
    project.policy(backends=["gated"])
    project.add("1")
    first = project.runner()
    name = first.saw("started")["session"]
    own = hold("status", name, "--json").json["id"]
    if not runner_lives:
        first.kill()
    assert hold("rename", name, "moved").code == 0
    theirs = hold("run", "-d", "-n", name, "--json", "--", "sleep", "600").json["id"]
    hold.host.work.call("task_cancel", task="demo/1")  # nothing is stopped by this alone
    if not runner_lives:
        project.runner("--once").wait()
    until(lambda: hold("status", own, "--json").json["state"] != "live", timeout=DEADLINE_S)
    if runner_lives:
        first.saw("cancelled")
    assert hold("status", theirs, "--json").json["state"] == "live"
