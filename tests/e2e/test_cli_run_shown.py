"""What a stranger reads of a run that a dead worker left, or that failed: what is the matter, and what to type next."""

from __future__ import annotations

import pytest

from holdfast.client._sync.host import Host
from tests.support.home import HomeForTests

pytestmark = pytest.mark.home("file")


def test_a_step_in_doubt_is_shown_with_the_command_that_settles_it(hold: HomeForTests) -> None:
    run = hold("work", "begin", "--item", "2").out.strip()
    assert hold("step", "begin", run, "pay it:2", "--effect", "unsafe").code == 0
    assert hold("step", "fail", run, "pay it:2", "--unknown", "--error", "the line was lost").code == 0
    command = f"hold step settle {run} 'pay it:2' --done|--not-done --evidence TEXT"
    shown = hold("work", "status", run)
    assert shown.err == f"check the outcome of pay it:2, then: {command}\n"
    again = hold("step", "begin", run, "pay it:2", "--effect", "unsafe")
    assert (again.code, again.out, again.err) == (5, "in_doubt\n", f"already begun, outcome unknown: {command}\n")
    assert hold("step", "settle", run, "pay it:2", "--not-done", "--evidence", "no such payment").code == 0
    assert hold("work", "status", run).err == ""


def test_a_failed_run_says_why(hold: HomeForTests) -> None:
    with Host(str(hold.path)) as host:
        run = host.work.run(params={})
        run.fail({"error": "ValueError: the table is\nmissing", "traceback": "…"})
        run.close()
    rows = dict(line.split("\t", 1) for line in hold("work", "status", run.id).out.splitlines())
    assert (rows["state"], rows["failed with"]) == ("failed", "ValueError: the table is missing")
    by_hand = hold("work", "begin").out.strip()
    assert hold("work", "end", by_hand, "--failed").code == 0
    assert "failed with\tno reason given" in hold("work", "status", by_hand).out


def test_a_takeover_is_told_in_words(hold: HomeForTests) -> None:
    run = hold("work", "begin").out.strip()
    assert hold("step", "begin", run, "a", "--effect", "unsafe").code == 0
    with Host(str(hold.path)) as host:  # a worker takes over from a hand at once
        host.work.run(run=run, worker="second").close()
    told = [line for line in hold("history", run).out.splitlines() if "takeover" in line]
    assert len(told) == 1
    assert "in_doubt: a  worker: second" in told[0]


def test_a_run_where_a_session_is_asked_for_is_told_as_one(hold: HomeForTests) -> None:
    run = hold("work", "begin").out.strip()
    for command in ("replay", "status", "logs"):
        done = hold(command, run)
        assert done.code == 3
        assert (
            done.err == f"hold: '{run}' is a run, not a session; of a run: hold work status {run}, hold history {run}\n"
        )
