"""The four failures that agents live with, and what becomes of them here."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from tests.support.agents import ERAS, Refused, Tools, on_stdio
from tests.support.home import HomeForTests, alive, until, until_async
from tests.support.operators import journal

SERVER = """python3 -c 'import http.server as h; s = h.HTTPServer(("127.0.0.1", 0), h.SimpleHTTPRequestHandler)
print("port", s.server_port, flush=True); s.serve_forever()'"""


async def _port(tools: Tools, session: str) -> int:
    seen = await tools("wait", session=session, **{"for": r"text=port \d+\s", "from": 0}, wait_s=60)
    while seen["event"] == "timeout":
        seen = await tools("wait", session=session, **{"for": r"text=port \d+\s", "from": seen["offset"]})
    return int(seen["detail"]["match"].split()[1])


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_outlives_the_agent_and_is_found_again_with_its_port(hold: HomeForTests, era: str) -> None:
    async with on_stdio(hold, era) as tools:
        started = await tools("run", name="web", command=SERVER, why="the dev server")
        port = await _port(tools, "web")
    hold.kill_daemon()  # and the host with it
    async with on_stdio(hold, era) as tools:
        (found,) = (await tools("ports"))["ports"]
        assert (found["port"], found["session"]) == (port, "web")
        assert (await tools("ports", port=port))["ports"] == [found]
        (web,) = (await tools("status"))["sessions"]
        assert web["ports"] == [port]
        assert (await tools("status", session="web"))["pid"] == started["pid"]
        assert alive(found["pid"])


@pytest.mark.parametrize("era", ERAS)
async def test_a_password_prompt_is_answered_by_a_person_and_the_secret_stays_with_them(
    hold: HomeForTests, tmp_path: Path, era: str
) -> None:
    secret = "correct-horse-9317"
    proof = tmp_path / "proof"
    ask = f"""python3 -c 'import getpass, hashlib; p = getpass.getpass("Vault password: ")
open("{proof}", "w").write(hashlib.sha256(p.encode()).hexdigest()); print("unlocked")'"""
    async with on_stdio(hold, era) as tools:
        await tools("run", name="deploy")
        asked = await tools("exec", session="deploy", command=ask, why="to deploy")
        while asked["state"] == "running":
            asked = await tools("wait", session="deploy", **{"for": f"done={asked['exec_id']}"})
            asked.setdefault("state", "running")
        assert asked["state"] == "waiting_for_secret", "not guessed from the text: the terminal does not echo"
        assert "password" in asked["prompt"].lower()
        with pytest.raises(Refused) as refused:
            await tools("send", session="deploy", text="hunter2", enter=True)
        assert refused.value.code == "not_allowed"
        assert "hold" not in refused.value.message
        (item,) = [i for i in hold.host.inbox() if i.kind == "secret"]
        hold.host.answer(item.id, secret)
        done = await tools("wait", session="deploy", **{"for": f"done={asked['exec_id']}"}, wait_s=60)
        while done["event"] == "timeout":
            done = await tools("wait", session="deploy", **{"for": f"done={asked['exec_id']}"})
        assert (done["exit_code"], "unlocked" in done["output"]) == (0, True)
        seen = [done, await tools("read", session="deploy"), await tools("status", session="deploy")]
    assert proof.exists()
    assert secret not in str(seen)
    assert secret not in str(journal(hold))
    hold.host.close()
    until(lambda: not _holding(hold.path, secret))


def _holding(folder: Path, secret: str) -> list[Path]:
    """Files of a home that contain a text."""
    found = []
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file() and secret.encode() in path.read_bytes():
                found.append(path)
    return found


@pytest.mark.parametrize("era", ERAS)
async def test_a_half_applied_migration_is_resumed_not_redone(hold: HomeForTests, tmp_path: Path, era: str) -> None:
    base = tmp_path / "app.db"
    with contextlib.closing(sqlite3.connect(base)) as db:
        db.execute("CREATE TABLE applied (batch TEXT)")
        db.commit()

    def batch(n: int) -> str:
        return f"python3 -c \"import sqlite3; d = sqlite3.connect('{base}'); d.execute('INSERT INTO applied VALUES ({n})'); d.commit()\""

    async with on_stdio(hold, era) as tools:
        await tools("run", name="shell", cwd=str(tmp_path))
        run = (await tools("task", do="start", task="migrate"))["run"]
        await tools("checkpoint", run=run, state={"goal": "apply batches 1 to 3", "plan": ["1", "2", "3"]})
        first = await tools("exec", session="shell", command=batch(1), step=f"{run}:batch-1", why="migrate")
        assert (first["exit_code"], first["step"]["decision"]) == (0, "execute")
        # Begun by hand, and the agent is lost before it can say how it ended.
        begun = await tools("step", run=run, do="begin", key="batch-2", args=["2"], why="migrate batch 2")
        assert begun["decision"] == "execute"
        await tools("exec", session="shell", command=batch(2))
    async with on_stdio(hold, era) as tools:
        again = (await tools("task", do="start", task="migrate"))["run"]
        assert again == run
        brief = await tools("resume", task=run)
        assert "apply batches 1 to 3" in brief["brief"]
        await tools("run", name="mine", cwd=str(tmp_path))
        reused = await tools("exec", session="mine", command=batch(1), step=f"{run}:batch-1")
        assert (reused["step"]["decision"], reused["exit_code"]) == ("reuse", 0)
        doubt = await tools("step", run=run, do="begin", key="batch-2", args=["2"])
        assert doubt["decision"] == "in_doubt", "never silently run again"
        with contextlib.closing(sqlite3.connect(base)) as db:
            there = db.execute("SELECT count(*) FROM applied WHERE batch = '2'").fetchone()[0]
        assert there == 1
        await tools(
            "step", run=run, do="settle", key="batch-2", outcome="done", result={"rows": 1}, evidence="the row is there"
        )
        third = await tools("exec", session="mine", command=batch(3), step=f"{run}:batch-3")
        assert third["exit_code"] == 0
    with contextlib.closing(sqlite3.connect(base)) as db:
        assert [row[0] for row in db.execute("SELECT batch FROM applied ORDER BY batch")] == ["1", "2", "3"]


@pytest.mark.parametrize("era", ERAS)
async def test_a_false_memory_is_corrected_with_evidence(hold: HomeForTests, era: str) -> None:
    async with on_stdio(hold, era) as tools:
        run = (await tools("task", do="start", task="serve"))["run"]
        await tools("run", name="web", command=SERVER)
        port = await _port(tools, "web")
        assert (await tools("claim", do="add", run=run, port=port, session="web"))["state"] == "holds"
        await tools(
            "checkpoint", run=run, state={"goal": "serve the site", "context": {"memory": f"it runs on :{port}"}}
        )
        assert (await tools("claim", do="check", run=run))["hold"] is True
    hold.host.session("web").kill("KILL")
    assert hold.host.session("web").wait(exit=True, timeout=60).event != "timeout"
    async with on_stdio(hold, era) as tools:
        checked = await tools("claim", do="check", run=run)
        (claim,) = checked["claims"]
        assert (checked["hold"], claim["state"]) == (False, "drifted")
        assert "SIGKILL" in str(claim), "how it ended is the evidence"
        brief = (await tools("resume", task=run))["brief"]
        assert str(port) in brief
        assert "SIGKILL" in brief


def _project(hold: HomeForTests, root: Path) -> None:
    hold.host.work.tasks.init("site", root=str(root))


@pytest.mark.parametrize("era", ERAS)
async def test_a_task_is_done_when_its_verification_says_so(hold: HomeForTests, tmp_path: Path, era: str) -> None:
    _project(hold, tmp_path)
    async with on_stdio(hold, era, "--wait-max", "60", cwd=tmp_path) as tools:
        contract = {"verification": [{"command": "test -e built"}]}
        added = await tools("task", do="add", task="build", more={"title": "Build it", "contract": contract})
        assert added["task_id"] == "build"
        assert [t["task_id"] for t in (await tools("task", do="ls"))["tasks"]] == ["build"]
        begun = await tools("task", do="next")
        assert begun["task_id"] == "build"
        with pytest.raises(Refused) as refused:
            await tools("task", do="done", task="build")
        assert refused.value.code == "failed"
        await tools("run", name="shell", cwd=str(tmp_path))
        await tools("exec", session="shell", command="touch built", step=f"{begun['run']}:touch")
        done = await tools("task", do="done", task="build", why="it is built")
        assert [v["state"] for v in done["verification"]] == ["passed"]
        assert (await tools("task", do="show", task="build"))["status"] == "done"
        assert (await tools("task", do="next"))["run"] is None
        tasks = (await tools.client.read_resource("hold://tasks")).contents[0]
        assert "build" in str(tasks)
        report = (await tools.client.read_resource("hold://report")).contents[0]
        assert "build" in str(report)


async def test_a_verification_that_outlasts_the_client_is_joined_not_repeated(
    hold: HomeForTests, tmp_path: Path
) -> None:
    count, gate = tmp_path / "count", tmp_path / "gate"
    os.mkfifo(gate)
    _project(hold, tmp_path)
    async with on_stdio(hold, "legacy", "--wait-max", "500ms", cwd=tmp_path) as tools:
        contract = {"verification": [{"command": f"echo once >> {count}; cat {gate}"}]}
        await tools("task", do="add", task="slow", more={"title": "Slowly", "contract": contract})
        await tools("task", do="start", task="slow")
        told = await tools("task", do="done", task="slow")
        assert told["state"] == "verifying"
        told = await tools("task", do="done", task="slow")
        assert told["state"] == "verifying"
        await until_async(count.exists, 60)
        await asyncio.to_thread(gate.write_text, "go\n")
        while told.get("state") == "verifying":
            told = await tools("task", do="done", task="slow")
    assert [v["state"] for v in told["verification"]] == ["passed"]
    assert count.read_text() == "once\n"
