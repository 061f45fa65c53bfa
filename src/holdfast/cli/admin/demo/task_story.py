"""Demo steps with tasks: verification, a second backend after a failed first one, and a new worker that continues."""

from __future__ import annotations

import os
import signal
import sys

from .demo_home import DemoHome, Step

# A server that prints the port it got, so that no free one has to be guessed.
SERVER = (
    "import http.server as h; s = h.ThreadingHTTPServer(('127.0.0.1', 0), h.SimpleHTTPRequestHandler);"
    "print(s.server_port, flush=True); s.serve_forever()"
)


def not_done_because_somebody_says_so(stage: DemoHome) -> str:
    stage.ask("project", "init", "shop", "--phase", "build", "--phase", "ship", "--root", stage.work())
    stage.hold(
        "task",
        "add",
        "Greet",
        "--id",
        "1",
        "--phase",
        "build",
        "--goal",
        "greeting.txt says hello",
        "--constraint",
        "no new dependency",
        "--verify",
        "grep -q hello greeting.txt",
    )
    stage.hold("task", "add", "Ship it", "--id", "2", "--phase", "ship", "--after", "1", "--verify", "true")
    stage.hold("task", "start", "1")
    stage.hold("task", "done", "1", code=1)
    state = stage.ask("project", "show")
    stage.check(state["active_phase"] == "build", "a phase does not advance on a failed verification", project=state)
    shown = stage.ask("task", "show", "1")
    stage.check(shown["status"] == "active", "and the task is as it was", task=shown)
    return "`hold task done 1` ran `grep -q hello greeting.txt`, which failed: the task is not done, the phase stays"


def the_second_backend_finishes(stage: DemoHome) -> str:
    stage.hold("backend", "add", "hasty", "--", "sh", "-c", "echo helo > greeting.txt")
    stage.hold(
        "backend",
        "add",
        "careful",
        "--",
        "sh",
        "-c",
        'grep -q verification_failed "$HOLDFAST_BRIEF" && echo hello > greeting.txt',
    )
    stage.hold("policy", "set", "--set", 'backends=["hasty", "careful"]')
    stage.hold("task", "fail", "1", "--why", "left to a runner")
    stage.hold("work", "run", "--once")
    shown = stage.ask("task", "show", "1")
    used = [(a["backend"], a["outcome"]) for a in shown["attempts"]]
    stage.check(used[-2:] == [("hasty", "failed"), ("careful", "done")], "the next one finishes", attempts=used)
    state = stage.ask("project", "show")
    stage.check(
        all(t["status"] == "done" for t in state["tasks"]) and state["completed_phases"] == ["build", "ship"],
        "then the next phase is open, and done too",
        project=state,
    )
    return "hasty wrote `helo` and was refused; careful was given the contract and why hasty failed, and finished"


def a_stranger_goes_on(stage: DemoHome) -> str:
    stage.hold(
        "task",
        "add",
        "Keep it up",
        "--id",
        "3",
        "--phase",
        "ship",
        "--goal",
        "the shop answers",
        "--constraint",
        "on this machine only",
    )
    stage.hold("task", "start", "3")
    web = stage.ask("run", "-d", "-n", "shop", "--restart", "never", "--", sys.executable, "-c", SERVER)
    port = int(stage.until(lambda: stage.hold("logs", web["id"]).strip(), "the server says its port"))
    stage.hold("wait", web["id"], "--for", f"port={port}", "--timeout", "30")
    stage.hold("claim", "add", "--task", "3", "--session", web["id"])
    os.kill(web["pid"], signal.SIGKILL)
    stage.hold("wait", web["id"], "--for", "exit", "--timeout", "30")
    brief = stage.ask("resume", "--max-tokens", "500")
    action = brief["next_action"]
    stage.check(brief["goal"] == "the shop answers", "the brief states the goal", brief=brief)
    stage.check("SIGKILL" in action["why"], "the memory is corrected, with evidence", next_action=action)
    stage.check(action["command"][:2] == ["hold", "restart"], "and the brief says what to do", next_action=action)
    stage.hold(*action["command"][1:])
    checked = stage.ask("claim", "check", "--task", "3")
    stage.check([c["state"] for c in checked] == ["holds"], "revived, the claim holds", claims=checked)
    why, command = action["why"].partition(": ")[2], " ".join(action["command"])
    return f"“shop is live” was no longer true: {why}; `{command}` fixed it"


STEPS: list[Step] = [
    ("A task is not done until its verification passes", not_done_because_somebody_says_so),
    ("One backend fails, the next is told why, and finishes", the_second_backend_finishes),
    ("The conversation is lost: a new worker reads 500 tokens and continues", a_stranger_goes_on),
]
