"""The job that the example agents do, and the failures that they survive.

The agents of agent_mcp.py, agent_openai.py and agent_langgraph.py do this job. None of them keeps any state:
before each act they call `resume`. `next_call` stands in for a model.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Call = tuple[str, Json]  # a tool, and its arguments
Work = Callable[[int | None], Awaitable[bool]]  # work until it is done (True), or for so many calls (False)

FOLDER = Path(os.environ.get("AGENT_FOLDER") or tempfile.gettempdir())
TASK = "publish"
PARTS = ("orders", "stock", "people", "summary")
GOAL = "The report is served on a local page, and each of its parts was written once"


# -- the job


def named(session: str) -> str:
    """A name of this folder's own: names are unique on a host."""
    return f"{session}-{FOLDER.name.rpartition('-')[2]}"


def plan() -> list[Json]:
    """Four commands for a shell that is held. They take a moment, and one that ran twice would show in the page."""
    write = "echo {0} >> begun; sleep 1; echo '<p>{0}</p>' >> site/index.html"
    return [
        {"key": f"write:{part}", "session": named("desk"), "effect": "unsafe", "command": write.format(part)}
        for part in PARTS
    ]


def begin() -> list[Call]:
    """What a run begins with: a shell, a server, the claim that it serves, and a plan that anybody can go on with."""
    port = int((FOLDER / "port").read_text())
    server = f"exec {shlex.quote(sys.executable)} -m http.server {port} --bind 127.0.0.1 --directory site"
    return [
        ("run", {"name": named("desk"), "cwd": str(FOLDER), "command": "exec bash --norc", "why": "a place to work"}),
        ("run", {"name": named("page"), "cwd": str(FOLDER), "command": server, "why": "it shows the page"}),
        ("wait", {"session": named("page"), "for": f"port={port}"}),
        ("claim", {"do": "add", "task": TASK, "port": port, "session": named("page")}),
    ]


def decide(told: Json, known: Json) -> list[Call]:
    """The next calls, from what `resume` says and from nothing else. Empty: it is done."""
    todo = told["next_action"]
    if todo["kind"] == "done":
        return []
    if todo["kind"] == "start_task":
        return [("task", {"do": "start", "task": TASK, "why": "nothing is in its way"})]
    if todo["kind"] in ("continue_run", "settle_step"):
        # The same step again: what is done is not done again, and a command that still runs is waited for.
        entry = next(e for e in plan() if e["key"] == todo["step"])
        return [
            (
                "exec",
                {
                    "session": entry["session"],
                    "command": entry["command"],
                    "effect": entry["effect"],
                    "step": f"{todo['run']}:{entry['key']}",
                    "why": "next in the plan",
                },
            )
        ]
    if todo["kind"] == "rerun_verification" and "nothing was planned" in todo["why"]:
        save = ("checkpoint", {"run": todo["run"], "state": {"goal": GOAL, "plan": plan()}})
        there = {s["session"] for s in known["sessions"]}
        return [c for c in begin() if c[0] != "run" or c[1]["name"] not in there] + [save]
    if todo["kind"] == "rerun_verification":
        return [("task", {"do": "done", "task": TASK, "why": "nothing is left in the plan"})]
    raise SystemExit(f"this agent does not know how to {todo['kind']}: {todo['why']}")


def next_call(conversation: list[tuple[str, Json]]) -> Call | None:
    """What the agent calls next, from the (tool, result) pairs of its conversation so far; None: it is done.

    A round is: ask how the work stands, look what runs, do what follows from that. Then it is asked again.
    """
    asked = [n for n, (tool, _) in enumerate(conversation) if tool == "resume"]
    if not asked:
        return "resume", {"task": TASK}
    this_round = [result for _, result in conversation[asked[-1] :]]
    if len(this_round) == 1:
        return "status", {}
    todo, made = decide(this_round[0], this_round[1]), len(this_round) - 2
    if not todo:
        return None
    return todo[made] if made < len(todo) else ("resume", {"task": TASK})


def server() -> tuple[str, list[str]]:
    """The MCP server (`hold mcp`), started so that the story can find it to kill it."""
    mcp = shlex.join([sys.executable, "-m", "holdfast.cli.main", "mcp", "--name", "example"])
    return "/bin/sh", ["-c", f"cd {shlex.quote(str(FOLDER))}; echo $$ > server.pid; exec {mcp} 2>> server.log"]


# -- the story


def say(words: str) -> None:
    print(words, flush=True)


def hold(*words: str) -> str:
    command = [sys.executable, "-m", "holdfast.cli.main", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=FOLDER).stdout


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise SystemExit("it did not come about")
        time.sleep(0.02)


def lines(name: str) -> list[str]:
    file = FOLDER / name
    return file.read_text().split() if file.exists() else []


async def lost_connection(work: Work) -> None:
    """Kill the server under a working agent, as a crash or an upgrade would."""
    working = asyncio.ensure_future(work(None))
    while "stock" not in lines("begun") and not working.done():
        await asyncio.wait({working}, timeout=0.02)
    os.kill(int((FOLDER / "server.pid").read_text()), signal.SIGKILL)
    await asyncio.wait({working})
    say(f"   its connection broke: {type(working.exception()).__name__}; begun so far: {lines('begun')}")


def story(file: str, work: Work) -> None:
    """Tell it, in a folder of its own. With `work` as its argument the program is the agent's first process."""
    if sys.argv[1:] == ["work"]:
        asyncio.run(work(None))
        return
    global FOLDER
    FOLDER = Path(tempfile.mkdtemp(prefix="holdfast-agent-"))
    os.environ.update(AGENT_FOLDER=str(FOLDER), HOLDFAST_PROJECT=FOLDER.name)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        (FOLDER / "port").write_text(str(free.getsockname()[1]))
    (FOLDER / "site").mkdir()
    check = f"{shlex.quote(sys.executable)} {shlex.quote(str(Path(__file__).resolve()))} check"
    hold("project", "init", FOLDER.name)
    hold("task", "add", "Publish the report", "--id", TASK, "--goal", GOAL, "--verify", check)
    try:
        tell(file, work)
    finally:
        for session in json.loads(hold("ls", "--json")):
            if session["cwd"] == str(FOLDER):
                hold("stop", session["id"])
        shutil.rmtree(FOLDER, ignore_errors=True)


def tell(file: str, work: Work) -> None:
    say("1. An agent starts a server and begins to work. Its process is killed during a command.")
    agent = subprocess.Popen([sys.executable, file, "work"])
    until(lambda: "orders" in lines("begun") or agent.poll() is not None)
    agent.kill()
    agent.wait()
    say(f"   begun: {lines('begun')}, written: {lines('site/index.html')}")
    say("2. Another agent, with an empty memory, calls resume. After three calls it loses its memory too.")
    assert asyncio.run(work(3)) is False
    say(f"   begun: {lines('begun')}, written: {lines('site/index.html')}")
    say("3. A third agent continues, and its connection is killed.")
    asyncio.run(lost_connection(work))
    say("4. The last agent finishes, through resume.")
    assert asyncio.run(work(None)) is True
    say(f"   the page: {lines('site/index.html')}")
    say(f"   the task: {json.loads(hold('task', 'show', TASK, '--json'))['status']}")


def check() -> None:
    """The task's verification: the server that was started at the beginning serves each part once."""
    from urllib.request import urlopen

    port = int((FOLDER / "port").read_text())
    with urlopen(f"http://127.0.0.1:{port}/index.html", timeout=10) as page:
        found = page.read().decode().split()
    if found != [f"<p>{part}</p>" for part in PARTS]:
        raise SystemExit(f"the page is {found}")


if __name__ == "__main__" and sys.argv[1:] == ["check"]:
    FOLDER = Path.cwd()
    check()
