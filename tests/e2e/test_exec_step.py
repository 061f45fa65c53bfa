"""Commands as steps: the intent before the command is typed, and its end asked of the session's host by whoever comes."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

import holdfast
from holdfast.client._sync.host import Host, Session
from tests.support.home import HOLD, HomeForTests, until

DEADLINE_S = 90


@pytest.fixture
def shell(hold: HomeForTests) -> Session:
    return hold.run(name="dev")


def step_of(host: Host, run: str, key: str = "build") -> dict:
    found = host.work.call("step_find", run=run, key=key)
    assert found is not None
    return dict(found)


def test_a_command_runs_once_as_a_step_and_gives_its_output_and_code_again(
    host: Host, hold: HomeForTests, shell: Session, tmp_path: Path
) -> None:
    run = hold("work", "begin").out.strip()
    words = [
        "exec",
        "dev",
        "--step",
        f"{run}:build",
        "--why",
        "it is due",
        "--",
        "sh",
        "-c",
        f"echo ran >> {tmp_path}/ran; echo out",
    ]
    first = hold(*words, timeout=DEADLINE_S)
    assert (first.code, first.out) == (0, "out\n"), first.err
    again = hold(*words, timeout=DEADLINE_S)
    assert (again.code, again.out) == (0, "out\n")
    assert "is already done; showing its recorded result" in again.err
    assert (tmp_path / "ran").read_text() == "ran\n"
    step = step_of(host, run)
    assert (step["state"], step["session"], step["result"]["exit_code"]) == ("done", shell.id, 0)
    assert step["result"]["output"] == "out\n"
    (used,) = host.work.status(run)["sessions"]
    assert (used["session"], used["generation"]) == (shell.id, 1)
    assert used["from_offset"] <= step["result"]["start"]
    other = hold("exec", "dev", "--step", f"{run}:build", "--json", "--", "true")
    assert (other.code, other.json["error"]["code"]) == (5, "conflict")


def test_a_failing_command_is_a_failed_step_with_its_code_and_may_be_tried_again(
    host: Host, hold: HomeForTests, shell: Session, tmp_path: Path
) -> None:
    run = hold("work", "begin").out.strip()
    words = ["exec", "dev", "--json", "--step", f"{run}:build", "--", f"test -e {tmp_path}/there || (exit 3)"]
    failed = hold(*words, timeout=DEADLINE_S)
    assert (failed.code, failed.json["exit_code"], failed.json["step"]["decision"]) == (3, 3, "execute")
    assert (step_of(host, run)["state"], step_of(host, run)["error"]) == ("failed", "exit code 3")
    (tmp_path / "there").touch()
    assert hold(*words, timeout=DEADLINE_S).code == 0
    assert (step_of(host, run)["state"], step_of(host, run)["tries"]) == ("done", 2)


def test_the_intent_is_in_the_run_before_the_command_runs(
    host: Host, hold: HomeForTests, shell: Session, tmp_path: Path
) -> None:
    run = hold("work", "begin").out.strip()
    env = f"HOLDFAST_HOME={hold.path}" + (
        f" HOLDFAST_STORE={hold.env['HOLDFAST_STORE']}" if "HOLDFAST_STORE" in hold.env else ""
    )
    look = f"{env} {' '.join(HOLD)} step ls {run} > {tmp_path}/seen"
    assert hold("exec", "dev", "--step", f"{run}:build", "--", look, timeout=DEADLINE_S).code == 0
    assert (tmp_path / "seen").read_text().startswith("build\topen\tunsafe\t1\texec in dev: ")


def begin_and_die(hold: HomeForTests, run: str, command: str, begun: Path) -> None:
    """`hold exec --step`, killed once its command runs."""
    words = [*HOLD, "exec", "dev", "--step", f"{run}:build", "--", command]
    with subprocess.Popen(words, env=hold.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as caller:
        try:
            until(begun.exists, timeout=DEADLINE_S)
        finally:
            caller.kill()


@pytest.mark.parametrize("code", [0, 4])
def test_a_step_whose_caller_died_is_settled_at_takeover_from_the_record_of_how_the_command_ended(
    host: Host, hold: HomeForTests, shell: Session, tmp_path: Path, code: int
) -> None:
    run = hold("work", "begin").out.strip()
    command = f"touch {tmp_path}/begun; until test -e {tmp_path}/go; do sleep 0.05; done; (exit {code})"
    begin_and_die(hold, run, command, tmp_path / "begun")
    step = step_of(host, run)
    (tmp_path / "go").touch()
    shell.exec_result(step["exec_id"], wait=True, timeout=DEADLINE_S)
    taken = host.work.run(run=run)
    assert taken.in_doubt == []
    step = step_of(host, run)
    assert step["state"] == ("settled" if code == 0 else "failed")
    assert f"exit code {code}, by the record of {step['exec_id']}" in step["evidence"]
    if code == 0:
        assert taken.exec("build", shell, command)["decision"] == "reuse"
    taken.close()


def test_a_command_that_still_runs_is_adopted_and_not_run_again(
    host: Host, hold: HomeForTests, shell: Session, tmp_path: Path
) -> None:
    run = hold("work", "begin").out.strip()
    command = f"echo x >> {tmp_path}/begun; until test -e {tmp_path}/go; do sleep 0.05; done; echo late"
    begin_and_die(hold, run, command, tmp_path / "begun")
    worker = host.work.run(run=run)
    assert worker.in_doubt == ["build"]
    busy = hold("step", "settle", run, "build", "--from-exec", "--json")
    assert (busy.code, busy.json["error"]["code"]) == (5, "busy")
    waited = worker.exec("build", shell, command, timeout=0.2)
    assert (waited["state"], waited["decision"]) == ("running", "adopt")
    hold.kill_daemon()  # it is not noticed
    (tmp_path / "go").touch()
    done = worker.exec("build", shell, command, timeout=DEADLINE_S)
    assert (done["exit_code"], done["output"]) == (0, "late\n")
    assert (tmp_path / "begun").read_text() == "x\n"
    assert step_of(host, run)["state"] == "settled"
    worker.finish()


def test_a_command_whose_end_nobody_saw_stays_in_doubt(
    host: Host, hold: HomeForTests, shell: Session, tmp_path: Path
) -> None:
    run = hold("work", "begin").out.strip()
    command = f"touch {tmp_path}/begun; sleep 1000"
    begin_and_die(hold, run, command, tmp_path / "begun")
    hold.host.call("ping")
    os.kill(hold.keeper_pid(shell), signal.SIGKILL)
    until(lambda: hold.host.call("status", session=shell.id)["state"] == "lost", timeout=DEADLINE_S)
    worker = host.work.run(run=run)
    assert worker.in_doubt == ["build"]
    with pytest.raises(holdfast.HoldfastError):
        worker.exec("build", shell, command)
    assert step_of(host, run)["state"] == "in_doubt"
    worker.close()
    told = hold("step", "settle", run, "build", "--from-exec", "--json")
    assert (told.code, told.json["error"]["code"]) == (5, "in_doubt")


def test_what_was_never_typed_is_known_not_to_have_happened_and_cannot_happen_later(
    host: Host, hold: HomeForTests, shell: Session, tmp_path: Path
) -> None:
    """The caller was paused between intent and command; meanwhile another one took over and looked."""
    run = hold("work", "begin").out.strip()
    words = [f"echo late >> {tmp_path}/ran"]
    plan = host.work.exec_begin(run, "build", shell.id, words)
    assert plan["decision"] == "execute"
    worker = host.work.run(run=run)
    assert worker.in_doubt == []
    assert step_of(host, run)["outcome"] == "not_done"
    with pytest.raises(holdfast.HoldfastError, match="called off"):
        host.work.exec_done(plan, words)
    assert worker.exec("build", shell, *words)["exit_code"] == 0
    assert (tmp_path / "ran").read_text() == "late\n"
    worker.finish()


def test_a_command_that_the_session_refuses_leaves_a_failed_step_and_no_doubt(host: Host, hold: HomeForTests) -> None:
    hold.run("cat", name="dev")
    run = hold("work", "begin").out.strip()
    refused = hold("exec", "dev", "--step", f"{run}:build", "--json", "--", "true", timeout=DEADLINE_S)
    assert (refused.code, refused.json["error"]["code"]) == (5, "busy")
    step = step_of(host, run)
    assert step["state"] == "failed"
    assert step["error"].startswith("not begun: no shell is at its prompt")
    assert host.work.status(run)["leased"] is False


def test_mistakes_are_told_in_one_line(hold: HomeForTests) -> None:
    hold.run(name="dev")
    for words, code in (
        (["exec", "dev", "--step", "norun", "--", "true"], 2),
        (["exec", "dev", "--step", "run_none:build", "--", "true"], 3),
        (["exec", "dev", "--effect", "none", "--", "true"], 2),
        (["exec", "dev", "--step", "r:k", "--effect", "perhaps", "--", "true"], 2),
    ):
        told = hold(*words)
        assert (told.code, told.err.count("\n")) == (code, 1), told.err
    run = hold("work", "begin").out.strip()
    assert hold("exec", "nosession", "--step", f"{run}:k", "--", "true").code == 3
    assert hold("step", "ls", run, "--json").json == []
    worker = hold.host.work.run(run=run)
    fenced = hold("exec", "dev", "--step", f"{run}:k", "--json", "--", "true")
    assert (fenced.code, fenced.json["error"]["code"]) == (5, "fenced")
    worker.finish()


def test_a_step_without_effect_is_written_once_with_its_result(host: Host, hold: HomeForTests, shell: Session) -> None:
    with host.work.run() as run:
        assert run.exec("look", shell, "echo seen", effect="none", timeout=DEADLINE_S)["output"] == "seen\n"
        assert run.exec("look", shell, "echo seen", effect="none")["decision"] == "reuse"
