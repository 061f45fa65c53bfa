"""The brief as strangers use it: a program that knows nothing else finishes the job, and what died is said to be dead."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from holdfast.client._sync.host import Host
from holdfast.work.memory.window import estimate
from tests.support.home import HOLD, HomeForTests, until

Json = dict[str, Any]
_STEPS_MAX = 40  # a follower that goes in circles is stopped
SERVER = (
    "import socket,sys,time; s=socket.create_server(('127.0.0.1',int(sys.argv[1]))); print('listening', flush=True)\n"
)
SERVER += "while True: c,_=s.accept(); print('the pool is empty', flush=True); sys.exit(3)"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def serve(hold: HomeForTests, port: int, name: str = "web") -> str:
    """A server that ends with code 3 when somebody connects."""
    session = hold.run("python3", "-c", SERVER, str(port), name=name)
    assert session.wait(port=port, timeout=60).event != "timeout"
    return session.id


def provoke(hold: HomeForTests, port: int, name: str = "web") -> None:
    socket.create_connection(("127.0.0.1", port)).close()
    assert hold.host.session(name).wait(exit=True, timeout=60).event == "exit"


class Follower:
    """Knows the brief's format, how to run a command, and how to look at a file. Nothing about the job."""

    def __init__(self, hold: HomeForTests, root: Path, *resume: str) -> None:
        self._hold, self._root, self._resume = hold, root, resume
        self.kinds: list[str] = []

    def brief(self) -> Json:
        done = self._run([*HOLD, "resume", "--json", *self._resume])
        assert done.returncode == 0, done.stdout + done.stderr
        found: Json = json.loads(done.stdout)
        assert not found["over_budget"]
        assert estimate(done.stdout.strip().encode()) <= found["max_tokens"]
        return found

    def _run(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        env = self._hold.env
        return subprocess.run(words, cwd=self._root, env=env, capture_output=True, text=True, timeout=100, check=False)

    def hold(self, words: list[str]) -> None:
        assert words[0] == "hold"
        done = self._run([*HOLD, *words[1:]])
        assert done.returncode == 0, (words, done.stdout, done.stderr)

    def finish(self) -> list[str]:
        for _ in range(_STEPS_MAX):
            brief = self.brief()
            action = brief["next_action"]
            self.kinds.append(action["kind"])
            if action["kind"] == "done":
                return self.kinds
            self.follow(action, brief)
        raise AssertionError(f"it goes in circles: {self.kinds}")

    def follow(self, action: Json, brief: Json) -> None:
        words = action["command"]
        if action["kind"] == "settle_step" and "choices" in action:
            doubt = brief["sections"]["in_doubt"][0]
            happened = (self._root / doubt["key"].partition(":")[2]).exists()
            words = action["choices"]["done" if happened else "not_done"]
        words = ["I looked" if w in action.get("needs", []) else w for w in words]
        self.hold(words)
        if "then" in action:
            (self._root / action["step"]).write_text("made\n")
            self.hold(action["then"])


def a_job(hold: HomeForTests, root: Path, port: int) -> str:
    """Half-done work that its worker left: a step in doubt, a server that died, a plan, and a task after it."""
    root.mkdir()
    work, tasks = hold.host.work, hold.host.work.tasks
    tasks.init("demo", ["make", "ship"], root=str(root))
    contract = {
        "goal": "a, b and c are there",
        "constraints": ["never write outside of this folder"],
        "verification": ["test -f a && test -f b && test -f c"],
    }
    tasks.add("Make the parts", id="1.1", phase="make", contract=contract, project="demo")
    tasks.add("Ship them", id="2.1", phase="ship", after=["1.1"], project="demo")
    run: str = tasks.start("1.1", project="demo")["run"]
    hold.run("bash", "--norc", name="shell", cwd=str(root))
    plan = [{"key": f"make:{name}", "command": f"touch {name}", "session": "shell"} for name in "bc"]
    work.call("checkpoint_save", run=run, state={"plan": [{"key": "make:a", "text": "a"}, *plan]})
    work.call("log_append", run=run, kind="decision", body="one file for each part")
    work.call("log_append", run=run, kind="rejected", body="a tarball: nobody asked for one")
    work.call("step_begin", run=run, key="make:a", effect="unsafe", action="make a")
    (root / "a").write_text("made\n")  # and the worker died before it said so
    work.call("step_fail", run=run, key="make:a", error="the line went dead", known=False)
    serve(hold, port)
    work.add_claim(task="1.1", project="demo", port=port, session="web")
    provoke(hold, port)
    return run


@pytest.mark.parametrize("budget", [(), ("--max-tokens", "500")], ids=["plain", "500 tokens"])
def test_a_program_given_nothing_but_the_brief_finishes_the_job(
    hold: HomeForTests, tmp_path: Path, budget: tuple[str, ...]
) -> None:
    root, port = tmp_path / "demo", free_port()
    a_job(hold, root, port)
    follower = Follower(hold, root, *budget)
    first = follower.brief()
    assert (first["goal"], first["constraints"]) == ("a, b and c are there", ["never write outside of this folder"])
    kinds = follower.finish()
    assert kinds == [
        "settle_step",
        "restart_session",
        "continue_run",
        "continue_run",
        "rerun_verification",
        "start_task",
        "rerun_verification",
        "done",
    ]
    state = hold("project", "show", "--project", "demo", "--json").json
    assert [t["status"] for t in state["tasks"]] == ["done", "done"]
    assert sorted(p.name for p in root.iterdir()) == ["a", "b", "c"]


def test_a_run_without_a_task_is_finished_item_by_item(hold: HomeForTests, tmp_path: Path) -> None:
    run = hold("work", "begin", "--item", "x", "--item", "y").out.strip()
    assert hold("checkpoint", "save", run, "--set", 'goal="every item is a file"').code == 0
    kinds = Follower(hold, tmp_path, run).finish()
    assert kinds == ["continue_run", "continue_run", "end_run", "done"]
    assert hold("work", "status", run, "--json").json["state"] == "done"


def test_a_claimed_server_that_died_is_said_to_be_dead_and_revived_it_holds(host: Host, hold: HomeForTests) -> None:
    port = free_port()
    run = hold("work", "begin", "--task", "deploy").out.strip()
    web = serve(hold, port)
    made = hold("claim", "add", "--task", "deploy", "--port", str(port), "--session", "web", "--json").json
    assert (made["state"], made["seen"]["session"], made["seen"]["generation"]) == ("holds", web, 1)
    assert made["seen"]["pid"] == host.call("status", session="web")["pid"]
    good = hold("claim", "check", "--task", "deploy")
    assert (good.code, good.out.split("\t")[1]) == (0, "holds")
    provoke(hold, port)
    bad = hold("claim", "check", "--task", "deploy", "--json")
    assert bad.code == 1
    [claim] = bad.json
    exit = claim["evidence"]["exit"]
    assert (claim["state"], exit["code"], exit["known"]) == ("drifted", 3, True)
    assert exit["at"] in claim["said"]
    assert claim["evidence"]["last_lines"] == "listening\nthe pool is empty"
    brief = hold("resume", "deploy").out
    assert f"exit code 3 at {exit['at']}" in brief
    assert "the pool is empty" in brief
    action = hold("resume", run, "--json").json["next_action"]
    assert (action["kind"], action["command"]) == ("restart_session", ["hold", "restart", web])
    assert hold("restart", "web").code == 0
    assert hold("wait", "web", "--for", f"port={port}", "--timeout", "60").code == 0
    again = hold("claim", "check", "--run", run, "--json")
    assert (again.code, again.json[0]["state"], again.json[0]["evidence"]["generation"]) == (0, "holds", 2)
    later = hold("resume", "deploy", "--json").json
    assert "drifted" not in later["sections"]
    assert later["sections"]["alive"][0]["state"] == "holds"


def test_claims_of_files_processes_sessions_and_commands_drift_with_evidence(
    hold: HomeForTests, tmp_path: Path
) -> None:
    run = hold("work", "begin").out.strip()
    file = tmp_path / "app.js"
    file.write_text("one")
    sleeper = subprocess.Popen(["sleep", "300"])
    try:
        hold.run("sleep", "300", name="held")
        claims = (
            ("--file", str(file)),
            ("--pid", str(sleeper.pid)),
            ("--session", "held"),
            ("--command", f"grep -q one {shlex.quote(str(file))}"),
        )
        for words in claims:
            assert hold("claim", "add", "--run", run, *words).code == 0
        states = [c["state"] for c in hold("claim", "check", "--json").json]
        assert states == ["holds"] * 4
        assert [s["name"] for s in hold.host.call("ls", all=True)] == ["held"]  # a check leaves nothing behind
        file.write_text("two two")
    finally:
        sleeper.send_signal(signal.SIGKILL)
        sleeper.wait()
    assert hold("kill", "held", "-s", "KILL").code == 0
    assert hold("wait", "held", "--for", "exit", "--timeout", "60").code == 0
    checked = hold("claim", "check", "--run", run, "--json")
    assert checked.code == 1
    found = {c["kind"]: c for c in checked.json}
    assert {c["state"] for c in checked.json} == {"drifted"}
    assert [found["file"]["evidence"][k]["size"] for k in ("was", "now")] == [3, 7]
    assert "has ended" in found["pid"]["said"]
    assert found["session"]["evidence"]["exit"]["signal"] == "SIGKILL"
    assert found["command"]["evidence"]["exit_code"] == 1
    kept = hold("claim", "ls", "--run", run, "--json").json
    assert [(c["id"], c["state"], bool(c["checked_at"])) for c in kept] == [
        (c["id"], "drifted", True) for c in checked.json
    ]
    assert hold("claim", "rm", kept[0]["id"]).code == 0
    assert len(hold("claim", "ls", "--json").json) == 3


def test_a_port_taken_by_somebody_else_names_them(hold: HomeForTests) -> None:
    port = free_port()
    run = hold("work", "begin").out.strip()
    serve(hold, port)
    assert hold("claim", "add", "--run", run, "--port", str(port)).code == 0
    provoke(hold, port)
    serve(hold, port, "intruder")
    [claim] = hold("claim", "check", "--json").json
    assert (claim["state"], claim["evidence"]["owner"]["session_name"]) == ("drifted", "intruder")
    assert "served by session intruder now" in claim["said"]
    with socket.create_server(("127.0.0.1", 0)) as mine:  # a process outside of every session
        other = mine.getsockname()[1]
        made = hold("claim", "add", "--run", run, "--port", str(other), "--json").json
        assert (made["state"], made["seen"]["pid"]) == ("holds", os.getpid())
    checked = hold("claim", "check", "--json").json
    assert f"nobody listens on port {other}" in checked[1]["said"]


def test_bad_claims_and_targets_are_one_line_each(hold: HomeForTests) -> None:
    run = hold("work", "begin").out.strip()
    for words, code in (
        (("claim", "add", "--port", "80"), 2),
        (("claim", "add", "--run", run), 2),
        (("claim", "add", "--run", run, "--port", "99999"), 2),
        (("claim", "add", "--run", run, "--port", "80", "--pid", "1"), 2),
        (("claim", "add", "--run", run, "--file", "/nonexistent/file"), 3),
        (("claim", "add", "--run", run, "--pid", "4194303"), 3),
        (("claim", "add", "--run", run, "--session", "nobody"), 3),
        (("claim", "add", "--run", run, "--command", "  "), 2),
        (("claim", "add", "--task", "no/such", "--pid", "1"), 3),
        (("claim", "rm", "clm_nothing"), 3),
        (("claim", "rm"), 2),
        (("resume", "no-such-task"), 3),
        (("resume", "--max-tokens", "0"), 2),
        (("resume", "--project", "nothing"), 3),
    ):
        done = hold(*words)
        assert (done.code, done.err.count("\n")) == (code, 1), (words, done.code, done.err)
    assert hold("claim", "rm", "clm_nothing", "--json").json["error"]["code"] == "not_found"
    assert hold("claim", "ls", "--json").json == []


def test_a_blocked_task_says_what_it_waits_for_and_goes_on_with_the_answer(hold: HomeForTests, tmp_path: Path) -> None:
    assert hold("project", "init", "demo").code == 0
    assert hold("task", "add", "Choose", "--id", "1", "--verify", "true").code == 0
    assert hold("task", "start", "1").code == 0
    assert hold("task", "block", "1", "--question", "which colour?").code == 0
    brief = hold("resume", "--json").json
    action = brief["next_action"]
    assert (action["kind"], action["needs"]) == ("answer", ["WHY"])
    assert "which colour?" in action["why"]
    assert brief["sections"]["blocked"][0]["why"] == "which colour?"
    words = ["green" if w == "WHY" else w for w in action["command"]]
    assert hold(*words[1:]).code == 0
    after = hold("resume", "1", "--json").json
    assert after["next_action"]["kind"] == "start_task"
    assert {"question": "which colour?", "answer": "green"} in after["sections"]["questions"]


def test_the_same_facts_make_the_same_brief(hold: HomeForTests) -> None:
    run = hold("work", "begin", "--item", "a").out.strip()
    for n in range(30):
        hold.host.work.call("log_append", run=run, kind="decision", body=f"decision {n}: " + "because " * 30)
    briefs = [hold("resume", run, "--max-tokens", "600").out for _ in range(2)]
    lines = [[x for x in b.splitlines() if "observed" not in x] for b in briefs]
    assert lines[0] == lines[1]
    assert estimate(briefs[0].encode()) <= 600
    assert f"of decisions: `hold history {run}`" in briefs[0]
    until(lambda: hold.host.call("ping"))
