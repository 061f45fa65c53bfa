"""Agents over MCP on stdio: the SDK's own client, both eras, real programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.mcp import schemas
from tests.support.agents import ERAS, Refused, every_tool, on_stdio
from tests.support.home import HomeForTests

LATER = {"resume", "claim"}


@pytest.mark.parametrize("era", ERAS)
async def test_every_tool_works_over_stdio(hold: HomeForTests, tmp_path: Path, era: str) -> None:
    async with on_stdio(hold, era) as tools:
        listed = {tool.name for tool in (await tools.client.list_tools()).tools}
        assert await every_tool(tools, tmp_path) | LATER == listed


@pytest.mark.parametrize("era", ERAS)
async def test_the_schemas_stay_within_their_tokens(hold: HomeForTests, era: str) -> None:
    async with on_stdio(hold, era) as tools:
        listed = await tools.client.list_tools()
    text = json.dumps([t.model_dump(by_alias=True, exclude_none=True, mode="json") for t in listed.tools],
                      separators=(",", ":"), ensure_ascii=False)  # fmt: skip
    tokens = len(text) / schemas.CHARS_PER_TOKEN
    print(f"{len(listed.tools)} tools, {len(text)} characters, {tokens:.0f} tokens by estimate")
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
