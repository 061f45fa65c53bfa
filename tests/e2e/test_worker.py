"""`hold worker` as people use it: jobs of a module, what becomes of them, and mistakes in one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast.client._sync.host import Host
from tests.support.home import HOLD, HomeForTests, Result, until

DEADLINE_S = 90

APP = """
import os, signal, time
import holdfast
jobs = holdfast.Jobs()
empty = holdfast.Jobs()

@jobs.job
def add(run):
    return run.step("add", lambda a, b: a + b, run.params["a"], run.params["b"])

@jobs.job(name="add later")
async def later(run):
    async def add(a, b):
        return a + b
    return await run.step("add", add, run.params["a"], run.params["b"], effect="none")

@jobs.job
def broken(run):
    run.step("first", lambda: 1, effect="idempotent")
    raise KeyError("no such thing")

@jobs.job
def pays(run):
    def pay():
        raise ConnectionError("the line went dead")
    receipt = run.step("pay", pay)
    return {"receipt": receipt}

@jobs.job
async def pays_later(run):
    async def pay():
        raise ConnectionError("the line went dead")
    return {"receipt": await run.step("pay", pay)}

def paid(folder):
    import os
    return os.path.exists(f"{folder}/paid") or None

@jobs.job
def pays_and_raises(run):
    def pay(folder):
        open(f"{folder}/paid", "w").close()
        raise ConnectionError("the line went dead")
    return {"receipt": run.step("pay", pay, run.params["folder"], effect="verifiable", verify=paid)}

@jobs.job
async def pays_and_raises_later(run):
    async def pay(folder):
        open(f"{folder}/paid", "w").close()
        raise ConnectionError("the line went dead")
    return {"receipt": await run.step("pay", pay, run.params["folder"], effect="verifiable", verify=paid)}

@jobs.job
def raises_before_it_pays(run):
    def pay(folder):
        raise ConnectionError("no route to the bank")
    return {"receipt": run.step("pay", pay, run.params["folder"], effect="verifiable", verify=paid)}

@jobs.job
async def pays_too_slowly(run):
    import asyncio
    begun = asyncio.Event()
    async def pay(folder):
        open(f"{folder}/paid", "w").close()
        begun.set()
        await asyncio.sleep(60)
    step = asyncio.create_task(run.step("pay", pay, run.params["folder"], effect="verifiable", verify=paid))
    await begun.wait()
    await asyncio.wait_for(step, 0.1)

@jobs.job
def cannot_look(run):
    def pay():
        raise ConnectionError("the line went dead")
    def look():
        raise TimeoutError("the bank does not answer")
    return {"receipt": run.step("pay", pay, effect="verifiable", verify=look)}

@jobs.job
async def pays_on_a_thread(run):
    import asyncio, threading
    begun, go = threading.Event(), threading.Event()
    def pay(folder):
        begun.set()
        go.wait(60)
        open(f"{folder}/paid", "a").write("x")
        return "receipt"
    step = asyncio.create_task(run.step("pay", pay, run.params["folder"], effect="verifiable", verify=paid))
    await asyncio.to_thread(begun.wait, 60)
    try:
        await asyncio.wait_for(step, 0.1)
    finally:
        threading.Timer(0.2, go.set).start()

@jobs.job
def dies(run):
    run.step("first", lambda: 1, effect="none")
    os.kill(os.getpid(), signal.SIGKILL)

@jobs.job(max_crashes=1)
def sleeps(run):
    with open(run.params["begun"], "a") as begun:
        begun.write("x")
    while not os.path.exists(run.params["go"]):
        time.sleep(0.02)
    return "woken"

@jobs.job
def in_a_shell(run):
    return run.exec("build", run.params["session"], "echo built", timeout=60)["output"]
"""


@pytest.fixture
def started(hold: HomeForTests, tmp_path: Path) -> Iterator[Any]:
    """Start a `hold worker` that goes on beside the test, its lines in a file."""
    (tmp_path / "app.py").write_text(APP)
    made: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> tuple[subprocess.Popen[bytes], Path]:
        lines = tmp_path / f"worker{len(made)}.lines"
        with open(lines, "wb") as file:
            made.append(
                subprocess.Popen(
                    [*HOLD, "worker", "app:jobs", *words], env=hold.env, cwd=tmp_path, stdout=file, stderr=file
                )
            )
        return made[-1], lines

    yield start
    for process in made:
        process.kill()
        process.wait()


@pytest.fixture
def worker(hold: HomeForTests, tmp_path: Path) -> Any:
    """Run `hold worker` in a folder with app.py until nothing is left to do."""
    (tmp_path / "app.py").write_text(APP)

    def work(*words: str, jobs: str = "app:jobs") -> Result:
        done = subprocess.run(
            [*HOLD, "worker", jobs, "--once", *words],
            env=hold.env,
            cwd=tmp_path,
            capture_output=True,
            timeout=DEADLINE_S,
            check=False,
        )
        return Result(done)

    return work


def parked_items(hold: HomeForTests) -> list[dict[str, Any]]:
    return [i for i in hold("inbox", "--json").json if i["kind"] == "parked_run"]


def test_jobs_run_and_their_value_is_the_runs_outcome(host: Host, hold: HomeForTests, worker: Any) -> None:
    first = host.work.submit("add", {"a": 2, "b": 3})
    second = hold("work", "submit", "add later", "--params", '{"a": 4, "b": 5}', "--item", "add").out.strip()
    done = worker("--json", "--name", "w1")
    assert done.code == 0, done.err
    events = [json.loads(line) for line in done.out.splitlines()]
    assert [e["event"] for e in events] == ["ready", "begun", "done", "begun", "done", "stopped"]
    assert [(e["run"], e["outcome"]) for e in events if e["event"] == "done"] == [(first, 5), (second, 9)]
    assert [host.work.status(run)["outcome"] for run in (first, second)] == [5, 9]
    listed = hold("work", "ls", "--job", "add", "--state", "done", "--json").json
    assert [(r["run"], r["worker"]) for r in listed] == [(first, "w1")]


def test_a_job_that_raises_fails_its_run_and_the_worker_goes_on(host: Host, worker: Any) -> None:
    bad, good = host.work.submit("broken"), host.work.submit("add", {"a": 1, "b": 1})
    done = worker()
    assert done.code == 0
    assert f"broken {bad}: failed: KeyError: 'no such thing'" in done.err
    assert "Traceback" not in done.err
    status = host.work.status(bad)
    assert (status["state"], status["outcome"]["error"]) == ("failed", "KeyError: 'no such thing'")
    assert 'raise KeyError("no such thing")' in status["outcome"]["traceback"]
    assert host.work.status(good)["outcome"] == 2


@pytest.mark.parametrize("job", ["pays_and_raises", "pays_and_raises_later"])
def test_a_body_that_raises_is_looked_at_before_a_person_is_asked_and_the_job_goes_on(
    host: Host, worker: Any, tmp_path: Path, job: str
) -> None:
    run = host.work.submit(job, {"folder": str(tmp_path)})
    done = worker()
    assert (done.code, "waits for step" in done.err) == (0, False), done.err
    status = host.work.status(run)
    assert (status["state"], status["outcome"]) == ("done", {"receipt": True})
    (step,) = host.work.call("step_ls", run=run)
    assert (step["state"], step["error"]) == ("settled", "ConnectionError: the line went dead")
    assert step["evidence"] == "verify paid: True"


@pytest.mark.parametrize(
    ("job", "error", "outcome"),
    [
        ("raises_before_it_pays", "ConnectionError: no route to the bank", "not_done"),
        ("pays_too_slowly", "TimeoutError: ", "done"),  # cancelled: looked at when the job is over
        ("pays_on_a_thread", "TimeoutError: ", None),  # ended by itself after that, and never looked at
    ],
)
def test_a_job_that_raises_over_a_step_that_can_be_looked_at_has_failed_and_waits_for_nobody(
    host: Host, worker: Any, tmp_path: Path, job: str, error: str, outcome: str | None
) -> None:
    run = host.work.submit(job, {"folder": str(tmp_path)})
    done = worker()
    assert (done.code, "waits for step" in done.err) == (0, False), done.err
    status = host.work.status(run)
    assert (status["state"], status["outcome"]["error"]) == ("failed", error)
    (step,) = host.work.call("step_ls", run=run)
    assert (step["outcome"], step["tries"]) == (outcome, 1)
    assert step["state"] == ("settled" if outcome else "done")


def test_a_step_whose_look_fails_too_waits_for_a_person(host: Host, worker: Any) -> None:
    run = host.work.submit("cannot_look")
    assert "waits for step 'pay' to be settled" in worker().err
    assert host.work.status(run)["in_doubt"][0]["error"] == "ConnectionError: the line went dead"


@pytest.mark.parametrize("job", ["pays", "pays_later"])
def test_a_run_with_a_step_in_doubt_waits_for_a_person_and_then_goes_on(
    host: Host, hold: HomeForTests, worker: Any, job: str
) -> None:
    run = host.work.submit(job)
    done = worker()
    assert (done.code, "waits for step 'pay' to be settled" in done.err) == (1, True), done.err
    assert "1 of its runs wait for a person: hold work ls --state parked" in done.err
    assert [(r["run"], r["state"]) for r in hold("work", "ls", "--json").json] == [(run, "parked")]
    assert "\tparked\t" in hold("work", "ls", "--state", "parked").out
    status = hold("work", "status", run)
    assert "waits for\tpay" in status.out
    item = parked_items(hold)[0]
    assert (item["text"], item["detail"]["run"]) == (f"{job} {run} waits for step 'pay' to be settled", run)
    told = hold("answer", item["id"], "yes")
    assert (told.code, f"hold step settle {run} pay" in told.err, told.err.count("\n")) == (2, True, 1)
    told = hold("answer", item["id"], "--approve")
    assert (told.code, f"hold step settle {run} pay" in told.err) == (2, True)
    again = worker()
    assert (again.code, "begun" in again.err) == (1, False)  # it does not ask again and again
    assert [i["id"] for i in parked_items(hold)] == [item["id"]]  # and is one item, however often it is looked at
    assert hold("step", "settle", run, "pay", "--done", "--result", '"r7"', "--evidence", "the bank's list").code == 0
    assert parked_items(hold) == []
    assert worker().code == 0
    assert host.work.status(run)["outcome"] == {"receipt": "r7"}


def test_a_worker_of_the_same_name_does_not_take_what_another_one_holds(
    host: Host, worker: Any, started: Any, tmp_path: Path
) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    run = host.work.submit("sleeps", {"begun": str(begun), "go": str(go)})
    first, _ = started("--name", "W", "--once")
    until(begun.exists)
    other = host.work.submit("add", {"a": 1, "b": 1})
    second, lines = started("--name", "W", "--once")
    until(lambda: f"add {other}: done" in lines.read_text())  # it has looked, past the one that is held
    assert host.work.status(run)["worker"] == "W"
    go.touch()
    assert (first.wait(DEADLINE_S), second.wait(DEADLINE_S)) == (0, 0)
    assert (begun.read_text(), host.work.status(run)["epoch"], host.work.status(run)["outcome"]) == ("x", 1, "woken")


def test_a_job_that_kills_its_workers_is_parked_after_three_and_tried_again_when_asked(
    host: Host, hold: HomeForTests, worker: Any
) -> None:
    run = host.work.submit("dies")
    codes = [worker("--name", f"w{n}").code for n in range(5)]
    assert codes == [-signal.SIGKILL] * 3 + [1, 1]
    status = hold("work", "status", run, "--json").json
    assert (status["state"], status["crashes"], status["parked"]["reason"]) == ("parked", 3, "crashes")
    assert [c["worker"] for c in status["parked"]["crashes"]] == ["w0", "w1", "w2"]
    assert status["parked"]["last_step"] == "first"
    assert f"hold work retry {run}" in hold("work", "status", run).err
    assert [i["text"] for i in parked_items(hold)] == [f"dies {run}: 3 workers died at it, and no other one takes it"]
    assert hold("work", "retry", run, "--why", "looked at it").code == 0
    assert parked_items(hold) == []
    assert worker().code == -signal.SIGKILL
    assert host.work.status(run)["state"] == "active"


def test_a_worker_that_was_asked_to_stop_and_killed_for_being_slow_has_not_crashed(
    host: Host, worker: Any, started: Any, tmp_path: Path
) -> None:
    begun, go = tmp_path / "begun", tmp_path / "go"
    run = host.work.submit("sleeps", {"begun": str(begun), "go": str(go)})
    first, _ = started("--lease", "2s")
    until(begun.exists)
    first.terminate()
    until(lambda: any(e["body"].get("event") == "leaving" for e in host.work.call("log_read", run=run)))
    first.kill()
    go.touch()
    assert worker().code == 0
    status = host.work.status(run)
    assert (status["crashes"], status["outcome"], begun.read_text()) == (0, "woken", "xx")


def test_a_job_can_run_a_command_in_a_session(host: Host, hold: HomeForTests, worker: Any) -> None:
    shell = hold.run(name="dev")
    run = host.work.submit("in_a_shell", {"session": "dev"})
    assert worker().code == 0
    status = host.work.status(run)
    assert status["outcome"] == "built\n"
    assert [s["session"] for s in status["sessions"]] == [shell.id]


def test_mistakes_are_one_line_with_what_to_do(hold: HomeForTests, worker: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("import no_such_module")
    (tmp_path / "worse.py").write_text("raise RuntimeError('two\\nlines')")
    for jobs, code, said in (
        ("app", 2, "is not MODULE:JOBS"),
        ("app:", 2, "is not MODULE:JOBS"),
        ("nowhere:jobs", 3, "no module 'nowhere' here"),
        ("app:others", 3, "others = holdfast.Jobs()"),
        ("app:holdfast", 3, "has no jobs"),
        ("app:empty", 2, "has no job yet"),
        ("bad:jobs", 2, "ModuleNotFoundError: No module named 'no_such_module'"),
        ("worse:jobs", 2, "RuntimeError: two"),
    ):
        told = worker(jobs=jobs)
        assert (told.code, told.err.count("\n")) == (code, 1), told.err
        assert said in told.err
        assert told.out == ""
    assert worker("--lease", "0s").code == 2
    assert worker("--lease", "soon").code == 2
    assert worker("--lease", "900d").code == 2
    assert json.loads(worker("--json", jobs="nowhere:jobs").out)["error"]["code"] == "not_found"
    assert hold("work", "submit").code == 2
    assert hold("work", "submit", "add", "--params", "[1]").code == 2
    assert hold("work", "ls", "--json").json == []


def test_jobs_are_registered_once_each() -> None:
    jobs = holdfast.Jobs()

    def one(run: Any) -> None: ...

    jobs.job(one)
    jobs.job(one)
    jobs.job(one, name="two")
    assert jobs.names == ["one", "two"]
    with pytest.raises(holdfast.HoldfastError, match="two jobs 'two'"):
        jobs.job(lambda run: None, name="two")
    with pytest.raises(holdfast.HoldfastError):
        jobs.job(3)  # type: ignore[arg-type]


def test_a_worker_that_cannot_reach_its_store_says_so(hold: HomeForTests, worker: Any) -> None:
    hold.env["HOLDFAST_STORE"] = "postgresql://nobody@127.0.0.1:1/none"
    told = worker()
    assert (told.code, told.err.count("\n")) == (1, 2), told.err  # that it looks for work, and that it cannot
    assert "cannot reach postgresql://nobody@127.0.0.1:1/none" in told.err
    assert os.path.exists(hold.path)
