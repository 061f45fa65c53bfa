"""Runner, backend and daemon killed in every order, at random moments of a project: each task is done once all the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.model.errors import HoldfastError
from tests.support.home import HomeForTests, until
from tests.support.runners import DEADLINE_S, Project, Runner
from tests.support.soak import Rounds

VICTIMS = ("runner", "backend", "daemon")
BACKEND_S = 10.0  # a backend that is to be killed is waited for so long
# A line when it begins, outside of the project; a line when it is done, unless an attempt that was killed between that
# line and its own end has left one: like any work that is tried again, it looks at what is there.
WORK = """
echo "$HOLDFAST_TASK $HOLDFAST_ATTEMPT" >> "$1"
sleep 0.$((RANDOM % 8 + 1))
grep -qsx "$HOLDFAST_TASK" done.log || echo "$HOLDFAST_TASK" >> done.log
"""
# One that never ends, with a child and a daemon of its own.
HANG = 'echo "$HOLDFAST_TASK $HOLDFAST_ATTEMPT" >> "$1"; (setsid sleep 1000 >/dev/null 2>&1 &); sleep 1000 & wait'


@pytest.fixture
def project(hold: HomeForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)
    made = Project(hold, tmp_path)
    yield made
    made.close()


class Trouble:
    """Kills, and always a runner that goes on."""

    def __init__(self, project: Project, chance: random.Random) -> None:
        self.project, self.chance = project, chance
        self.runner = self._new()
        self.killed: list[str] = []

    def _new(self) -> Runner:
        return self.project.runner("--parallel", "3", "--lease", "2s")

    def kill(self, victim: str) -> None:
        done = getattr(self, f"_kill_{victim}")()
        self.killed.append(victim if done else f"({victim})")

    def _kill_runner(self) -> bool:
        self.runner.kill()
        self.runner = self._new()
        return True

    def _kill_daemon(self) -> bool:
        try:
            self.project.hold.kill_daemon()
        except (HoldfastError, ProcessLookupError):
            return False  # it is just being started again
        return True

    def _kill_backend(self) -> bool:
        """The main program of one of the attempts that run now."""
        try:
            pids = until(self._backends, BACKEND_S)
        except AssertionError:
            return False  # a slow machine, or all is done
        time.sleep(self.chance.uniform(0, 0.3))  # the moment is the point: anywhere in its work
        try:
            os.kill(self.chance.choice(pids), signal.SIGKILL)
        except ProcessLookupError:
            return False  # it was quicker
        return True

    def _backends(self) -> list[int]:
        self.go_on()
        return [int(p) for p in os.listdir("/proc") if p.isdigit() and self._is_backend(int(p))]

    def _is_backend(self, pid: int) -> bool:
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return str(self.project.bin / "work").encode() in words

    def go_on(self) -> None:
        if self.runner.process.poll() is not None:
            self.runner = self._new()


def processes_of(task: str, home: Path) -> list[int]:
    """Whoever was started for a task, by the mark in its environment."""
    marks = {f"HOLDFAST_TASK={task}".encode(), f"HOLDFAST_HOME={home}".encode()}
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                if marks <= set(Path(f"/proc/{name}/environ").read_bytes().split(b"\0")):
                    found.append(int(name))
            except OSError:
                continue
    return found


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def test_killed_in_every_order_a_project_ends_with_every_task_done_once(project: Project, rounds: Rounds) -> None:
    chance = rounds.random
    orders = [chance.sample(VICTIMS, len(VICTIMS)) for _ in range(rounds.count(1))]
    tasks = 2 + 3 * len(orders)  # some are under way whenever one of them is killed
    begun = project.folder / "begun"
    project.backend("work", WORK, str(begun))
    project.backend("hang", HANG, str(begun))
    project.policy(retry={"attempts_max": 100, "stuck_after": 100}, backends=["work"], overlap="allow")
    ids = [str(n) for n in range(1, tasks + 1)]
    for n, id in enumerate(ids):
        after = chance.sample(ids[max(0, n - 5) : n], min(n, chance.randrange(3)))
        project.add(id, after=after, verification=[f"test $(grep -cx demo/{id} done.log) = 1"])
    project.add("unwanted", backend="hang", verification=["true"])
    trouble = Trouble(project, chance)
    cancel_at = chance.randrange(1, len(orders) * len(VICTIMS))
    for n, victim in enumerate(v for order in orders for v in order):
        time.sleep(chance.uniform(0, 0.5))  # the moment is the point: anywhere in an attempt, or between two
        trouble.kill(victim)
        if n == cancel_at:
            project.tasks.cancel("unwanted", project="demo", why="no longer wanted")
    print("killed:", " ".join(trouble.killed))  # noqa: T201

    def over() -> bool:
        trouble.go_on()
        counts = project.tasks.project("demo")["counts"]
        return bool(counts["done"] + counts["blocked"] >= tasks)

    try:
        until(over, timeout=2 * rounds.factor * DEADLINE_S, pause=0.2)
    except AssertionError:
        print(project.state())  # noqa: T201 - pytest shows it with a failure
        raise
    assert [project.status(id) for id in ids] == ["done"] * tasks
    assert sorted(lines(project.root / "done.log")) == sorted(f"demo/{id}" for id in ids)
    check_attempts(project, ids, lines(begun))
    assert project.status("unwanted") == "cancelled"
    until(lambda: not processes_of("demo/unwanted", project.hold.path), timeout=DEADLINE_S)
    trouble.runner.leave()


def check_attempts(project: Project, ids: list[str], begun: list[str]) -> None:
    """None was lost, none was begun twice, and only the last one of each is done."""
    assert len(begun) == len(set(begun)), begun
    recorded = set()
    for id in ids:
        attempts = project.show(id)["attempts"]
        assert [a["n"] for a in attempts] == list(range(1, len(attempts) + 1))
        assert [a["outcome"] for a in attempts] == ["failed"] * (len(attempts) - 1) + ["done"]
        assert all(a["classification"] for a in attempts[:-1])
        assert all(a["changes"] is not None for a in attempts)
        recorded |= {f"demo/{id} {a['n']}" for a in attempts}
    assert {line for line in begun if "unwanted" not in line} <= recorded


def test_a_runner_that_dies_before_or_after_any_of_its_calls_is_gone_on_with(project: Project, rounds: Rounds) -> None:
    chance = rounds.random
    begun = project.folder / "begun"
    project.backend(
        "work", 'echo "$HOLDFAST_TASK $HOLDFAST_ATTEMPT" >> "$1"; echo "$HOLDFAST_TASK" >> done.log', str(begun)
    )
    project.policy(backends=["work"])
    ids = [str(n) for n in range(1, rounds.count(2) + 1)]
    for id in ids:
        project.add(id, verification=[f"test $(grep -cx demo/{id} done.log) = 1"])
    deaths: list[int] = []
    deadline = time.monotonic() + rounds.factor * DEADLINE_S
    while project.tasks.project("demo")["counts"]["done"] < len(ids):
        assert time.monotonic() < deadline, deaths
        last = chance.randrange(4, 90)
        done = mortal(project, str(last))
        blocked = [project.show(t["task_id"]) for t in project.tasks.ls(status="blocked", project="demo")]
        assert not blocked, (
            deaths,
            [(t["task_id"], t["why"], t["classification"]) for t in blocked],
            done.stderr.decode(),
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
        deaths.append(last)
    print("died at:", *deaths)  # noqa: T201
    assert sorted(lines(project.root / "done.log")) == sorted(f"demo/{id}" for id in ids)
    check_attempts(project, ids, lines(begun))
    assert all(len(project.show(id)["attempts"]) == 1 for id in ids)  # nobody killed a backend: none was tried twice


def mortal(project: Project, last: str) -> subprocess.CompletedProcess[bytes]:
    options = {"once": True, "lease": 1.0, "project": "demo"}  # short: the next one waits for it to run out
    words = [sys.executable, "-m", "tests.support.mortal_runner", last, json.dumps(options)]
    return subprocess.run(
        words, env=project.hold.env, cwd=Path(__file__).parents[2], capture_output=True, timeout=DEADLINE_S, check=False
    )


def test_a_runner_that_dies_as_its_session_has_just_started_leaves_the_next_one_that_session(project: Project) -> None:
    begun = project.folder / "begun"
    project.backend(
        "work", 'echo "$HOLDFAST_TASK $HOLDFAST_ATTEMPT" >> "$1"; echo "$HOLDFAST_TASK" >> done.log', str(begun)
    )
    project.policy(backends=["work"])
    project.add("1", verification=["test $(grep -cx demo/1 done.log) = 1"])
    assert (
        mortal(project, "run").returncode == -signal.SIGKILL
    )  # the intent is written, the session runs, nobody knows it
    until(lambda: lines(project.root / "done.log"), timeout=DEADLINE_S)
    assert mortal(project, "run").returncode == -signal.SIGKILL  # it was asked for again, or it is the verification's
    assert mortal(project, "none").returncode == 0
    assert lines(begun) == ["demo/1 1"]
    assert project.status() == "done"
