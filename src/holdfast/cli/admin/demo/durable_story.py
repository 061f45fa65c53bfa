"""Demo steps with a durable run: a job is killed between an effect and its outcome, and nothing is done twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from .demo_home import DemoHome, Step

_JOB_S = 90.0  # a worker that waits for a lease of two seconds, on a machine that is very busy
# Moves batches into a file, one line each; it kills itself right after the effect of the third.
_JOB = """
import os, signal, sys, holdfast
target, dies = sys.argv[1], sys.argv[2]

def move(batch):
    with open(target, "a") as f:
        f.write(batch + "\\n")
    if batch == dies:
        os.kill(os.getpid(), signal.SIGKILL)
    return batch

with holdfast.connect() as host, host.work.run(task="migration", items=list("abcde"), lease=2, wait=60) as run:
    print(run.id, flush=True)
    run.checkpoint(goal="move five batches", constraints=["each one once"])
    for batch in "abcde":
        run.step(f"move:{batch}", move, batch, effect="unsafe")
"""


def killed_in_the_middle(stage: DemoHome) -> str:
    target = stage.path("moved")
    done = _job(stage, target, "c")
    stage.check(done.returncode == -9, "the worker is killed right after an effect", code=done.returncode)
    run = done.stdout.decode().split()[0]
    stage.seen["run"] = run
    stage.check(_moved(target) == list("abc"), "three batches are moved by then", moved=_moved(target))
    return f"{run}: a and b are done and recorded; c was moved, and its worker died before it could say so"


def nothing_is_done_twice(stage: DemoHome) -> str:
    run, target = stage.seen["run"], stage.path("moved")
    again = _job(stage, target, "-")  # waits for the dead worker's lease to run out
    stage.check(b"StepInDoubt" in again.stderr, "the next worker does not guess", stderr=again.stderr[-400:])
    stage.check(_moved(target) == list("abc"), "and has done nothing again", moved=_moved(target))
    doubt = [s["key"] for s in stage.ask("step", "ls", run) if s["state"] == "in_doubt"]
    stage.check(doubt == ["move:c"], "the step that needs a check is named", in_doubt=doubt)
    stage.hold("step", "settle", run, "move:c", "--done", "--result", '"c"', "--evidence", "c is in the file")
    last = _job(stage, target, "-")
    stage.check(last.returncode == 0, "settled, the next one finishes", stderr=last.stderr[-400:])
    stage.check(last.stdout.decode().split()[0] == run, "the same run continues", stdout=last.stdout)
    stage.check(_moved(target) == list("abcde"), "each batch was moved exactly once", moved=_moved(target))
    state = stage.ask("checkpoint", "show", run)
    stage.check("move five batches" in json.dumps(state), "and the goal is still on record", checkpoint=state)
    return "c was in doubt, settled by a person with evidence; then d and e; each batch moved exactly once"


def _job(stage: DemoHome, target: str, dies: str) -> subprocess.CompletedProcess[bytes]:
    stage.last = "a worker in Python"
    words = [sys.executable, "-c", _JOB, target, dies]
    return subprocess.run(words, env=stage.env, capture_output=True, timeout=_JOB_S, check=False)


def _moved(target: str) -> list[str]:
    if not os.path.exists(target):
        return []
    with open(target, encoding="utf-8") as f:
        return f.read().split()


STEPS: list[Step] = [
    ("A job is killed between an effect and its outcome", killed_in_the_middle),
    ("Another finishes it: nothing is done twice", nothing_is_done_twice),
]
