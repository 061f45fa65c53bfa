"""A host that is killed between an effect and its entry: the next one writes the entry, from what lies on disk.

The moment is made certain by holding the ledger's write lock: what the host does goes on, what it writes down waits.
"""

from __future__ import annotations

import contextlib
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

from holdfast.wire import host_requests
from tests.support.home import HOLD, HomeForTests, until
from tests.support.operators import enrol, journal

WAIT_S = 60


@contextlib.contextmanager
def unwritable(hold: HomeForTests) -> Iterator[None]:
    db = sqlite3.connect(hold.path / "host.db", isolation_level=None, timeout=WAIT_S)
    try:
        db.execute("BEGIN IMMEDIATE")
        yield
    finally:
        db.close()


def begin(hold: HomeForTests, *words: str, operator: str = "") -> subprocess.Popen[bytes]:
    env = {**hold.env, **({"HOLDFAST_OPERATOR": operator} if operator else {})}
    return subprocess.Popen(
        [*HOLD, *words], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def killed_in_between(hold: HomeForTests, effect: Path, *words: str, operator: str = "") -> None:
    """Do something, see its effect, and kill the host while its entry waits for the disk; whoever asked is gone too."""
    with unwritable(hold):
        asking = begin(hold, *words, operator=operator)
        try:
            until(effect.exists, WAIT_S)
        finally:
            asking.kill()  # first: it would start the next host at once
            asking.wait()
        hold.kill_daemon()


def test_a_start_and_a_restart_are_told_by_the_next_host(hold: HomeForTests, tmp_path: Path) -> None:
    hold.run("sleep", "600")
    enrol(hold, "bot")
    effect = tmp_path / "effect"
    words = ["run", "-d", "-n", "made", "--why", "to try", "--", "sh", "-c", f"touch {effect}; sleep 600"]
    killed_in_between(hold, effect, *words, operator="bot")
    entry = next(e for e in journal(hold, "start") if e["session_name"] == "made")
    assert (entry["name"], entry["why"], entry["late"], entry["command"][0]) == ("bot", "to try", True, "sh")
    hold.host.session("made").stop(0)
    effect.unlink()
    killed_in_between(hold, effect, "restart", "made")
    (again,) = journal(hold, "restart")
    assert (again["operator_kind"], again["generation"], again["late"]) == ("human", 2, True)
    hold.kill_daemon()
    assert len(journal(hold, "restart")) == 1  # told once, however often a host dies
    assert len([e for e in journal(hold, "start") if e["session_name"] == "made"]) == 1
    assert hold("journal", "verify").code == 0


def test_a_command_is_told_by_the_next_host(hold: HomeForTests, tmp_path: Path) -> None:
    shell = hold.run("bash", "--norc", name="sh")
    assert shell.wait(input=True, timeout=WAIT_S).event != "timeout"
    effect = tmp_path / "effect"
    killed_in_between(hold, effect, "exec", "sh", "--why", "to see", "--", f"touch {effect}")
    until(lambda: journal(hold, "exec"), WAIT_S)
    (entry,) = journal(hold, "exec")
    assert (entry["text"], entry["why"], entry["operator_kind"]) == (f"touch {effect}", "to see", "human")
    typed = [e for e in journal(hold, "input") if e.get("exec_id") == entry["exec_id"]]
    assert [e["epoch"] for e in typed] == [entry["epoch"]]


def test_nothing_is_removed_or_renamed_before_that_is_in_the_journal(hold: HomeForTests) -> None:
    ended = hold.run("true", name="ended")
    assert ended.wait(exit=True, timeout=WAIT_S).event != "timeout"
    until(lambda: ended.status().state == "exited", WAIT_S)
    until(lambda: [e for e in journal(hold, "ended") if e["session"] == ended.id], WAIT_S)
    with unwritable(hold):
        asked = [
            _ask(hold, {"op": "rename", "session": ended.id, "name": "other"}),
            _ask(hold, {"op": "rm", "session": ended.id}),
        ]
        for _ in range(10):  # one after the other, behind those: what they do at once is done by then
            hold.host.call("status", session=ended.id)
        hold.kill_daemon()
        for sock in asked:
            sock.close()
    assert hold.host.session(ended.id).status().name == "ended"
    assert journal(hold, "remove", "rename") == []
    assert hold("rm", "ended").code == 0
    assert [e["session"] for e in journal(hold, "remove")] == [ended.id]


def _ask(hold: HomeForTests, request: dict[str, object]) -> socket.socket:
    """A request whose answer nobody waits for; the line stays open."""
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(f"{hold.path}/host.sock")
    sock.sendall(host_requests.encode({"op": "ping"}))  # it is known who asks: what follows is begun at once
    sock.recv(65536)
    sock.sendall(host_requests.encode(request))
    return sock


def test_a_start_whose_session_was_begun_again_before_its_entry_was_written_is_told_too(
    hold: HomeForTests, tmp_path: Path
) -> None:
    hold.run("cat")
    effect = tmp_path / "effect"
    with unwritable(hold):
        hold.run("sh", "-c", f"echo >> {effect}; sleep 600", name="made", why="to try")
        until(effect.exists, WAIT_S)
        asking = begin(hold, "restart", "made")
        try:
            until(lambda: effect.stat().st_size == 2, WAIT_S)
        finally:
            asking.kill()
            asking.wait()
        hold.kill_daemon()
    told = [
        (e["kind"], e["generation"], e.get("why"))
        for e in journal(hold, "start", "restart")
        if e["session_name"] == "made"
    ]
    assert told == [("start", 1, "to try"), ("restart", 2, None)]


def test_a_start_does_not_wait_for_the_journal_and_is_in_it_all_the_same(hold: HomeForTests) -> None:
    hold.run("cat")
    with unwritable(hold):
        meanwhile = hold.run("cat", name="meanwhile")
        assert meanwhile.status().state == "live"
    (entry,) = [e for e in journal(hold, "start") if e["session_name"] == "meanwhile"]
    assert "late" not in entry
    assert hold("journal", "verify").code == 0
