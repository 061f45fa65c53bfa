"""Ways around the rules that were tried: each is closed, and stays closed."""

from __future__ import annotations

import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.wire import host_requests
from tests.support.home import HomeForTests, read_all, until
from tests.support.operators import INSIDE, acting_as, enrol, journal


def test_what_is_started_or_typed_from_a_shell_that_an_agent_had_its_hands_on_is_in_its_hands_too(
    hold: HomeForTests,
) -> None:
    """An agent types `hold` into a person's shell: neither a new session, its restart nor a second shell is a person."""
    for name in ("web-1", "web-2"):
        assert hold.run("bash", "--norc", name=name).wait(input=True, timeout=60).event != "timeout"
    enrol(hold, "bot", verbs=["view", "start", "type", "exec", "request_control"], sessions=["web-*"])
    with acting_as(hold, "bot") as bot:
        shell = bot.session("web-1")
        asks = "operator whoami --json"
        shell.exec(f"{INSIDE} run -d --name web-3 -- {INSIDE} {asks}", timeout=60)
        shell.exec(f"{INSIDE} send web-2 --enter '{INSIDE} {asks}'", timeout=60)
    started = hold.host.session("web-3")
    assert started.wait(exit=True, timeout=60).event != "timeout"
    assert '"bound_by":["bot"]' in _said(started)
    hold("restart", "web-3")
    until(lambda: _said(started).count('"bound_by":["bot"]') == 2, 60)
    until(lambda: '"bound_by":["bot"]' in _said(hold.host.session("web-2")), 60)


def _said(session: Any) -> str:
    return "".join(read_all(session).decode(errors="replace").split())


def test_who_leaves_without_waiting_for_the_answer_is_in_the_journal_all_the_same(
    hold: HomeForTests, tmp_path: Path
) -> None:
    """A request whose client is gone at once: what it did has its entry, and the controls are free again."""
    shell = hold.run("bash", "--norc", name="sh")
    assert shell.wait(input=True, timeout=60).event != "timeout"
    run = {"command": ["sleep", "600"], "name": "left", "env": hold.env, "cwd": str(tmp_path), "size": [80, 24]}
    for n in range(12):
        _ask_and_leave(hold, n, {"op": "exec", "session": "sh", "words": [f"echo {n} >> {tmp_path}/said"]})
    until(lambda: hold("exec", "sh", "--", "true").code == 0, 60)  # none of them is under way any more
    ran = (tmp_path / "said").read_text().split()
    noted = [e["text"] for e in journal(hold, "exec") if "said" in e["text"]]
    assert [f"echo {n} >> {tmp_path}/said" for n in ran] == noted
    until(lambda: hold.host.session("sh").status().controls.holder is None, 60)
    _ask_and_leave(hold, 0, {"op": "run", **run})
    until(lambda: [s for s in hold.host.sessions() if s.name == "left"], 60)
    until(lambda: [e for e in journal(hold, "start") if e["session_name"] == "left"], 60)
    hold.host.session("left").stop(0)
    _ask_and_leave(hold, 0, {"op": "restart", "session": "left"})
    until(lambda: hold.host.session("left").status().generation == 2, 60)
    until(lambda: journal(hold, "restart"), 60)
    assert hold.host.session("left").status().state == "live"
    cat = hold.run("cat", pipes=True, name="cat")
    _ask_and_leave(hold, 0, {"op": "send", "session": "cat", "data": "aGVsbG8="})
    until(lambda: read_all(cat) == b"hello", 60)
    until(lambda: journal(hold, "send"), 60)


def _ask_and_leave(hold: HomeForTests, pause_ms: int, request: dict[str, Any]) -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.connect(f"{hold.path}/host.sock")
        sock.sendall(host_requests.encode({"op": "ping"}))  # it is known who asks: what follows is begun at once
        sock.recv(65536)
        sock.sendall(host_requests.encode(request))
        time.sleep(pause_ms / 1000)  # leaves at another moment each time


def test_nobody_renames_a_session_into_a_grant_that_allows_them_more(hold: HomeForTests) -> None:
    hold.run("sleep", "600", name="web-1")
    enrol(hold, "bot", verbs=["view", "stop"], sessions=["web-*"])
    hold.host.grant("bot", ["view", "stop", "type", "exec"], sessions=["build-*"])
    done = hold("rename", "web-1", "build-1", "--json", HOLDFAST_OPERATOR="bot")
    assert (done.code, done.json["error"]["code"]) == (4, "not_allowed"), done.out
    assert hold("rename", "web-1", "web-2", HOLDFAST_OPERATOR="bot").code == 0
    assert hold("rename", "web-2", "build-1").code == 0  # a person gains nothing by it


def test_one_who_only_watches_does_not_become_the_controller_of_agent_and_display(hold: HomeForTests) -> None:
    web = hold.run("sleep", "600", name="web")
    enrol(hold, "eye", verbs=["view"], sessions=["web"])
    with acting_as(hold, "eye") as eye:
        about, fd = eye.call_fd("attach", session="web", env={"SSH_AUTH_SOCK": "/tmp/evil", "DISPLAY": "evil:1"})
        os.close(fd)
    link = hold.path / "sessions" / web.id / "links" / "ssh-agent"
    assert about["session"] == web.id
    assert not link.is_symlink() or os.readlink(link) != "/tmp/evil"
    fd = hold.host.call_fd("attach", session="web", env={"SSH_AUTH_SOCK": "/tmp/mine"})[1]
    os.close(fd)
    assert os.readlink(link) == "/tmp/mine"


def test_a_revocation_ends_nobody_elses_requests(hold: HomeForTests) -> None:
    """A start that waits for a yes needs a right on the agent's own sessions, not on the host."""
    (hold.path / "config.toml").write_text('[[approve]]\nverbs = ["run"]\n')
    enrol(hold, "bot")
    enrol(hold, "other")
    with acting_as(hold, "bot") as bot, ThreadPoolExecutor(1) as pool:
        started = pool.submit(bot.run, ["sleep", "600"], name="mine")
        (item,) = until(hold.host.inbox, 60)
        assert hold.host.revoke("other")["requests"] == 0
        hold.host.answer(item.id, approve=True)
        assert started.result(60).status().state == "live"


def test_a_request_ends_with_the_last_of_the_grants_it_rests_on(hold: HomeForTests) -> None:
    hold.run("sleep", "600", name="web")
    enrol(hold, "eye", verbs=["view"], sessions=["web"], ttl=4)
    hold.host.grant("eye", ["view"], sessions=["web"], ttl=8)
    with acting_as(hold, "eye") as eye, pytest.raises(HoldfastError) as e:
        assert eye.session("web").wait(exit=True, timeout=60).event != "timeout"
    assert e.value.code in ("not_allowed", "not_found")  # the latter where the machine took that long to ask


@pytest.mark.parametrize(
    "request_",
    [
        {"op": "wait", "session": "web", "until": "exit", "timeout": "soon"},
        {"op": "wait", "session": "web", "until": "exit", "start": []},
        {"op": "offset", "session": "web", "since": {}},
        {"op": "timeline", "limit": "all"},
        {"op": "timeline", "before": True},
        {"op": "stop", "session": "web", "grace_s": [1]},
        {"op": "prune", "older_than_s": "old"},
        {"op": "recording", "session": "web", "from": "x"},
        {"op": "exec", "session": "web", "words": ["id"], "timeout": "x"},
        {"op": "send", "session": "web", "data": "?"},
        {"op": "exec", "session": "web", "words": ["id"], "exec_id": {"a": 1}},
        {"op": "attach", "session": "web", "env": [1]},
    ],
    ids=lambda r: f"{r['op']} {list(r)[-1]}",
)
def test_a_value_of_another_type_is_an_error_of_the_one_who_sent_it(
    hold: HomeForTests, request_: dict[str, Any]
) -> None:
    assert hold.run("bash", "--norc", name="web").wait(input=True, timeout=60).event != "timeout"
    with pytest.raises(HoldfastError) as e:
        hold.host.call(**request_)
    assert e.value.code == "invalid", e.value.message
    assert "Traceback" not in (hold.path / "host.log").read_text()


def test_a_long_text_that_lost_the_controls_between_two_pieces_types_no_more(hold: HomeForTests) -> None:
    """Several pieces are one act: the rest is refused, also when the controls are free again."""
    deaf = hold.run("sleep", "600", pipes=True, name="deaf")
    enrol(hold, "bot", verbs=["view", "type", "request_control"], sessions=["*"])
    with acting_as(hold, "bot") as bot, ThreadPoolExecutor(1) as pool:
        sending = pool.submit(bot.session("deaf").send, b"a" * (1 << 20))  # four times what is queued for it
        until(lambda: hold.host.call("status", session=deaf.id)["controls"]["kind"] == "agent", 60)
        until(lambda: hold("take", "deaf", "--json").json["flushed"] > 0, 60)
        assert hold("release", "deaf").code == 0
        with pytest.raises(HoldfastError) as e:
            sending.result(60)
    assert e.value.code == "conflict"


def test_the_host_s_own_files_are_nobody_s_store(hold: HomeForTests) -> None:
    for name in ("host.db", "keys/x.db", "../" + hold.path.name + "/host.db"):
        with pytest.raises(HoldfastError) as e:
            hold.host.call("run_ls", store=f"sqlite:///{hold.path}/{name}")
        assert e.value.code == "invalid"
