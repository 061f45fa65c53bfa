"""Whom an MCP connection acts as: an agent of its own, narrow, attributed, and overruled by people at any moment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from holdfast.mcp.agent import name_from
from tests.support.agents import ERAS, Refused, on_stdio
from tests.support.home import HomeForTests
from tests.support.operators import enrol, journal


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_enrolled_on_first_use_and_what_it_does_is_its_own(hold: HomeForTests, era: str) -> None:
    async with on_stdio(hold, era, client="Claude Code") as tools:
        assert (await tools("status"))["you"] == "claude-code"
        await tools("run", name="shell", why="to try things")
        await tools("exec", session="shell", command="true", why="a first command")
    (made,) = [o for o in hold.host.operators() if o["name"] == "claude-code"]
    assert made["kind"] == "agent"
    (grant,) = made["grants"]
    assert grant["sessions"] == ["@own"]
    assert not {"approve", "delegate", "enrol"} & set(grant["verbs"])
    done = {(e["kind"], e["name"], e["why"]) for e in journal(hold, "start", "exec")}
    assert done == {("start", "claude-code", "to try things"), ("exec", "claude-code", "a first command")}
    async with on_stdio(hold, era, client="Claude Code") as tools:
        assert [s["session"] for s in (await tools("status"))["sessions"]] == ["shell"], "the same agent finds it again"
    assert len([o for o in hold.host.operators() if o["kind"] == "agent"]) == 1


async def test_the_name_can_be_chosen_and_is_never_a_persons(hold: HomeForTests) -> None:
    person = hold.host.whoami()["name"]
    async with on_stdio(hold, "legacy", "--name", "reviewer") as tools:
        assert (await tools("status"))["you"] == "reviewer"
    async with on_stdio(hold, client=person) as tools:
        assert (await tools("status"))["you"] == f"{person}-mcp"
    for given, name in (("Visual Studio Code", "visual-studio-code"), ("", "agent"), ("…", "agent"), ("a/b\n", "a-b")):
        assert name_from(given) == name


async def test_an_agent_sees_only_its_own_until_a_person_grants_more(hold: HomeForTests) -> None:
    theirs = hold.run(name="private")
    async with on_stdio(hold) as tools:
        assert (await tools("status"))["sessions"] == []
        with pytest.raises(Refused) as refused:
            await tools("read", session="private")
        assert refused.value.code == "not_found"
        hold.host.grant("mcp-tester", ["view"], sessions=["private"])
        assert (await tools("read", session="private"))["id"] == theirs.id
        with pytest.raises(Refused) as refused:
            await tools("exec", session="private", command="true")
        assert refused.value.code == "not_allowed"


async def test_a_person_takes_over_and_the_agents_next_call_says_so(hold: HomeForTests) -> None:
    async with on_stdio(hold) as tools:
        await tools("run", name="shell")
        await tools("exec", session="shell", command="echo mine")
        person = hold.host.whoami()["name"]
        session = hold.host.session("shell")
        session.take(why="let me look")
        for tool, args in (("exec", {"command": "echo no"}), ("send", {"text": "no"}), ("kill", {"signal": "INT"})):
            with pytest.raises(Refused) as refused:
                await tools(tool, session="shell", **args)
            assert refused.value.code in ("conflict", "stale_epoch")
            assert person in refused.value.message, "it says who"
        held = (await tools("status", session="shell"))["controls"]
        assert (held["held_by"], held["kind"]) == (person, "human")
        assert held["since"]
        assert (await tools("read", session="shell"))["controls"]["held_by"] == person
        session.release()
        assert (await tools("exec", session="shell", command="echo again"))["output"] == "again\n"


async def test_a_revoked_agent_is_refused_and_not_enrolled_again(hold: HomeForTests) -> None:
    async with on_stdio(hold) as tools:
        await tools("run", name="shell")
        hold.host.revoke("mcp-tester")
        with pytest.raises(Refused) as refused:
            await tools("status")
        assert refused.value.code == "not_allowed"
    async with on_stdio(hold) as tools:
        with pytest.raises(Refused) as refused:
            await tools("status")
        assert (refused.value.code, "revoked" in refused.value.message) == ("not_allowed", True)
    assert [o["name"] for o in hold.host.operators(all=True) if o["kind"] == "agent"] == ["mcp-tester"]


async def test_a_server_inside_an_agents_session_acts_as_that_agent_and_no_wider(
    hold: HomeForTests, tmp_path: Path
) -> None:
    enrol(hold, "narrow", verbs=["view", "exec", "type"], sessions=["narrow-*"])
    hold.run(name="narrow-shell", acts_as="narrow")
    hold.run(name="private")
    program = tmp_path / "inside.py"
    program.write_text(_INSIDE)
    # A program inside the session starts the server as a client would, under another name, and asks around.
    done = hold.host.session("narrow-shell").exec(f"{sys.executable} {program} {sys.executable}", timeout=90)
    assert done.exit_code == 0, done.output
    said = done.output.split()
    assert said == ["narrow", "narrow-shell", "not_allowed", "not_found"]
    assert not any(o["name"] == "somebody-else" for o in hold.host.operators(all=True))


_INSIDE = """
import asyncio, sys
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
import os

async def main():
    server = StdioServerParameters(command=sys.argv[1], args=["-m", "holdfast.cli.main", "mcp", "--name", "somebody-else"],
                                   env=dict(os.environ))
    async with Client(stdio_client(server), mode="legacy") as client:
        async def call(name, /, **args):
            return (await client.call_tool(name, args)).structured_content
        seen = await call("status")
        print(seen["you"], *[s["session"] for s in seen["sessions"]])
        print((await call("run", name="narrow-more"))["error"]["code"])
        print((await call("read", session="private"))["error"]["code"])

asyncio.run(main())
"""
