"""Paths that a request names: nothing of the owner's is opened for an agent, and nothing that is named makes anyone wait."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.client import claim_files
from holdfast.client._async.host import AsyncHost
from holdfast.client._sync.host import Host
from holdfast.model.errors import HoldfastError
from tests.support.agents import ERAS, Refused, on_stdio, over_http
from tests.support.home import HomeForTests
from tests.support.web import serve, token

Json = dict[str, Any]


@pytest.fixture
def agent(hold: HomeForTests) -> Iterator[Host]:
    """An agent with its own key, which may do durable work."""
    made = hold("operator", "add", "bot", "--kind", "agent")
    assert made.code == 0, made.err
    with Host(str(hold.path), operator="bot") as host:
        yield host


@pytest.mark.parametrize("era", ERAS)
async def test_over_http_no_file_of_the_owner_is_read(hold: HomeForTests, tmp_path: Path, era: str) -> None:
    url = serve(hold)
    secret = tmp_path / "secret.txt"
    secret.write_text("the owner's")
    key = next((hold.path / "keys").iterdir())
    async with over_http(url, token(hold, "remote"), era) as tools:
        shown = {tool.name: tool.input_schema["properties"] for tool in (await tools.client.list_tools()).tools}
        assert "path" not in shown["artifact"]
        assert "file" not in shown["claim"]
        run = (await tools("task", do="start", task="t"))["run"]
        for path in (key, secret, "/etc/passwd", "/no/such/file"):  # the answer does not tell which of them are there
            with pytest.raises(Refused, match="a path cannot be read over HTTP") as refused:
                await tools("artifact", run=run, name="x", path=str(path))
            assert refused.value.code == "not_allowed"
            with pytest.raises(Refused, match="not over HTTP"):
                await tools("claim", do="add", run=run, file=str(path))
        assert (await tools("artifact", run=run))["artifacts"] == []


async def test_over_http_a_claim_about_a_file_is_told_as_it_was_last_looked_at(
    hold: HomeForTests, tmp_path: Path
) -> None:
    url, secret = serve(hold), tmp_path / "secret.txt"
    secret.write_text("the owner's")
    async with over_http(url, token(hold, "remote")) as tools:
        run = (await tools("task", do="start", task="t"))["run"]
        host = AsyncHost(str(hold.path), operator="remote")
        guess = {"sha256": "0" * 64, "size": 1}
        for path in (secret, tmp_path / "absent"):
            await host.work.call("claim_add", kind="file", spec={"path": str(path)}, seen=guess, run=run)
        host.close()
        told = await tools("claim", do="check", run=run)
        first, second = ({k: v for k, v in claim.items() if k != "id"} for claim in told["claims"])
        assert first == second, "whether a file is there is not told"
        brief = (await tools("resume", task=run))["brief"]
    assert "is gone" not in brief
    assert "SHA-256 is" not in brief


async def test_on_stdio_a_file_of_the_project_is_kept_and_any_other_needs_a_persons_yes(
    hold: HomeForTests, tmp_path: Path
) -> None:
    project, outside = tmp_path / "project", tmp_path / "outside.txt"
    (project / ".git").mkdir(parents=True)
    (project / "sub").mkdir()
    (project / "report.md").write_text("all well")
    outside.write_text("not the agent's")
    (project / "link.md").symlink_to(outside)
    os.mkfifo(project / "pipe")
    async with on_stdio(hold, cwd=project / "sub", env={"HOLDFAST_MCP_WAIT_MAX": "1"}) as tools:
        run = (await tools("task", do="start", task="t"))["run"]
        await tools("artifact", run=run, path="../report.md")
        assert (await tools("artifact", run=run, name="report.md"))["content"] == "all well"
        for path, words in (
            ("../pipe", "not a regular file"),
            ("/dev/null", "not a regular file"),
            ("/proc/self/environ", "no regular file"),
            ("../absent", "No such file"),
        ):
            with pytest.raises(Refused, match=words):
                await tools("artifact", run=run, path=path)
        with pytest.raises(Refused, match="Holdfast's own files"):
            await tools("artifact", run=run, path=str(next((hold.path / "keys").iterdir())))
        waiting = await tools("artifact", run=run, path="../link.md")
        assert waiting["state"] == "waiting_for_approval"
        assert (await tools("artifact", run=run, path=str(outside)))["ask"] == waiting["ask"], "it is one file"
        item = hold("inbox", "--json").json[0]
        assert (item["id"], item["kind"]) == (waiting["ask"], "approval")
        assert str(outside) in item["text"]
        assert hold("answer", waiting["ask"], "--approve").code == 0
        await tools("artifact", run=run, path="../link.md")
        assert (await tools("artifact", run=run, name="link.md"))["content"] == "not the agent's"
        again = await tools("artifact", run=run, path="../link.md")
        assert again["ask"] != waiting["ask"], "a yes counts once"
        assert hold("answer", again["ask"], "--deny").code == 0
        with pytest.raises(Refused, match="is not read: denied"):
            await tools("artifact", run=run, path="../link.md")


@pytest.mark.parametrize(
    "path", ["fifo", "/dev/zero", "/dev/tty", "/proc/self/environ", "/proc/kmsg", "/sys/kernel/profiling"]
)
def test_a_claimed_file_is_a_regular_one_and_nothing_waits_for_any_other(tmp_path: Path, path: str) -> None:
    os.mkfifo(tmp_path / "fifo")
    found = claim_files.look(os.path.join(tmp_path, path), {})
    assert "regular file" in found.get("error", "") or found == {"exists": False}


async def test_the_host_does_not_wait_for_a_pipe_that_a_report_of_a_verification_names(
    hold: HomeForTests, tmp_path: Path, agent: Host
) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert hold("project", "init", "shop", "--root", str(tmp_path)).code == 0
    checks = [{"command": "true", "timeout_s": 5.0}]
    session = agent.run(["python3", "-I", str(tmp_path / "pipe"), json.dumps(checks)], cwd=str(tmp_path))
    agent.call("kill", session=session.id, signal="SIGKILL")
    session.wait(exit=True, timeout=30)
    assert hold("task", "add", "t", "--id", "1", "--project", "shop", "--verify", "true").code == 0
    run = agent.work.call("task_start", task="1", project="shop")
    results = [{"command": "true", "state": "passed", "exit_code": 0, "session": session.id, "tail": ""}]

    async def reported() -> None:
        host = AsyncHost(str(hold.path), operator="bot")
        try:
            await host.work.call("task_done", task="1", project="shop", run=run["run"], results=results)
        finally:
            host.close()

    async with asyncio.timeout(30):
        for one in await asyncio.gather(*(reported() for _ in range(12)), return_exceptions=True):
            assert isinstance(one, HoldfastError)
            assert "ran no verification" in one.message


def test_the_host_looks_at_no_program_that_a_contract_names(hold: HomeForTests, tmp_path: Path, agent: Host) -> None:
    """Who writes the contract looks, with their own rights; the host keeps it as it is."""
    assert hold("project", "init", "shop", "--root", str(tmp_path)).code == 0
    (tmp_path / "plain.txt").touch()
    for name, words in (("absent", "is not there"), ("plain.txt", "is not executable")):
        told = hold("task", "add", "t", "--project", "shop", "--verify", f"./{name}")
        assert (told.code, words in told.err) == (2, True), told.err
        asked = {"project": "shop", "title": "t", "contract": {"verification": [f"./{name}"]}, "request": f"req_{name}"}
        made = agent.call("task_add", **asked)  # as whoever leaves the look out
        assert made["status"]
        edit = hold("task", "edit", made["task_id"], "--project", "shop", "--verify", "./other")
        assert "verification[2] cannot run: ./other is not there" in edit.err
