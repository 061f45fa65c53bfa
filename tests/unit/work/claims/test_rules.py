"""What a claim comes to, from what was seen then and what the kernel says now."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.work.claims import rules

Json = dict[str, Any]
AT = "2026-01-02T03:04:05.678Z"
NOW: Json = {"host": "hst_1", "boot": "b1"}


def claim(kind: str, spec: Json, **seen: Any) -> Json:
    return {"kind": kind, "spec": spec, "seen": seen, "host": "hst_1"}


def session(state: str = "live", **more: Any) -> Json:
    about = {"id": "ses_1", "name": "web", "state": state, "generation": 1, "pid": 7, "observed_at": AT, "exit": None}
    return {**about, **more}


def row(**more: Any) -> Json:
    about = {
        "port": 80,
        "address": "127.0.0.1",
        "protocol": "tcp",
        "pid": 7,
        "started": 5,
        "command": "serve",
        "name": "s",
    }
    return {**about, **more}


def state(about: Json, **now: Any) -> tuple[str, str]:
    result = rules.judge(about, {**NOW, **now})
    assert result["state"] in rules.STATES
    return result["state"], result["said"]


def ended(code: int | None, signal: str | None = None, known: bool = True) -> Json:
    return {"code": code, "signal": signal, "known": known, "at": AT}


def test_a_port_holds_while_its_session_serves_it_also_as_a_later_generation() -> None:
    port = claim("port", {"port": 80, "session": "ses_1"}, session="ses_1", pid=7, generation=1)
    mine = row(session="ses_1", session_name="web", pid=99)
    assert state(port, ports=[mine], session=session(generation=2))[0] == "holds"
    other = row(session="ses_2", session_name="evil")
    assert state(port, ports=[other, mine], session=session())[0] == "holds"  # one of two sockets is its own
    assert state(port, ports=[other], session=session()) == ("drifted", "port 80 is served by session evil now")
    assert state(port, ports=[], session=session()) == (
        "drifted",
        "nobody listens on port 80; web is live and does not",
    )
    dead = session("exited", exit=ended(3))
    assert state(port, ports=[], session=dead)[1] == f"nobody listens on port 80; web is exited: exit code 3 at {AT}"
    assert state(port, ports=[], session=None)[1].endswith("the session is gone")


def test_a_port_of_no_session_holds_for_the_same_program() -> None:
    port = claim("port", {"port": 80}, pid=7, started=5, command="serve")
    assert state(port, ports=[row()])[0] == "holds"
    assert state(port, ports=[row(pid=9, started=6)])[0] == "holds"  # the same program, started again
    assert state(port, ports=[row(pid=9, started=6, command="nc -l")])[0] == "drifted"
    assert state(port, ports=[row(pid=None, started=None, command=None)])[0] == "drifted"
    assert state(claim("port", {"port": 80}), ports=[row()])[0] == "holds"


def test_an_exit_that_nobody_saw_is_not_told_as_a_code() -> None:
    live = claim("session", {"session": "ses_1"}, generation=1)
    assert state(live, session=session("exited", exit=ended(None, known=False)))[1] == (
        "web is exited: how it ended is unknown"
    )
    assert "keeper died" in state(live, session=session("lost"))[1]
    assert state(live, session=session(generation=3)) == ("holds", "web is live, pid 7, restarted 2 times since")
    assert state(live, session=None)[0] == "drifted"
    assert state(live, session=None, session_error="not for you")[0] == "unknown"


def test_evidence_of_an_ended_session_has_its_last_lines() -> None:
    live = claim("session", {"session": "ses_1"})
    told = rules.judge(live, {**NOW, "session": session("exited", exit=ended(None, "SIGKILL")), "tail": "boom"})
    assert told["evidence"]["last_lines"] == "boom"
    assert told["evidence"]["exit"]["signal"] == "SIGKILL"
    assert "signal SIGKILL" in told["said"]


def test_a_pid_that_was_given_to_another_process_has_drifted() -> None:
    pid = claim("pid", {"pid": 7}, started=5, boot="b1", name="serve")
    about = {"pid": 7, "started": 5, "name": "serve", "command": "serve", "state": "sleeping"}
    assert state(pid, process=about)[0] == "holds"
    assert state(pid, process={**about, "started": 6, "command": "bash"}) == (
        "drifted",
        "pid 7 was given to another process: bash",
    )
    assert state(pid, process={**about, "state": "zombie"})[0] == "drifted"
    assert state(pid, process=None)[0] == "drifted"
    assert state(pid, process={"hidden": True})[0] == "unknown"
    assert state({**pid, "seen": {**pid["seen"], "boot": "b0"}}, process=about)[0] == "drifted"


def test_a_file_is_compared_by_its_content() -> None:
    file = claim("file", {"path": "/f"}, sha256="aa", size=3)
    assert state(file, file={"exists": True, "sha256": "aa", "size": 3})[0] == "holds"
    assert state(file, file={"exists": True, "sha256": "bb", "size": 4})[1] == "/f has changed: 3 bytes then, 4 now"
    assert state(file, file={"exists": False}) == ("drifted", "/f is gone")
    assert state(file, file={"error": "Permission denied"}) == ("unknown", "/f: Permission denied")


def test_a_command_holds_by_its_exit_code_alone() -> None:
    command = claim("command", {"command": "make", "timeout_s": 60})
    ran = {"exit_code": 0, "duration_ms": 5, "tail": ""}
    assert state(command, command={**ran, "state": "passed"})[0] == "holds"
    assert state(command, command={**ran, "state": "failed", "exit_code": 2}) == (
        "drifted",
        "it failed with exit code 2",
    )
    assert state(command, command={**ran, "state": "timeout"})[0] == "drifted"
    assert state(command, command={**ran, "state": "unknown"})[0] == "unknown"
    assert state(command)[0] == "unknown"


def test_what_was_claimed_on_another_host_is_not_judged_here() -> None:
    port = {**claim("port", {"port": 80}), "host": "hst_2"}
    assert state(port, ports=[])[0] == "unknown"


@pytest.mark.parametrize(
    ("kind", "spec", "seen"), [("belief", {}, {}), ("port", {}, {}), ("port", [], {}), ("file", {"path": ""}, {})]
)
def test_half_a_claim_is_refused(kind: str, spec: Any, seen: Any) -> None:
    with pytest.raises(HoldfastError) as refused:
        rules.check(kind, spec, seen)
    assert refused.value.code == "invalid"
