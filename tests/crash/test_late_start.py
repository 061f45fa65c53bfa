"""A start that hangs longer than anybody waits for it: it never runs unknown, never twice, and can be called off."""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.errors import HoldfastError
from tests.crash.test_spare import setup_child, the_spare
from tests.support.deadfuse import dead_folder
from tests.support.home import HomeForTests, alive, until

DEADLINE_S = 60.0
Json = dict[str, Any]


@pytest.fixture
def hung(hold: HomeForTests) -> Iterator[int]:
    """The child that will become the next program, stopped; it goes on at the end of the test."""
    child = setup_child(the_spare(hold))
    os.kill(child, signal.SIGSTOP)
    yield child
    go_on(child)


def go_on(child: int) -> None:
    try:
        os.kill(child, signal.SIGCONT)
    except ProcessLookupError:
        pass


def asked(hold: HomeForTests, *command: str, **options: Any) -> Callable[[], Json]:
    """A start that can be asked for again and again as one request."""
    env = {"HOLDFAST_HOME": str(hold.path), "PATH": os.environ["PATH"], "HOME": os.environ["HOME"]}
    given: Json = {"name": "late", "cwd": str(hold.path.parent), "env": env, **options}
    request = {"command": list(command), "request": "req_late", "size": [80, 24], **given}
    return lambda: dict(hold.host.call("run", **request))


def refused(start: Callable[[], Json]) -> str:
    """Ask, and be told that it may still start; the id it would have."""
    with pytest.raises(HoldfastError) as told:
        start()
    assert (told.value.code, "may still start" in told.value.hint) == ("timeout", True)
    return next(word.strip(":,") for word in told.value.hint.split() if word.startswith("ses_"))


def known(hold: HomeForTests) -> Json:
    (found,) = [s for s in hold.host.call("ls", all=True) if s["name"] == "late"]
    return dict(found)


def test_a_start_that_was_refused_as_late_is_found_when_it_happens_and_happens_once(
    hold: HomeForTests, hung: int
) -> None:
    start = asked(hold, "sh", "-c", "echo begun >> marks; exec sleep 1000")
    session = refused(start)
    assert refused(start) == session
    seen = known(hold)
    assert (seen["id"], seen["state"], seen["pid"], seen["activity"]["kind"]) == (session, "live", None, "unknown")
    assert "hangs" in seen["activity"]["evidence"]
    go_on(hung)
    until(lambda: known(hold)["pid"] == hung, timeout=DEADLINE_S)
    assert start()["id"] == session
    until(lambda: Path("/proc", str(hung), "comm").read_text() == "sleep\n", timeout=DEADLINE_S)
    assert (hold.path.parent / "marks").read_text() == "begun\n"
    assert [s["id"] for s in hold.host.call("ls", all=True)] == [session]
    entries = [e for e in hold("timeline", "late", "--json").json if e["kind"] == "start"]
    assert len(entries) == 1


def test_a_late_start_can_be_stopped_and_then_never_runs(hold: HomeForTests, hung: int) -> None:
    session = refused(asked(hold, "touch", "begun"))
    hold.host.call("stop", session=session)
    assert not alive(hung)
    assert known(hold)["state"] == "exited"
    assert not (hold.path.parent / "begun").exists()


def test_a_late_start_that_fails_in_the_end_says_why(hold: HomeForTests, hung: int) -> None:
    folder = hold.path.parent / "folder"
    folder.mkdir()
    refused(asked(hold, "sleep", "1000", cwd=str(folder)))
    folder.rmdir()
    go_on(hung)
    found = until(lambda: (s := known(hold))["state"] != "live" and s, timeout=DEADLINE_S)
    assert (found["state"], found["exit"]["code"]) == ("exited", 126)
    assert "cannot enter" in found["activity"]["evidence"]


def test_a_late_start_is_found_by_the_next_host(hold: HomeForTests, hung: int) -> None:
    session = refused(asked(hold, "sleep", "1000"))
    hold.kill_daemon()
    assert known(hold)["state"] == "live"
    go_on(hung)
    until(lambda: known(hold)["pid"] == hung, timeout=DEADLINE_S)
    assert known(hold)["id"] == session


def test_a_late_start_that_a_former_host_was_asked_for_can_be_stopped(hold: HomeForTests, tmp_path: Path) -> None:
    folder = dead_folder(tmp_path / "dead")
    try:
        refused(asked(hold, "touch", str(tmp_path / "begun"), cwd=str(folder.path)))
        hold.kill_daemon()
        hold.host.call("stop", session="late")
        assert known(hold)["state"] != "live"
    finally:
        folder.answer()
        folder.close()
    assert not (tmp_path / "begun").exists()


def test_a_late_start_is_watched_for_idleness_like_any_other(hold: HomeForTests, hung: int) -> None:
    refused(asked(hold, "bash", "--norc", "--noprofile", idle_ttl="1s"))
    go_on(hung)
    until(lambda: known(hold)["state"] == "reaped", timeout=DEADLINE_S)


@pytest.mark.parametrize("error", [0, errno.EIO])
def test_a_folder_that_answers_a_minute_later_never_leads_to_a_program_nobody_knows(
    hold: HomeForTests, tmp_path: Path, error: int
) -> None:
    folder = dead_folder(tmp_path / "dead")
    try:
        session = refused(asked(hold, "sleep", "1000", cwd=str(folder.path)))
        assert folder.entered.is_set()
        assert known(hold)["state"] == "live"
        works = hold.run("true")
        assert works.wait(exit=True, timeout=DEADLINE_S).event == "exit"
        folder.answer(error)
        if error:
            until(lambda: known(hold)["state"] == "exited", timeout=DEADLINE_S)
        else:
            until(lambda: known(hold)["pid"], timeout=DEADLINE_S)
        assert known(hold)["id"] == session
        hold.host.call("stop", session=session, grace_s=0)
    finally:
        folder.close()


def test_a_restart_that_hangs_goes_on_by_itself(hold: HomeForTests) -> None:
    session = hold.run("sleep", "1000", name="late")
    first = session.status().pid
    hung = setup_child(the_spare(hold))
    os.kill(hung, signal.SIGSTOP)
    try:
        with pytest.raises(HoldfastError) as told:
            session.restart()
        assert "may still start" in told.value.hint
    finally:
        go_on(hung)
    found = until(lambda: (s := known(hold))["pid"] and s, timeout=DEADLINE_S)
    assert (found["id"], found["generation"], found["pid"]) == (session.id, 2, hung)
    assert first is not None
    assert not alive(first)
