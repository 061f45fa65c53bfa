"""Demo steps with several operators: an agent and a person in one session, a question, and a verifiable journal."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from .demo_home import HOLD, DemoHome, Step

# Reads line by line and prints the first letter, which tells who typed it.
_READER = """
import sys
print("ready", flush=True)
for line in sys.stdin:
    print("read", line.strip()[:1], flush=True)
"""
# An agent that types as fast as it can, until it is refused; it prints the refusal last.
_FLOOD = """
import sys, holdfast
host = holdfast.connect()
session = host.session("shared")
session.send("a\\n", why="the agent's turn")
print("typing", flush=True)
try:
    while True:
        session.send("a\\n")
except holdfast.HoldfastError as e:
    print(e.code, e.message, flush=True)
"""


def a_person_takes_over(stage: DemoHome) -> str:
    verbs = "view,type,exec,request_control"
    stage.hold("operator", "add", "bot", "--kind", "agent", "--grant", verbs, "--session", "*")
    stage.hold("run", "-d", "-n", "shared", "--pipes", "--", sys.executable, "-uc", _READER)
    stage.ask("wait", "shared", "--for", "text=ready", "--timeout", "30")
    agent = subprocess.Popen(
        [sys.executable, "-c", _FLOOD],
        env={**stage.env, "HOLDFAST_OPERATOR": "bot"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        assert agent.stdout is not None
        stage.check(agent.stdout.readline() == b"typing\n", "an agent types into a session whose controls are free")
        stage.until(lambda: b"read a" in stage.hold("logs", "shared"), "and the program reads it")
        taken = stage.until(lambda: _taken(stage), "a person takes the controls")
        told = agent.communicate(timeout=60)[0].decode()
    finally:
        agent.kill()
        agent.wait()
    stage.check(told.startswith("conflict ") and "human" in told, "the refusal names the new holder", told=told)
    stage.hold("send", "shared", "--stdin", "--why", "let me finish this", stdin=b"h\n")
    stage.ask("wait", "shared", "--for", "text=read h", "--timeout", "30")
    late = stage.hold("logs", "shared").decode().split("read h")[1]
    stage.check("read a" not in late, "not a byte of the agent lands after that", late=late)
    stage.hold("hand", "shared", "bot", "--note", "yours again; I fixed the input")
    holder = stage.ask("status", "shared")["controls"]
    stage.check(
        holder["kind"] == "agent" and holder["epoch"] > taken["epoch"],
        "and gets them back with a note",
        controls=holder,
    )
    return f"the agent was flooding; taken at epoch {taken['epoch']}; it was refused: “{told.split(' ', 1)[1].strip()}”"


def _taken(stage: DemoHome) -> dict[str, object] | None:
    controls: dict[str, object] = stage.ask("take", "shared", "--why", "I will do this by hand")["controls"]
    return controls if controls["kind"] == "human" else None


def a_question_finds_a_person(stage: DemoHome) -> str:
    agent = subprocess.Popen(
        [*HOLD, "ask", "--json", "Which branch?", "--option", "main", "--option", "develop", "--wait", "60"],
        env={**stage.env, "HOLDFAST_OPERATOR": "bot"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        [item] = stage.until(lambda: _questions(stage), "what an agent asks waits in the inbox")
        stage.hold("answer", item["id"], "main")
        answered = json.loads(agent.communicate(timeout=60)[0])
    finally:
        agent.kill()
        agent.wait()
    stage.check(answered["answer"] == "main", "and the answer reaches the agent", answered=answered)
    stage.hold("run", "-d", "-n", "setup", "--", "sh", "-c", "printf 'Overwrite? [y/N] '; read x; echo got $x")
    stage.ask("wait", "setup", "--for", "input", "--timeout", "30")
    [prompt] = stage.until(lambda: [i for i in _inbox(stage) if i["kind"] == "input"], "a prompt is in the inbox too")
    stage.hold("answer", prompt["id"], "y")
    stage.ask("wait", "setup", "--for", "text=got y", "--timeout", "30")
    again = stage.ask("answer", prompt["id"], "n", code=5)
    stage.check("error" in again, "a prompt is answered once", again=again)
    return f"{item['id']}: main; “{prompt['text']}”: y, into that prompt, once"


def _inbox(stage: DemoHome) -> list[dict[str, object]]:
    found: list[dict[str, object]] = stage.ask("inbox")
    return found


def _questions(stage: DemoHome) -> list[dict[str, object]]:
    return [item for item in _inbox(stage) if item["kind"] == "question"]


def who_did_what(stage: DemoHome) -> str:
    story = stage.hold("timeline", "shared").decode()
    for words in ("bot", "took", "let me finish this"):
        stage.check(words in story, "the timeline shows who did what, and why", missing=words, timeline=story[-800:])
    good = stage.ask("journal", "verify")
    stage.check(good["ok"] and good["entries"] > 10, "the journal verifies", verified=good)
    stage.hold("down")
    changed = _rewrite(stage, b"bot", b"eve")
    bad = stage.ask("journal", "verify", code=1)
    stage.check(bad["ok"] is False, "one changed entry is found", verified=bad)
    stage.hold("down")
    _rewrite(stage, b"eve", b"bot")
    stage.check(stage.ask("journal", "verify")["ok"], "and restored, it verifies again")
    return f"{good['entries']} entries verified; with “bot” changed to “eve” in entry {changed}, the check names it"


def _rewrite(stage: DemoHome, old: bytes, new: bytes) -> int:
    """Change the words of an entry in the file."""
    with contextlib.closing(sqlite3.connect(stage.path("host.db"))) as db, db:
        n, body = next(row for row in db.execute("SELECT n, body FROM entries ORDER BY n") if old in row[1])
        db.execute("UPDATE entries SET body = ? WHERE n = ?", (body.replace(old, new), n))
    return int(n)


def alone_in_a_box(stage: DemoHome) -> str:
    if shutil.which("bwrap") is None:
        return "left out: bubblewrap is not installed"
    folder = tempfile.mkdtemp(prefix="holdfast-box-")
    look = f"ls {stage.home}; ls {stage.home}/keys; ls -d /proc/[0-9]* | wc -l"
    stage.hold("run", "-d", "-n", "box", "--isolate", "--cwd", folder, "--", "sh", "-c", look)
    stage.ask("wait", "box", "--for", "exit", "--timeout", "60")
    seen = stage.hold("logs", "box").decode()
    os.rmdir(folder)
    stage.check(
        "host.db" not in seen and ".key" not in seen,
        "an isolated program has no access to keys and other sessions",
        seen=seen,
    )
    return "`hold run --isolate`: no home, no keys, no other session; only its own socket"


STEPS: list[Step] = [
    ("An agent types; a person takes over", a_person_takes_over),
    ("A question, and a prompt, find a person", a_question_finds_a_person),
    ("A program in a sandbox", alone_in_a_box),
    ("Who did what, and its verification", who_did_what),
]
