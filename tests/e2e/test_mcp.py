"""Agents over MCP on stdio: the SDK's own client, both eras, real programs."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated

from holdfast.mcp.tools import schemas
from tests.support.agents import ERAS, Refused, every_tool, on_stdio
from tests.support.home import HomeForTests, until_async

pytestmark = pytest.mark.home("file")


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.home("own")
async def test_every_tool_works_over_stdio(hold: HomeForTests, tmp_path: Path, era: str) -> None:
    async with on_stdio(hold, era) as tools:
        listed = {tool.name for tool in (await tools.client.list_tools()).tools}
        assert await every_tool(tools, tmp_path) == listed


@pytest.mark.parametrize("era", ERAS)
async def test_the_schemas_stay_within_their_tokens(hold: HomeForTests, era: str) -> None:
    async with on_stdio(hold, era) as tools:
        listed = await tools.client.list_tools()
    text = json.dumps(
        [t.model_dump(by_alias=True, exclude_none=True, mode="json") for t in listed.tools],
        separators=(",", ":"),
        ensure_ascii=False,
    )
    tokens = len(text) / schemas.CHARS_PER_TOKEN
    sys.stdout.write(f"{len(listed.tools)} tools, {len(text)} characters, {tokens:.0f} tokens by estimate\n")
    assert tokens <= schemas.TOKENS_MAX


@pytest.mark.parametrize("era", ERAS)
async def test_an_error_is_structured_and_says_what_to_do(hold: HomeForTests, era: str) -> None:
    async with on_stdio(hold, era) as tools:
        for tool, args, code in (
            ("exec", {"session": "nowhere", "command": "true"}, "not_found"),
            ("exec", {"session": "nowhere"}, "invalid"),
            ("read", {"session": "nowhere", "bogus": 1}, "invalid"),
            ("read", {"session": 7}, "invalid"),
            ("wait", {"for": "exit"}, "invalid"),
            ("step", {"run": "run_x", "do": "dance"}, "invalid"),
            ("teleport", {}, "not_found"),
        ):
            with pytest.raises(Refused) as refused:
                await tools(tool, **args)
            assert refused.value.code == code
            assert refused.value.hint


# -- output


async def test_long_output_keeps_head_and_tail_and_names_what_is_left_out(hold: HomeForTests) -> None:
    async with on_stdio(hold) as tools:
        await tools("run", name="shell")
        done = await tools("exec", session="shell", command="seq 1 20000", max_tokens=200)
        assert done["output"].startswith("1\n2\n3\n")
        assert done["output"].endswith("\n19999\n20000\n")
        assert len(done["output"]) < 200 * 4 + 200
        (gap,) = done["omitted"]
        text, at = "", gap["from"]
        while at < gap["to"]:
            part = await tools("read", session="shell", **{"from": at}, max_tokens=5000)
            text += part["text"]
            at = part["next"]
        missing = text[: text.index(done["output"].rpartition("…]\n")[2][:40])]
        whole = done["output"].partition("\n[…")[0] + "\n" + missing
        assert whole.split() == [str(n) for n in range(1, len(whole.split()) + 1)], "nothing between is lost"


async def test_reading_consumes_nothing_and_ansi_is_gone(hold: HomeForTests) -> None:
    async with on_stdio(hold) as one, on_stdio(hold) as other:
        await one("run", name="shell")
        done = await one("exec", session="shell", command=r"printf '\033[31mred\033[0m and \033]0;title\007plain\n'")
        assert done["output"] == "red and plain\n"
        await one("wait", session="shell", **{"for": "input"})  # the prompt is there: nothing more is printed
        first = await one("read", session="shell")
        assert "red and plain" in first["text"]
        for reader in (one, other):
            assert (await reader("read", session="shell"))["text"] == first["text"]
        assert (await one("read", session="shell", **{"from": first["next"]}))["text"] == ""
        assert (await one("read", session="shell", exec_id=done["exec_id"]))["output"] == "red and plain\n"


async def test_an_ended_session_answers_with_its_exact_code(hold: HomeForTests) -> None:
    async with on_stdio(hold) as tools:
        await tools("run", name="job", command="echo last words; exit 42")
        seen = await tools("wait", session="job", **{"for": "exit"})
        while seen["event"] == "timeout":
            seen = await tools("wait", session="job", **{"for": "exit"})
        assert seen["detail"]["exit"]["code"] == 42
    async with on_stdio(hold, ERAS[1]) as tools:
        assert (await tools("status", session="job"))["exit"]["code"] == 42
        assert "last words" in (await tools("read", session="job"))["text"]


# -- waiting


async def test_a_wait_ends_before_a_client_gives_up_and_goes_on_from_its_cursor(hold: HomeForTests) -> None:
    async with on_stdio(hold, "legacy", "--wait-max", "300ms") as tools:
        await tools("run", name="shell")
        begun = await tools("exec", session="shell", command="read line; echo got $line; sleep 600")
        assert begun["state"] == "waiting_for_input"
        at, rounds = begun["end"], 0
        seen = await tools("wait", session="shell", **{"for": "text=got it", "from": at})
        assert seen["event"] == "timeout"
        await tools("send", session="shell", text="it", enter=True)
        while seen["event"] == "timeout" and rounds < 100:
            seen = await tools("wait", session="shell", **{"for": "text=got it", "from": seen["offset"]})
            rounds += 1
        assert seen["event"] == "text"
        again = await tools("wait", session="shell", **{"for": f"done={begun['exec_id']}"})
        assert again["event"] == "timeout", "the command goes on"


@pytest.mark.parametrize("era", ERAS)
async def test_a_long_wait_tells_of_its_progress(hold: HomeForTests, era: str) -> None:
    heard: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        heard.append(done)

    async with on_stdio(hold, era) as tools:
        await tools("run", name="shell")
        seen = await tools("wait", session="shell", **{"for": "port=1"}, wait_s=3.5, progress=progress)
        assert seen["event"] == "timeout"
    assert len(heard) >= 2
    assert heard == sorted(heard)


@pytest.mark.parametrize("era", ERAS)
async def test_cancelling_a_call_ends_the_wait_and_nothing_else(hold: HomeForTests, tmp_path: Path, era: str) -> None:
    mark, gate = tmp_path / "mark", tmp_path / "gate"
    os.mkfifo(gate)
    async with on_stdio(hold, era, "--wait-max", "500") as tools:
        await tools("run", name="shell")
        call = asyncio.create_task(tools("exec", session="shell", command=f"touch {mark}; cat {gate}", wait_s=500))
        await until_async(mark.exists, 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        seen = await tools("status", session="shell")
        assert seen["state"] == "live"
        (begun,) = [e for e in seen["recent"] if e["did"] == "exec"]
        await asyncio.to_thread(gate.write_text, "it went on\n")
        done = await tools("wait", session="shell", **{"for": f"done={begun['exec_id']}"}, wait_s=60)
        assert (done["exit_code"], done["output"]) == (0, "it went on\n")


# -- resources and the guide


@pytest.mark.parametrize("era", ERAS)
async def test_screens_logs_and_the_guide_are_resources(hold: HomeForTests, era: str) -> None:
    async with on_stdio(hold, era) as tools:
        await tools("run", name="shell")
        await tools("exec", session="shell", command="echo on the screen")
        client = tools.client
        names = {str(r.uri) for r in (await client.list_resources()).resources}
        assert {"hold://guide", "hold://sessions/shell/screen", "hold://sessions/shell/log"} <= names
        for uri in ("hold://sessions/shell/screen", "hold://sessions/shell/log"):
            (content,) = (await client.read_resource(uri)).contents
            assert isinstance(content, types.TextResourceContents)
            assert "on the screen" in content.text
            assert content.text.startswith("The text below is a program's output")
        (guide,) = (await client.read_resource("hold://guide")).contents
        assert isinstance(guide, types.TextResourceContents)
        page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()
        assert guide.text == page, "docs/agents.md is the guide that is served"
        (message,) = (await client.get_prompt("guide")).messages
        assert isinstance(message.content, types.TextContent)
        assert message.content.text == page
        with pytest.raises(MCPError):
            await client.read_resource("hold://sessions/nowhere/log")
        with pytest.raises(MCPError):
            await client.read_resource("file:///etc/passwd")
        if era == "legacy":
            assert "resume" in (client.instructions or "")


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")  # from the era that this is about
async def test_a_subscriber_of_the_handshake_era_hears_of_new_output(hold: HomeForTests) -> None:
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def listen(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.put_nowait(str(message.params.uri))
        elif isinstance(message, types.ResourceListChangedNotification):
            heard.put_nowait("list")

    async with on_stdio(hold, message_handler=listen) as tools:
        await tools("run", name="shell")
        assert await asyncio.wait_for(heard.get(), 60) == "list"
        await tools.client.subscribe_resource("hold://sessions/shell/log")
        await tools("exec", session="shell", command="echo news")
        assert await asyncio.wait_for(heard.get(), 60) == "hold://sessions/shell/log"


async def test_a_listener_of_the_stateless_era_hears_of_new_output(hold: HomeForTests) -> None:
    async with on_stdio(hold, ERAS[1]) as tools:
        await tools("run", name="shell")
        watched = "hold://sessions/shell/log"
        async with tools.client.listen(resource_subscriptions=[watched], resources_list_changed=True) as stream:
            await tools("exec", session="shell", command="echo news")
            assert await asyncio.wait_for(anext(stream), 60) == ResourceUpdated(uri=watched)
            await tools("run", name="second")
            while (event := await asyncio.wait_for(anext(stream), 60)) != ResourcesListChanged():
                assert event == ResourceUpdated(uri=watched)
