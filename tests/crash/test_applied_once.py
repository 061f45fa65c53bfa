"""The host dies at any moment of a request that acts: the client asks again, and it is carried out exactly once."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest

from holdfast.client._sync.host import Session
from holdfast.model import limits
from tests.support.home import HomeForTests, read_all, until, wait_fd
from tests.support.keeperline import KeeperLine
from tests.support.operators import acting_as, enrol, journal
from tests.support.soak import Rounds


def killing(hold: HomeForTests, after_s: float) -> threading.Thread:
    """The daemon is killed a moment from now."""
    pid = hold.daemon_pid()

    def kill() -> None:
        end = time.perf_counter() + after_s
        while time.perf_counter() < end:
            time.sleep(0)
        fd = os.pidfd_open(pid)
        os.kill(pid, signal.SIGKILL)
        wait_fd(fd)

    thread = threading.Thread(target=kill)
    thread.start()
    return thread


def has_all(session: Session, size: int) -> None:
    until(lambda: len(read_all(session)) >= size)


def exit_of(session: Session) -> Any:
    return until(lambda: session.status().exit)


def test_each_send_is_typed_exactly_once_whenever_the_host_dies(hold: HomeForTests, rounds: Rounds) -> None:
    session, rng = hold.run("cat", name="web", pipes=True), rounds.random
    times = rounds.count(5)
    for n in range(times):
        thread = killing(hold, rng.uniform(0, 0.006))
        try:
            done = session.send(f"line {n}\n")
        finally:
            thread.join()
        assert done["applied"] is True
    expected = b"".join(b"line %d\n" % n for n in range(times))
    has_all(session, len(expected))
    assert read_all(session) == expected
    sent = [e["text"] for e in journal(hold, "send")]
    assert sent == [f"line {n}\n" for n in range(times)]


def test_what_the_keeper_has_done_is_not_done_again(hold: HomeForTests) -> None:
    """Straight at the keeper: the same request twice, of one operator and of another."""
    session = hold.run("cat", name="web", pipes=True)
    with KeeperLine(hold.host.home, session.id, role="host") as host:
        who = {"operator": "op_a", "kind": "human", "name": "a"}
        for _ in range(2):
            done = host.act("input", data="YQo=", request="req_1", **{"as": who})["ok"]
        assert done["repeated"] is True
        other = {**who, "operator": "op_b"}
        assert "repeated" not in host.act("input", data="Ygo=", request="req_1", **{"as": other})["ok"]
        assert host.act("applied", of="req_1", **{"as": who})["ok"]["applied"]["epoch"] == done["epoch"]
        assert host.act("applied", of="req_2", **{"as": who})["ok"] == {"applied": None}
        late = host.act("input", data="Ywo=", request="req_3", by=time.monotonic() - 1, **{"as": who})
        assert late["error"]["code"] == "timeout"
        refused = host.act("input", data="%%", request="req_4", **{"as": who})
        assert "error" in refused
        assert host.act("applied", of="req_4", **{"as": who})["ok"] == {"applied": None}
    until(lambda: read_all(session) == b"a\nb\n")


def test_a_large_text_goes_on_where_the_dead_host_stopped(hold: HomeForTests, rounds: Rounds) -> None:
    session, rng = hold.run("cat", name="web", pipes=True), rounds.random
    times = rounds.count(1)
    text = b"".join(b"%09d\n" % n for n in range(3 * limits.INPUT_BYTES_MAX // 10))
    for n in range(times):
        thread = killing(hold, rng.uniform(0.001, 0.02))
        assert session.send(text)["applied"]
        thread.join()
        has_all(session, (n + 1) * len(text))
    assert read_all(session) == times * text
    assert hold.host.call("status", session=session.id)["controls"]["holder"] is None


def test_a_signal_and_a_takeover_happen_once_too(hold: HomeForTests, rounds: Rounds) -> None:
    session = hold.run("bash", "-c", "trap 'echo got' USR1; echo ready; while :; do sleep 0.05; done", name="web")
    session.wait(text="ready", start=0)
    enrol(hold, "bot", verbs=["view", "type", "request_control"], sessions=["web"])
    rng, times = rounds.random, rounds.count(1)
    for _ in range(times):
        thread = killing(hold, rng.uniform(0, 0.006))
        assert hold.host.call("kill", session="web", signal="USR1")["applied"]
        thread.join()
        with acting_as(hold, "bot") as agent:
            agent.session("web").take()
        thread = killing(hold, rng.uniform(0, 0.006))
        taken = session.take()
        thread.join()
        assert (taken["applied"], taken["controls"]["holder"]) == (True, hold.host.whoami()["id"])
        session.release()
    assert len(journal(hold, "signal")) == times
    assert len(journal(hold, "preempt")) == times


def test_what_ended_the_session_is_known_to_have_been_done(hold: HomeForTests, rounds: Rounds) -> None:
    rng = rounds.random
    for n in range(rounds.count(1)):
        session = hold.run("cat", name=f"end{n}", pipes=True)
        thread = killing(hold, rng.uniform(0, 0.006))
        assert hold.host.call("kill", session=session.id, signal="KILL")["applied"]
        thread.join()
        assert exit_of(session).signal == "SIGKILL"
        session = hold.run("sleep", "600", name=f"stop{n}")
        thread = killing(hold, rng.uniform(0, 0.006))
        session.stop(grace=0)
        thread.join()
        assert session.status().state == "exited"
        shell = hold.run("bash", "--norc", name=f"shell{n}")
        shell.wait(input=True)
        thread = killing(hold, rng.uniform(0, 0.02))
        assert shell.send("exit 7\r")["applied"]
        thread.join()
        assert exit_of(shell).code == 7


def test_a_retry_for_a_session_that_was_started_again_is_not_applied_to_it(hold: HomeForTests) -> None:
    session = hold.run("cat", name="web", pipes=True)
    session.restart()
    again = {"session": "web", "data": "YQo=", "request": "req_old", "asked_s_ago": 3600}
    with pytest.raises(Exception, match="whether it was done is not known"):
        hold.host.call("send", **again)
    assert read_all(session) == b""


def test_the_controls_are_given_up_and_handed_over_once_by_a_request_asked_again(hold: HomeForTests) -> None:
    session = hold.run("cat", name="web")
    enrol(hold, "bob", "human", verbs=["view", "type", "request_control"])
    session.take()
    release = {"session": "web", "request": "req_release"}
    assert hold.host.call("release", **release)["controls"]["holder"] is None
    session.take()
    again = hold.host.call("release", **release, asked_s_ago=0.0)
    assert again["repeated"]
    assert again["controls"]["holder"] is not None  # they were taken since, and stay so
    hand = {"session": "web", "to": "bob", "request": "req_hand"}
    assert hold.host.call("hand", **hand)["controls"]["name"] == "bob"
    assert hold.host.call("hand", **hand, asked_s_ago=0.0)["repeated"]
    kinds = [entry["kind"] for entry in journal(hold)]
    assert (kinds.count("release"), kinds.count("hand")) == (1, 1)
