"""What a runner leaves alone for now, or for good, and that it says so: shared files, and dependencies that never come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.home import HomeForTests
from tests.support.runners import Project

# Leaves a mark while it is at work, and fails where somebody else's is there already.
ALONE = '[ -e busy ] && { echo met >> met; exit 1; }; touch busy; until [ -e "$1" ]; do sleep 0.05; done; rm busy; echo x >> out'


@pytest.fixture
def project(hold: HomeForTests, tmp_path: Path) -> Iterator[Project]:
    made = Project(hold, tmp_path)
    yield made
    made.close()


# -- shared files


def test_attempts_that_share_files_come_one_after_another_and_the_second_says_why(project: Project) -> None:
    go = project.folder / "go"
    project.backend("alone", ALONE, str(go))
    project.policy(backends=["alone"])
    project.add("1", scope=["out"])
    project.add("2", scope=["o*"])
    runner = project.runner("--once", "--parallel", "2")
    back = runner.saw("held_back")
    assert (back["task"], back["beside"]) == ("demo/2", "demo/1")
    assert (back["scope"], back["overlaps"]) == ("o*", "out")
    shown = project.show("2")
    assert (shown["status"], shown["held_back"]["beside"]) == ("ready", "1")
    assert "held back: its scope o* overlaps out of 1" in project.hold("task", "show", "2").out
    go.touch()
    assert runner.wait() == 0, runner.events
    assert [project.status(id) for id in "12"] == ["done", "done"]
    assert not (project.root / "met").exists()
    assert runner.names().count("held_back") == 1
    assert project.show("2")["held_back"] is None


def test_a_second_runner_does_not_share_files_with_the_first_either(project: Project) -> None:
    go = project.folder / "go"
    project.backend("alone", ALONE, str(go))
    project.policy(backends=["alone"])
    project.add("1")  # no scope is all of the project
    project.add("2", scope=["docs/**"])
    first = project.runner("--once")
    first.saw("started")
    second = project.runner("--once")
    assert second.saw("held_back")["task"] == "demo/2"
    go.touch()
    assert {first.wait(), second.wait()} == {0}
    assert [project.status(id) for id in "12"] == ["done", "done"]
    assert not (project.root / "met").exists()


def test_a_policy_lets_attempts_overlap(project: Project) -> None:
    project.backend(
        "pair",
        'touch "at-$1"; case $1 in demo/1) o=2;; *) o=1;; esac\nuntil [ -e "at-demo/$o" ]; do sleep 0.05; done',
        "{task}",
    )
    (project.root / "at-demo").mkdir()
    project.policy(backends=["pair"], overlap="allow")
    project.add("1")
    project.add("2")
    assert project.run_once("--parallel", "2").process.returncode == 0
    refused = project.hold("policy", "set", "--set", 'overlap="maybe"')
    assert (refused.code, "overlap is one of wait, allow" in refused.err) == (2, True)


# -- what can never begin


def test_a_task_that_waits_for_a_cancelled_one_is_told_and_is_no_success(project: Project) -> None:
    hold = project.hold
    project.backend("quick", "echo x >> out")
    project.policy(backends=["quick"])
    project.add("3")
    project.add("4", after=["3"])
    project.add("5", after=["4"])
    assert hold("task", "cancel", "3").code == 0
    runner = project.run_once()
    assert runner.process.returncode == 1, runner.events
    told = runner.saw("never_ready")
    assert (told["task"], told["waits_for"]) == ("demo/4", "demo/3")
    plain = hold("work", "run", "--once")
    assert (plain.code, "demo/4: waits for cancelled demo/3 and can never begin" in plain.err) == (1, True)
    listed = hold("task", "ls")
    assert "demo/4 waits for cancelled demo/3" in listed.err
    lines = {t["task_id"]: t["waits_for_cancelled"] for t in hold("task", "ls", "--json").json}
    assert lines == {"3": [], "4": ["3"], "5": []}
    assert "waits for cancelled 3" in hold("task", "show", "4").out
    brief = hold("resume")
    assert "waits for cancelled demo/3" in brief.out
    action = hold("resume", "--json").json["next_action"]
    assert (action["kind"], action["command"]) == ("unblock", ["hold", "task", "retry", "demo/3"])
    assert hold("task", "edit", "4", "--no-after").code == 0
    assert project.run_once().process.returncode == 0
    assert [project.status(id) for id in "45"] == ["done", "done"]
