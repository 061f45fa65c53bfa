"""A job begins at its beginning under each worker. What it noted and saved on the way is there once, in its order."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

from holdfast.client._sync.host import Host
from tests.support.home import HOLD, HomeForTests

DEADLINE_S = 90

APP = """
import os, signal
import holdfast
jobs = holdfast.Jobs()

def dies(run, place):
    path = f"{run.params['folder']}/{place}"
    if not os.path.exists(path):
        open(path, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)

@jobs.job
def sync(run):
    run.note("begins")
    run.checkpoint(current_step=0)
    dies(run, "early")
    run.step("one", lambda: 1, effect="none")
    run.note("one is done", why="it was")
    run.message({"role": "user", "content": "hello"}, why="asked to")
    run.set("n", 1)
    run.checkpoint(current_step=1, label="one")
    run.each("batch", lambda item: item, ["x", "y"], effect="idempotent")
    run.note("same")
    run.note("same")
    run.set("n", 2)
    run.checkpoint(current_step=2)
    dies(run, "late")
    run.note("goes on")
    return run.checkpoint(current_step=3)["seq"]

@jobs.job
async def waits(run):
    async def one():
        return 1
    await run.note("begins")
    await run.checkpoint(current_step=0)
    await run.step("one", one)
    await run.note("one is done")
    await run.checkpoint(current_step=1)
    dies(run, "late")
    await run.note("goes on")
    return (await run.checkpoint(current_step=2))["seq"]
"""


def work(hold: HomeForTests, folder: Path, deaths: int) -> None:
    """Workers until it is done; so many of them die."""
    (folder / "app.py").write_text(APP)
    for code in [-signal.SIGKILL] * deaths + [0]:
        words = [*HOLD, "worker", "app:jobs", "--once"]
        done = subprocess.run(words, env=hold.env, cwd=folder, capture_output=True, timeout=DEADLINE_S, check=False)
        assert done.returncode == code, done.stderr


def said(host: Host, run: str, *kinds: str) -> list[object]:
    return [e["body"] for e in host.work.call("log_read", run=run) if e["kind"] in kinds]


def saved(host: Host, run: str) -> list[object]:
    """`current_step` of each milestone, in the order in which they were made."""
    made = [c["seq"] for c in host.work.call("checkpoint_ls", run=run) if c["kind"] == "milestone"]
    return [host.work.call("checkpoint_show", run=run, seq=seq)["state"]["current_step"] for seq in made]


def test_notes_and_checkpoints_of_a_job_whose_workers_died_are_there_once(
    host: Host, hold: HomeForTests, tmp_path: Path
) -> None:
    run = host.work.submit("sync", {"folder": str(tmp_path)})
    work(hold, tmp_path, deaths=2)
    notes = [n["text"] if isinstance(n, dict) else n for n in said(host, run, "note")]
    assert notes == ["begins", "one is done", "same", "same", "goes on"]
    assert said(host, run, "message") == [{"role": "user", "content": "hello"}]
    assert said(host, run, "reasoning") == [{"action": "append a message", "text": "asked to"}]
    assert [b["value"] for b in said(host, run, "scratch")] == [1, 2]  # type: ignore[index]
    assert saved(host, run) == [0, 1, 2, 3]
    status = host.work.status(run)
    assert (status["state"], status["crashes"]) == ("done", 2)
    state = host.work.call("state_at", run=run)["state"]
    assert (state["current_step"], len(state["messages"])) == (3, 1)


def test_the_same_for_a_job_that_is_a_coroutine(host: Host, hold: HomeForTests, tmp_path: Path) -> None:
    run = host.work.submit("waits", {"folder": str(tmp_path)})
    work(hold, tmp_path, deaths=1)
    assert said(host, run, "note") == ["begins", "one is done", "goes on"]
    assert saved(host, run) == [0, 1, 2]


def test_whoever_resumes_a_run_without_a_job_says_new_things(host: Host) -> None:
    """A person or an agent goes on; it does not begin anew, and nothing it says is taken for what was said before."""
    run = host.work.run(task="t")
    run.note("first")
    run.checkpoint(current_step=1)
    run.close()
    with host.work.run(task="t") as again:
        assert again.resumed
        again.note("second")
        again.checkpoint(current_step=2)
    assert said(host, run.id, "note") == ["first", "second"]
    assert saved(host, run.id) == [1, 2]
