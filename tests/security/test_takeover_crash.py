"""The daemon dies at every point of a takeover: epochs never go back, there are never two holders, nothing is lost."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import pytest

from holdfast.client._io.blocking_socket import HostConnection, connect_socket
from holdfast.client._sync.host import Session
from holdfast.model.errors import HoldfastError
from tests.support.home import HomeForTests, until, wait_fd
from tests.support.operators import acting_as, enrol, journal

Json = dict[str, Any]


def controls(hold: HomeForTests, session: Session) -> Json:
    found: Json = hold.host.call("status", session=session.id)["controls"]
    return found


def kill(pid: int) -> None:
    fd = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    wait_fd(fd)


def check_history(hold: HomeForTests) -> None:
    """In the journal every epoch was given once, in order, each to one operator."""
    epochs = [e["epoch"] for e in journal(hold, "take", "preempt", "hand")]
    assert epochs == sorted(set(epochs))
    assert hold("journal", "verify").code == 0


@pytest.fixture
def contested(hold: HomeForTests) -> tuple[HomeForTests, Session, str, str]:
    """A session whose controls an agent holds, and a human about to take them."""
    session = hold.run("cat", name="web")
    bot = enrol(hold, "bot", verbs=["view", "type", "request_control"], sessions=["web"])
    with acting_as(hold, "bot") as agent:
        agent.session("web").take()
    return hold, session, bot["id"], hold.host.whoami()["id"]


def test_killed_before_it_has_read_the_request(contested: tuple[HomeForTests, Session, str, str]) -> None:
    hold, session, bot, _ = contested
    before = controls(hold, session)["epoch"]
    pid = hold.daemon_pid()
    wire = HostConnection(connect_socket(hold.host.home))
    os.kill(pid, signal.SIGSTOP)
    wire.send({"op": "take", "session": session.id})
    hold.host.close()
    kill(pid)
    with pytest.raises(OSError):  # noqa: PT011  (whatever a closed socket says)
        wire.receive()
    wire.close()
    after = controls(hold, session)
    assert (after["holder"], after["epoch"]) == (bot, before)
    assert hold.host.call("take", session=session.id)["controls"]["epoch"] == before + 1
    check_history(hold)


def test_killed_while_the_keeper_decides(contested: tuple[HomeForTests, Session, str, str]) -> None:
    hold, session, bot, human = contested
    before = controls(hold, session)["epoch"]
    pid, keeper = hold.daemon_pid(), hold.keeper_pid(session)
    os.kill(keeper, signal.SIGSTOP)
    try:
        wire = HostConnection(connect_socket(hold.host.home))
        wire.send({"op": "take", "session": session.id, "why": "in between"})
        for _ in range(3):  # once these are answered, the request before them is with the keeper
            hold.host.call("ping")
        hold.host.close()
        kill(pid)
        wire.close()
    finally:
        os.kill(keeper, signal.SIGCONT)
    after = controls(hold, session)
    assert after["holder"] in (bot, human)
    assert after["epoch"] == before + (after["holder"] == human)
    taken = hold.host.call("take", session=session.id)["controls"]
    assert (taken["holder"], taken["epoch"]) == (human, before + 1)
    check_history(hold)


def test_killed_at_any_moment_of_a_takeover(contested: tuple[HomeForTests, Session, str, str]) -> None:
    """The moments in between, by the clock: the daemon dies so many microseconds after the request was sent."""
    hold, session, bot, human = contested
    last = controls(hold, session)["epoch"]
    for step in range(12):
        pid = hold.daemon_pid()
        with acting_as(hold, "bot") as agent:
            if controls(hold, session)["holder"] != bot:
                hold.host.call("release", session=session.id)
                last = max(last, agent.call("take", session="web")["controls"]["epoch"])
        sent = HostConnection(connect_socket(hold.host.home))
        sent.sock.settimeout(30)
        sent.send({"op": "take", "session": session.id})
        _spin(step * 0.0007)
        hold.host.close()
        kill(pid)
        answered = _answer(sent)
        now = controls(hold, session)
        assert now["epoch"] >= last, "an epoch went back"
        assert now["holder"] in (bot, human)
        if answered is not None:  # acknowledged means that it is so, and that it is written down
            assert (now["holder"], now["epoch"]) == (human, answered["epoch"])
            assert answered["epoch"] in [e["epoch"] for e in journal(hold, "take", "preempt")]
        last = now["epoch"]
    check_history(hold)


def _spin(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def _answer(wire: HostConnection) -> Json | None:
    try:
        reply: Any = wire.receive()[0]
        controls: Json = reply["ok"]["controls"]
        return controls
    except OSError:
        return None
    finally:
        wire.close()


def test_two_humans_at_the_same_moment_have_one_winner(hold: HomeForTests) -> None:
    session = hold.run("cat", name="web")
    enrol(hold, "grace", "human", verbs=["view", "type", "request_control"], sessions=["web"])
    outcomes: list[tuple[str, str]] = []

    def take(name: str | None) -> None:
        with acting_as(hold, name) if name else hold.host as host:
            try:
                host.call("take", session="web")
                outcomes.append((name or "first", "took"))
            except HoldfastError as e:
                outcomes.append((name or "first", e.code))

    threads = [threading.Thread(target=take, args=(name,)) for name in ("grace", hold.host.whoami()["name"])]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    final = controls(hold, session)
    epochs = [e["epoch"] for e in until(lambda: journal(hold, "take", "preempt"), 30)]
    assert len(epochs) == len(set(epochs))
    assert final["epoch"] == max(epochs)
    assert "took" in [what for _, what in outcomes]
