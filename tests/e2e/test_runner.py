"""`hold work run`: real runners, backends that are scripts, sessions that outlive them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.home import HOLD, HomeForTests, alive, until
from tests.support.needs import program
from tests.support.postgres import Server
from tests.support.runners import DEADLINE_S, Project

pytestmark = pytest.mark.usefixtures("_own_store")


@pytest.fixture
def _own_store(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)


@pytest.fixture
def project(hold: HomeForTests, tmp_path: Path) -> Iterator[Project]:
    made = Project(hold, tmp_path)
    yield made
    made.close()


def test_the_first_agent_fails_and_the_second_is_given_everything_and_finishes(project: Project) -> None:
    project.script(
        "claude",
        'cat > claude.prompt; echo "$*" > claude.words; echo "FAILED test_sum.py::test_adds - assert 0"; exit 1',
    )
    project.script(
        "codex",
        (
            'cat > codex.prompt; echo "$*" > codex.words; cp "$HOLDFAST_CONTRACT" contract.copy; cmp -s "$HOLDFAST_BRIEF" codex.prompt || exit 9\n'
            'echo "$HOLDFAST_TASK $HOLDFAST_ATTEMPT $HOLDFAST_PROJECT_ROOT $HOLDFAST_RUN" > env.copy; echo fixed > sum.py\n'
        ),
    )
    project.policy(backends=["claude", "codex"])
    project.add(
        "1", goal="the sums are right", constraints=["no new dependency"], verification=["grep -q fixed sum.py"]
    )
    runner = project.run_once()
    assert runner.process.returncode == 0, (runner.events, runner.errors.read_text())
    shown = project.show()
    assert shown["status"] == "done"
    assert [(a["backend"], a["outcome"]) for a in shown["attempts"]] == [("claude", "failed"), ("codex", "done")]
    first = shown["attempts"][0]["classification"]
    assert (first["failure_type"], first["convergence"]) == ("verification_failed", "first")
    prompt = (project.root / "codex.prompt").read_text()
    for part in (
        "the sums are right",
        "no new dependency",
        "grep -q fixed sum.py",
        "Attempt 1 by claude: failed",
        f"{first['failure_type']} (first)",
        first["failure_detail"],
        first["suggested_focus"],
        "claude.prompt",
    ):
        assert part in prompt, (part, prompt)
    contract = json.loads((project.root / "contract.copy").read_text())
    assert (contract["goal"], contract["verification"][0]["command"]) == ("the sums are right", "grep -q fixed sum.py")
    assert (project.root / "env.copy").read_text().split() == [
        "demo/1",
        "2",
        str(project.root),
        shown["attempts"][1]["run_id"],
    ]
    assert (project.root / "claude.words").read_text().split()[0] == "-p"
    assert (project.root / "codex.words").read_text().split()[0] == "exec"
    assert not list((project.hold.path / "attempts").iterdir())  # its files went with it


def test_an_agent_that_is_not_there_is_classified_and_the_next_one_tried(project: Project) -> None:
    project.script("codex", "echo x > made.txt")
    project.policy(backends=["claude", "codex"])
    project.add("1", verification=["test -e made.txt"])
    project.run_once()
    shown = project.show()
    found = shown["attempts"][0]["classification"]
    assert (found["failure_type"], found["failure_detail"]) == ("missing_tool", "claude: no such program on PATH")
    assert shown["status"] == "done"


def test_time_without_changes_is_no_progress_and_with_changes_they_are_kept_and_verified(project: Project) -> None:
    project.backend("idle", "exec sleep 1000")
    project.backend("slow", "echo x > made.txt; exec sleep 1000")
    project.policy(retry={"attempts_max": 1})
    project.add("1", verification=["true"], backend="idle", timeout_s=1)
    project.add("2", verification=["test -e made.txt"], backend="slow", timeout_s=3)
    project.run_once()
    blocked = project.show("1")
    assert (blocked["status"], blocked["classification"]["failure_type"]) == ("blocked", "no_progress")
    done = project.show("2")
    assert done["status"] == "done", done
    assert [c["path"] for c in done["attempts"][0]["changes"]["created"]] == ["made.txt"]


def test_the_same_failure_three_times_is_stuck_and_blocks_with_its_report_although_attempts_are_left(
    project: Project,
) -> None:
    project.backend("same", 'echo "FAILED t.py::test_a - assert $RANDOM"; exit 1')
    project.policy(retry={"attempts_max": 9, "stuck_after": 3}, backends=["same"])
    project.add("1", verification=["true"])
    runner = project.run_once()
    assert runner.process.returncode == 1
    report = project.show()
    assert (report["status"], report["attempt_count"]) == ("blocked", 3)
    assert [a["classification"]["convergence"] for a in report["attempts"]] == ["first", "steady", "stuck"]
    assert report["classification"]["failing"] == ["t.py::test_a"]


def test_after_a_person_unblocked_it_a_stuck_task_has_all_its_attempts_again(project: Project) -> None:
    project.backend("same", 'echo "FAILED t.py::test_a - no"; exit 1')
    project.policy(retry={"attempts_max": 9, "stuck_after": 2}, backends=["same"])
    project.add("1", verification=["true"])
    project.run_once()
    assert project.status() == "blocked"
    project.tasks.unblock("1", project="demo", why="try once more")
    project.run_once()
    told = [a["classification"]["convergence"] for a in project.show()["attempts"]]
    assert told == ["first", "stuck", "first", "stuck"]


def test_a_failing_set_that_shrinks_converges_until_it_is_done(project: Project) -> None:
    project.backend("better", "n=$(($(cat left 2>/dev/null || echo 5) - 2)); echo $n > left")
    project.script(
        "check", 'n=$(cat left); for i in $(seq "$n"); do echo "FAILED t.py::test_$i - no"; done; [ "$n" -le 0 ]'
    )
    project.policy(retry={"attempts_max": 9}, backends=["better"])
    project.add("1", verification=["check"])
    project.run_once()
    shown = project.show()
    assert shown["status"] == "done"
    told = [(len(a["classification"]["failing"]), a["classification"]["convergence"]) for a in shown["attempts"][:-1]]
    assert told == [(3, "first"), (1, "converging")]


GATED = 'echo begun $$ >> begun; while [ ! -e "$1" ]; do sleep 0.05; done; echo "$HOLDFAST_TASK" >> finished'


def gated(project: Project, *ids: str) -> None:
    project.backend("gated", GATED, str(project.folder / "go"))
    project.policy(backends=["gated"])
    for id in ids:
        project.add(id, verification=[f"grep -q {project.name}/{id} finished"])


def lines(project: Project, name: str) -> list[str]:
    try:
        return (project.root / name).read_text().splitlines()
    except FileNotFoundError:
        return []


def test_a_runner_dies_and_its_standby_adopts_the_very_process(project: Project) -> None:
    gated(project, "1")
    first = project.runner()
    pid = first.saw("started")["pid"]
    standby = project.runner()
    standby.saw("ready")
    first.kill()
    adopted = standby.saw("adopted")
    assert adopted["pid"] == pid
    assert alive(pid)
    (project.folder / "go").touch()
    shown = project.wait("done")
    assert lines(project, "begun") == [f"begun {pid}"]  # no second copy
    assert lines(project, "finished") == ["demo/1"]
    assert shown["attempt_count"] == 1


def test_a_backend_that_ended_while_no_runner_was_there_is_judged_by_its_record(project: Project) -> None:
    gated(project, "1")
    first = project.runner()
    pid = first.saw("started")["pid"]
    first.kill()
    (project.folder / "go").touch()
    until(lambda: not alive(pid), timeout=DEADLINE_S)
    second = project.run_once()
    assert second.saw("exited")["how"] == "exit code 0"
    assert project.status() == "done"
    assert lines(project, "begun") == [f"begun {pid}"]
    assert [c["path"] for c in project.show()["attempts"][0]["changes"]["created"]] == ["begun", "finished"]


def test_a_runner_that_is_asked_to_stop_gives_its_task_back_and_the_session_goes_on(project: Project) -> None:
    gated(project, "1")
    first = project.runner("--lease", "1h")
    pid = first.saw("started")["pid"]
    assert first.leave() == 0
    assert first.names()[-2:] == ["left", "stopped"]
    assert alive(pid)
    second = project.runner("--lease", "1h")
    assert second.saw("adopted")["pid"] == pid  # at once: an hour's lease was given back
    (project.folder / "go").touch()
    project.wait("done")


def test_a_paused_tasks_session_goes_on_and_is_adopted_when_somebody_unblocks_it(project: Project) -> None:
    gated(project, "1")
    runner = project.runner()
    pid = runner.saw("started")["pid"]
    project.tasks.pause("1", project="demo")
    runner.saw("dropped")
    assert alive(pid)
    project.tasks.unblock("1", project="demo", why="go on")
    assert runner.saw("adopted")["pid"] == pid
    (project.folder / "go").touch()
    project.wait("done")
    assert lines(project, "begun") == [f"begun {pid}"]


def test_cancelling_ends_the_whole_tree_and_keeps_the_evidence(project: Project) -> None:
    text = "echo half > half.txt; (setsid sleep 1000 >/dev/null 2>&1 & echo $! > daemon); sleep 1000 & echo $! > child; wait"
    project.backend("forker", text)
    project.policy(backends=["forker"])
    project.add("1", verification=["true"])
    runner = project.runner()
    pid = runner.saw("started")["pid"]
    until(lambda: lines(project, "child"), timeout=DEADLINE_S)
    pids = [pid, int(lines(project, "daemon")[0]), int(lines(project, "child")[0])]
    assert all(map(alive, pids))
    assert project.hold("task", "cancel", "1").code == 0
    until(lambda: not any(map(alive, pids)), timeout=DEADLINE_S)
    runner.saw("cancelled")
    attempt = project.show()["attempts"][0]
    assert (project.status(), attempt["outcome"]) == ("cancelled", "cancelled")
    assert [c["path"] for c in attempt["changes"]["created"]] == ["child", "daemon", "half.txt"]
    patch = project.hold("task", "changes", "1", "--patch")
    assert "+half" in patch.out


def test_a_task_cancelled_while_no_runner_lives_leaves_no_process_and_its_changes_are_told(project: Project) -> None:
    gated(project, "1")
    first = project.runner()
    pid = first.saw("started")["pid"]
    until(lambda: lines(project, "begun"), timeout=DEADLINE_S)
    first.kill()
    assert project.hold("task", "cancel", "1").code == 0
    until(lambda: not alive(pid), timeout=DEADLINE_S)
    assert [c["path"] for c in project.hold("task", "changes", "1", "--json").json["created"]] == ["begun"]
    project.run_once()
    assert [c["path"] for c in project.show()["attempts"][0]["changes"]["created"]] == ["begun"]
    assert not list((project.hold.path / "attempts").iterdir())


def test_what_a_backend_leaves_running_ends_with_its_attempt(project: Project) -> None:
    project.backend("server", "sleep 1000 >/dev/null 2>&1 & echo $! > server.pid; exit 0")
    project.policy(backends=["server"])
    project.add("1", verification=['! kill -0 "$(cat server.pid)"'])
    project.run_once()
    assert project.status() == "done", project.show()
    assert not alive(int(lines(project, "server.pid")[0]))


def test_two_tasks_run_at_once_and_a_dependent_one_waits(project: Project) -> None:
    project.backend(
        "pair",
        'touch "at-$1"; case $1 in demo/1) o=2;; demo/2) o=1;; *) [ -e met ]; exit;; esac\n'
        'until [ -e "at-demo/$o" ]; do sleep 0.05; done; touch met',
        "{task}",
    )
    (project.root / "at-demo").mkdir()
    project.policy(backends=["pair"])
    project.add("1", scope=["at-demo/1"])
    project.add("2", scope=["at-demo/2"])
    project.add("3", after=["1", "2"])
    runner = project.run_once("--parallel", "2")
    assert runner.process.returncode == 0, runner.events
    assert [project.status(id) for id in "123"] == ["done"] * 3


def test_a_backend_that_asks_is_told_and_goes_on_with_the_answer(project: Project) -> None:
    project.backend(
        "asker", f'exec {" ".join(HOLD)} ask "which port?" --session "$HOLDFAST_SESSION" --wait 90 > answer.txt'
    )
    project.policy(backends=["asker"])
    project.add("1", verification=["grep -q 8080 answer.txt"])
    runner = project.runner("--once")
    asked = runner.saw("asks")
    assert asked["text"] == "which port?"
    assert project.hold("answer", asked["ask"], "8080").code == 0
    assert runner.wait() == 0
    assert project.status() == "done"


def test_a_contract_that_changes_meanwhile_is_the_one_that_is_verified(project: Project) -> None:
    gated(project, "1")
    runner = project.runner()
    runner.saw("started")
    project.tasks.edit("1", {"verification": ["test -e extra.txt"]}, project="demo", why="more was wanted")
    (project.root / "extra.txt").touch()
    (project.folder / "go").touch()
    shown = project.wait("done")
    assert shown["attempts"][0]["verification"]["contract_version"] == 2
    assert [r["command"] for r in shown["attempts"][0]["verification"]["results"]] == ["test -e extra.txt"]


def test_files_that_were_made_and_not_registered_are_orphans_to_adopt_or_discard(project: Project) -> None:
    project.backend("maker", "mkdir -p out; echo r > out/report.txt; echo j > junk.txt; echo k > keep.txt")
    project.policy(backends=["maker"])
    project.add("1", artifacts=["out/report.txt"], verification=["test -e out/report.txt"])
    project.run_once()
    hold = project.hold
    assert {o["path"] for o in hold("artifact", "orphans", "--json").json} == {"junk.txt", "keep.txt"}
    assert hold("task", "changes", "1", "--json").json["orphans"] == ["junk.txt", "keep.txt"]
    assert hold("artifact", "adopt", "1", "keep.txt").code == 0
    refused = hold("artifact", "discard", "1", "junk.txt")
    assert (refused.code, "--yes" in refused.err, (project.root / "junk.txt").exists()) == (2, True, True)
    assert hold("artifact", "discard", "1", "junk.txt", "--yes").code == 0
    assert not (project.root / "junk.txt").exists()
    assert hold("artifact", "orphans", "--json").json == []
    run = project.show()["attempts"][0]["run_id"]
    assert hold("artifact", "get", run, "keep.txt").out == "k\n"
    assert (project.root / "keep.txt").exists()


def test_changes_are_listed_with_hashes_and_as_a_patch(project: Project) -> None:
    (project.root / "a.txt").write_text("one\n")
    (project.root / "gone.txt").write_text("old\n")
    project.backend("editor", "echo two >> a.txt; rm gone.txt; printf 'new\\n' > new.txt")
    project.policy(backends=["editor"])
    project.add("1")
    project.run_once()
    told = project.hold("task", "changes", "1", "--json").json
    assert {k: [c["path"] for c in told[k]] for k in ("created", "changed", "deleted")} == {
        "created": ["new.txt"],
        "changed": ["a.txt"],
        "deleted": ["gone.txt"],
    }
    assert len(told["changed"][0]["before"]) == len(told["changed"][0]["after"]) == 64
    copy = project.folder / "copy"
    copy.mkdir()
    (copy / "a.txt").write_text("one\n")
    (copy / "gone.txt").write_text("old\n")
    patch = project.hold("task", "changes", "1", "--patch").raw
    subprocess.run([program("git"), "apply", "-"], cwd=copy, input=patch, check=True, timeout=60)
    assert sorted(os.listdir(copy)) == ["a.txt", "new.txt"]
    assert (copy / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (["work", "run", "--project", "nope"], 3, "no project 'nope'"),
        (["work", "run", "--parallel", "0"], 2, "--parallel must be from 1 to 64"),
        (["work", "run", "--lease", "0s"], 2, "--lease must be greater than 0"),
        (["task", "changes", "77"], 3, "no task '77'"),
        (["task", "changes", "1"], 3, "no attempt yet"),
        (["artifact", "adopt", "1", "x"], 3, "no orphan"),
        (["artifact", "discard"], 2, "needs a TASK"),
    ],
)
def test_bad_input_is_one_clear_line(project: Project, words: list[str], code: int, part: str) -> None:
    project.add("1")
    told = project.hold(*words)
    assert (told.code, told.err.count("\n")) == (code, 1), told.err
    assert part in told.err


def test_a_backend_on_a_terminal_has_one_and_acts_as_the_operator_it_was_given(project: Project) -> None:
    robot = project.hold("operator", "add", "robot", "--kind", "agent", "--json").json["id"]
    project.backend("screen", f"[ -t 0 ] && {' '.join(HOLD)} operator whoami --json > who.json", terminal=True)
    project.policy(backends=["screen"])
    project.add("1", verification=["test -s who.json"])
    project.run_once("--as", "robot")
    assert project.status() == "done", project.show()
    assert robot in (project.root / "who.json").read_text()


def on_postgres(hold: HomeForTests, postgres: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    hold.env["HOLDFAST_STORE"] = postgres.url()
    monkeypatch.setenv("HOLDFAST_STORE", hold.env["HOLDFAST_STORE"])


def test_with_the_work_in_postgresql_a_standby_adopts_the_process_too(
    hold: HomeForTests, tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_postgres(hold, postgres, monkeypatch)
    project = Project(hold, tmp_path)
    try:
        gated(project, "1")
        first = project.runner()
        pid = first.saw("started")["pid"]
        first.kill()
        second = project.runner()
        assert second.saw("adopted")["pid"] == pid
        (project.folder / "go").touch()
        project.wait("done")
        assert lines(project, "begun") == [f"begun {pid}"]
        assert {o["path"] for o in hold("artifact", "orphans", "--json").json} == {"begun", "finished"}
    finally:
        project.close()


def test_a_session_on_another_host_is_not_started_a_second_time_here(
    hold: HomeForTests, tmp_path: Path, postgres: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_postgres(hold, postgres, monkeypatch)
    project, elsewhere = Project(hold, tmp_path), HomeForTests(tmp_path / "other")
    try:
        gated(project, "1")
        first = project.runner()
        pid = first.saw("started")["pid"]
        until(lambda: lines(project, "begun"), timeout=DEADLINE_S)
        first.kill()
        hold.env["HOLDFAST_HOME"] = str(elsewhere.path)
        second = project.runner()
        assert "another host" in second.saw("blocked")["failure_detail"]
        report = project.show()
        assert (report["status"], report["classification"]["failure_type"]) == ("blocked", "in_doubt")
        assert lines(project, "begun") == [f"begun {pid}"]
        assert alive(pid)
        second.leave()
        hold.env["HOLDFAST_HOME"] = str(hold.path)
        project.tasks.unblock("1", project="demo", why="go on where it is")
        assert project.runner().saw("adopted")["pid"] == pid
        (project.folder / "go").touch()
        project.wait("done")
    finally:
        project.close()
        elsewhere.close()


def test_the_example_of_a_backend_does_a_task(project: Project) -> None:
    example = Path(__file__).parents[2] / "docs" / "examples" / "backend.py"
    added = project.hold("backend", "add", "writer", "--", sys.executable, str(example))
    assert added.code == 0, added.err
    project.policy(backends=["writer"])
    project.add("1", goal="say hello", artifacts=["docs/hello.md"], verification=["grep -q 'say hello' docs/hello.md"])
    project.run_once()
    assert project.status() == "done", project.show()
    assert project.hold("artifact", "orphans", "--json").json == []


def test_progress_is_shown_to_people_on_stderr(project: Project) -> None:
    project.backend("quick", "touch made.txt")
    project.policy(backends=["quick"])
    project.add("1", verification=["test -e made.txt"])
    told = subprocess.run(
        [*HOLD, "work", "run", "--once"],
        env=project.hold.env,
        cwd=project.root,
        capture_output=True,
        timeout=DEADLINE_S,
        check=False,
    )
    said = told.stderr.decode()
    assert told.stdout == b""
    for part in ("demo/1: attempt 1 by quick", "runs as demo.1-1", "1 created", "verification passed", "demo/1: done"):
        assert part in said, (part, said)
