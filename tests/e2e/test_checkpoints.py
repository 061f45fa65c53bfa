"""Checkpoints, history and memory as programs and people use them, through the host and on PostgreSQL directly."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._async.host import AsyncHost
from holdfast.client._sync.host import Host
from tests.support.home import HomeForTests


def test_a_program_saves_its_state_and_another_goes_on_from_it(host: Host) -> None:
    messages: list[Any] = [{"role": "user", "content": "go"}]
    run = host.work.run(task="t")
    run.message({"role": "user", "content": "from the log"})
    run.checkpoint(goal="move", plan=["a", "b"], current_step=0, label="begun")
    run.checkpoint(messages=messages, context={"decisions": []})
    messages.append({"role": "assistant", "content": "done a"})
    messages[0]["content"] = "go!"  # edited in place
    run.note("b can wait", kind="decision")
    run.set("token", [1, 2], ttl=3600)
    run.checkpoint(messages=messages, current_step=1)
    run.close()  # not finished
    assert messages == [{"role": "user", "content": "go!"}, {"role": "assistant", "content": "done a"}]
    with host.work.run(task="t") as run:
        state = run.restore()
        assert (state["goal"], state["plan"], state["current_step"]) == ("move", ["a", "b"], 1)
        assert state["messages"] == messages
        assert [d["text"] for d in state["context"]["decisions"]] == ["b can wait"]
        assert run.recall("token") == [1, 2]
        assert run.recall("other", "nothing") == "nothing"
        run.checkpoint(goal="finish")  # the others keep their values
        made = run.checkpoints()
        assert [c["base"] for c in made] == [None, 1, 2, 3]  # each the change of the one before
        assert made[0]["label"] == "begun"
        assert run.restore(seq=2)["messages"] == [{"role": "user", "content": "go"}]
        run.checkpoint(current_step=5)
        assert (run.restore()["current_step"], run.restore()["goal"]) == (5, "move")
        told = run.history(at=made[1]["log_upto"])
        assert told["state"]["messages"] == [{"role": "user", "content": "go"}]
        assert told["hash"] == made[1]["hash"]


async def test_the_async_client_saves_the_same_way(host: Host) -> None:
    async with AsyncHost(str(host.home.path)) as ahost, await ahost.work.run() as run:
        await run.message("hello")
        saved = await run.checkpoint(goal="g")
        assert (await run.restore())["messages"] == ["hello"]
        assert await run.window(max_tokens=100) == ["hello"]
        assert saved["seq"] == 1


def test_a_note_by_somebody_else_between_two_saves_is_not_lost(host: Host) -> None:
    with host.work.run() as run:
        run.checkpoint(goal="g", context={"x": 1})
        host.work.call("log_append", run=run.id, body="by hand", kind="learned")
        run.checkpoint(goal="h")
        assert [e["text"] for e in run.restore()["context"]["learned"]] == ["by hand"]


def test_a_worker_killed_in_the_middle_leaves_its_window_and_its_last_state(host: Host, hold: HomeForTests) -> None:
    program = """
import os, signal, sys, holdfast
host = holdfast.connect(sys.argv[1])
run = host.work.run(task="killed", lease=2)
for n in range(20):
    run.message({"role": "user", "content": f"m{n}"})
    if n == 10:
        run.checkpoint(goal="in the middle")
print(run.id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(hold.path)],
        env={**os.environ, **hold.env},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    window = host.work.call("memory_window", run=done.stdout.strip())
    assert [m["content"] for m in window["messages"]] == [f"m{n}" for n in range(20)]
    assert host.work.call("state_at", run=done.stdout.strip())["state"]["goal"] == "in the middle"


def test_the_command_line_saves_shows_compares_restores_and_forks(
    host: Host, hold: HomeForTests, tmp_path: Path
) -> None:
    run = host.work.run(task="cli")
    run.close()
    file = tmp_path / "state.json"
    file.write_text(json.dumps({"goal": "é", "plan": [1]}))
    assert hold("checkpoint", "save", run.id, "--state", str(file), "--label", "one").out == "1\n"
    assert hold("checkpoint", "save", run.id, "--set", "plan=[1, 2]", "--json").json["seq"] == 2
    shown = hold("checkpoint", "show", run.id, "--json").json
    assert (shown["state"]["goal"], shown["state"]["plan"], shown["kind"]) == ("é", [1, 2], "milestone")
    assert json.loads(hold("checkpoint", "show", run.id, "1").out)["plan"] == [1]
    assert [c["label"] for c in hold("checkpoint", "ls", run.id, "--json").json] == ["one", None]
    changes = hold("checkpoint", "diff", run.id, "1", "2", "--json").json["changes"]
    assert changes == [{"key": "plan", "change": "changed", "at": 1, "removed": [], "added": [2]}]
    assert hold("checkpoint", "restore", run.id, "1").out == "3\n"
    forked = hold("checkpoint", "fork", run.id, "2").out.strip()
    assert hold("checkpoint", "show", forked, "--json").json["state"]["plan"] == [1, 2]


def test_history_on_the_command_line_shows_the_state_at_a_position(hold: HomeForTests) -> None:
    with Host(str(hold.path)) as host, host.work.run() as run:
        run.checkpoint(goal="a", label="one")
        saved = run.checkpoint(plan=[1, 2])
        run.checkpoint(plan=[3])
    at = saved["log_upto"]
    told = hold("history", run.id, "--at", str(at), "--json").json
    assert (told["state"]["plan"], told["hash"], len(told["entries"])) == ([1, 2], saved["hash"], at)
    assert '"goal": "a"' in hold("history", run.id, "--at", str(at)).out
    assert "one" in hold("checkpoint", "ls", run.id).out
    assert "plan" in hold("checkpoint", "diff", run.id, "1", "2").out
    assert hold("checkpoint", "policy", run.id, "--entries", "5").code == 0


def test_the_command_line_keeps_messages_and_values(host: Host, hold: HomeForTests) -> None:
    run = host.work.run().id
    hold("memory", "append", run, "be calm", "--role", "system")
    hold("memory", "append", run, "--json-message", '{"role": "user", "content": "two\\nlines"}')
    assert hold("memory", "window", run).out == "system\tbe calm\nuser\ttwo lines\n"
    assert hold("memory", "window", run, "--max-tokens", "20", "--json").json["messages"][0]["content"] == "be calm"
    hold("memory", "set", run, "n", "[1, 2]", "--ttl", "10m")
    assert hold("memory", "get", run, "n").out == "[1, 2]\n"
    hold("memory", "set", run, "n", "--ttl", "0")
    assert hold("memory", "get", run, "n").code == 3


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("checkpoint", "show", "RUN"), 3),
        (("checkpoint", "show", "run_0000000000000000"), 3),
        (("checkpoint", "diff", "RUN"), 2),
        (("checkpoint", "save", "RUN", "--set", "nonsense"), 2),
        (("checkpoint", "save", "RUN", "--set", "a={"), 2),
        (("checkpoint", "save", "RUN", "--state", "/nowhere"), 3),
        (("checkpoint", "save", "RUN", "--state", "/dev/null"), 2),
        (("checkpoint", "fork", "RUN", "7"), 3),
        (("history", "RUN", "--at", "99"), 3),
        (("memory", "append", "RUN"), 2),
        (("memory", "set", "RUN", "n", "{"), 2),
        (("memory", "set", "RUN", "n", "1", "--ttl", "soon"), 2),
        (("memory", "get", "RUN", "n"), 3),
        (("memory", "window", "RUN", "--max-tokens", "0"), 2),
    ],
)
def test_a_mistake_is_one_line_with_what_to_do(shared: HomeForTests, words: tuple[str, ...], code: int) -> None:
    with Host(str(shared.path)) as host:
        run = host.work.run()
        run.close()
        done = shared(*(run.id if w == "RUN" else w for w in words))
    assert done.code == code, done.err
    assert done.err.startswith("hold: ")
    assert done.err.count("\n") == 1
    assert "; " in done.err
