"""Verification of tasks: real commands in a held session, whatever happens to them, to the caller and to the daemon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from holdfast.client._sync.host import Host
from holdfast.model.errors import HoldfastError
from tests.support.home import HOLD, HomeForTests, alive, until
from tests.support.tasks import Json, ok


def verification(hold: HomeForTests, *commands: Any, id: str = "1") -> list[Json]:
    """What a task's verification says of these."""
    tasks = hold.host.work.tasks
    tasks.add("check", id=id, contract={"verification": list(commands)})
    tasks.start(id)
    return tasks.verify(id)


def test_verification_tells_each_end_as_it_was_seen(hold: HomeForTests, shop: Path) -> None:
    results = verification(
        hold,
        "pwd; echo err >&2",
        ["printf", "%s|", "a b", "c"],
        "exit 3",
        {"command": "sleep 600", "timeout_s": 0.2},
        "kill -9 $$",
        ["no-such-program-x"],
        'echo "$HOLDFAST_TASK"',
        "head -c 300000 /dev/zero | tr '\\0' x; echo end",
    )
    assert [(r["state"], r["exit_code"]) for r in results] == [
        ("passed", 0),
        ("passed", 0),
        ("failed", 3),
        ("timeout", None),
        ("failed", 137),
        ("failed", 127),
        ("passed", 0),
        ("passed", 0),
    ]
    tails = [r["tail"] for r in results]
    assert tails[:3] == [f"{shop}\nerr\n", "a b|c|", ""]
    assert tails[6] == "shop/1\n"
    assert tails[7].endswith("xend\n")
    assert len(tails[7]) == 4096
    assert len({r["session"] for r in results}) == 1


def test_what_verification_leaves_running_is_ended_with_it(hold: HomeForTests, shop: Path) -> None:
    results = verification(hold, "setsid sleep 600 >/dev/null 2>&1 & echo $! > pid; echo up", "test -s pid")
    assert [r["state"] for r in results] == ["passed", "passed"]
    assert not alive(int((shop / "pid").read_text()))
    assert hold.host.call("status", session=results[0]["session"])["state"] == "exited"


def test_verification_that_was_killed_is_unknown_and_never_passed(hold: HomeForTests, shop: Path) -> None:
    ok(hold, "task", "add", "Bake", "--id", "1", "--verify", "true", "--verify", "echo $PPID > pid; exec sleep 600")
    ok(hold, "task", "start", "1")
    seen: list[HoldfastError] = []

    def done() -> None:
        with Host(str(hold.path)) as host:
            try:
                host.work.tasks.done("1")
            except HoldfastError as e:
                seen.append(e)

    thread = threading.Thread(target=done)
    thread.start()
    pid = until(lambda: (shop / "pid").exists() and (shop / "pid").read_text().strip(), 60)
    os.kill(int(pid), 9)  # the session's main program, which would have told
    thread.join(60)
    assert "ended unseen" in seen[0].message
    kept = ok(hold, "task", "show", "1")["attempts"][0]["verification"]
    assert [r["state"] for r in kept["results"]] == ["passed", "unknown"]


def test_verification_goes_on_when_its_caller_and_the_daemon_die(hold: HomeForTests, shop: Path) -> None:
    ok(hold, "task", "add", "Bake", "--id", "1", "--verify", "echo up > up; while [ ! -f go ]; do sleep 0.1; done")
    ok(hold, "task", "start", "1")
    caller = subprocess.Popen([*HOLD, "task", "done", "1"], env=hold.env)
    until((shop / "up").exists, 60)
    hold.kill_daemon()
    caller.kill()
    caller.wait(30)
    session = until(lambda: ok(hold, "task", "show", "1")["sessions"], 60)[0]["session"]
    assert hold.host.call("status", session=session)["state"] == "live"
    (shop / "go").touch()
    until(lambda: hold.host.call("status", session=session)["state"] == "exited", 60)
    assert ok(hold, "task", "show", "1")["status"] == "active"
    assert ok(hold, "task", "done", "1")["status"] == "done"


def test_a_daemon_that_dies_during_done_is_not_noticed(hold: HomeForTests, shop: Path) -> None:
    ok(hold, "task", "add", "Bake", "--id", "1", "--verify", "echo up > up; while [ ! -f go ]; do sleep 0.1; done")
    caller = subprocess.Popen([*HOLD, "task", "done", "1", "--json"], env=hold.env, stdout=subprocess.PIPE)
    until((shop / "up").exists, 60)
    hold.kill_daemon()
    (shop / "go").touch()
    out, _ = caller.communicate(timeout=120)
    assert (caller.returncode, json.loads(out)["status"]) == (0, "done")


def test_a_verification_can_be_ended_by_its_name_from_before_it_starts(hold: HomeForTests, shop: Path) -> None:
    ok(hold, "task", "add", "Bake", "--id", "1", "--verify", "true")
    ok(hold, "task", "start", "1")
    project = ok(hold, "task", "show", "1")["project"]
    told: list[tuple[str, bool]] = []

    def begun(name: str) -> None:
        told.append((name, any(s.name == name for s in hold.host.sessions(all=True))))

    hold.host.work.tasks.done("1", project=project, begun=begun)
    [(name, there)] = told
    assert not there
    assert any(s.name == name for s in hold.host.sessions(all=True))


def test_interrupting_done_ends_its_verification(hold: HomeForTests, shop: Path) -> None:
    ok(hold, "task", "add", "Bake", "--id", "1", "--verify", "echo $$ > pid; exec sleep 600")
    ok(hold, "task", "start", "1")
    code = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    code += "from holdfast.cli.main import main; sys.exit(main(['task', 'done', '1']))"
    caller = subprocess.Popen([sys.executable, "-c", code], env=hold.env, stderr=subprocess.PIPE)
    pid = int(until(lambda: (shop / "pid").exists() and (shop / "pid").read_text().strip(), 60))
    caller.send_signal(2)
    _, err = caller.communicate(timeout=60)
    assert (caller.returncode, b"Traceback" in err) == (130, False)
    until(lambda: not alive(pid), 60)
    assert ok(hold, "task", "show", "1")["status"] == "active"


def test_the_log_of_a_verification_is_what_its_commands_printed(hold: HomeForTests, shop: Path) -> None:
    results = verification(hold, "echo one; echo two >&2", "printf 'three\nfour\n'; exit 3")
    session = results[0]["session"]
    read = hold("logs", session)
    assert (read.out, read.err) == ("one\ntwo\nthree\nfour\n", "")
    assert hold("logs", session, "--tail", "1").out == "four\n"
    assert hold("logs", session, "--grep", "t").out == "two\nthree\n"
    raw = hold("logs", session, "--raw")
    assert json.loads(raw.err.splitlines()[-1])["results"][1]["exit_code"] == 3  # the record is there for programs
    brief = hold.host.work.resume("1", form="json", max_tokens=8000)
    tails = [s.get("tail") for s in brief["sections"]["sessions"]]
    assert tails == ["one\ntwo\nthree\nfour"]


def test_a_verification_that_takes_longer_than_its_lease_keeps_it_up(hold: HomeForTests, shop: Path) -> None:
    tasks = hold.host.work.tasks
    tasks.add("slow", id="1", contract={"verification": ["sleep 7"]})
    made = tasks.start("1", worker="w", lease=5)
    assert tasks.done("1", epoch=made["epoch"])["status"] == "done"
