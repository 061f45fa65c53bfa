"""Word of what others did: sessions that a person starts and tasks that a person adds are news to an agent's client."""

from __future__ import annotations

import asyncio
from typing import Any

import mcp_types as types
import pytest
from mcp.shared.subscriptions import ResourcesListChanged, ResourceUpdated

from tests.support.agents import ERAS, Tools, on_stdio, over_http
from tests.support.home import HomeForTests
from tests.support.operators import acting_as
from tests.support.web import serve, token

TASKS = "hold://tasks"


class Heard:
    """What a client of the handshake era was told."""

    def __init__(self) -> None:
        self.words: asyncio.Queue[str] = asyncio.Queue()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self.words.put_nowait(str(message.params.uri))
        elif isinstance(message, types.ResourceListChangedNotification):
            self.words.put_nowait("list")

    async def hears(self, word: str) -> None:
        async with asyncio.timeout(60):
            while await self.words.get() != word:
                pass


async def seeing(hold: HomeForTests, tools: Tools) -> None:
    """The agent may see sessions of people that are called `web-…`."""
    await tools("status")
    assert hold("operator", "grant", "mcp-tester", "--grant", "view", "--session", "web-*").code == 0


async def listed(tools: Tools) -> set[str]:
    return {str(r.uri) for r in (await tools.client.list_resources()).resources}


async def in_a_thread(hold: HomeForTests, *words: str) -> None:
    assert (await asyncio.to_thread(hold, *words)).code == 0


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")  # from the era that this is about
async def test_a_client_of_the_handshake_era_hears_of_what_a_person_starts_ends_and_adds(hold: HomeForTests) -> None:
    heard = Heard()
    async with on_stdio(hold, message_handler=heard) as tools:
        await seeing(hold, tools)
        assert "hold://sessions/web-1/log" not in await listed(tools)
        await in_a_thread(hold, "run", "-d", "-n", "web-1", "--", "sleep", "600")
        await heard.hears("list")
        assert "hold://sessions/web-1/log" in await listed(tools)
        await in_a_thread(hold, "rename", "web-1", "web-2")
        await heard.hears("list")
        async with asyncio.timeout(60):
            while "hold://sessions/web-2/log" not in await listed(tools):
                await heard.hears("list")
        await in_a_thread(hold, "stop", "web-2")
        await heard.hears("list")
        await in_a_thread(hold, "project", "init", "demo")
        await tools.client.subscribe_resource(TASKS)
        await in_a_thread(hold, "task", "add", "one more")
        await heard.hears(TASKS)
        one = f"{TASKS}/demo%2F1"
        await tools.client.subscribe_resource(one)
        await in_a_thread(hold, "task", "edit", "demo/1", "--title", "another word for it")
        await heard.hears(one)


async def test_a_listener_of_the_stateless_era_hears_of_a_session_that_a_person_starts(hold: HomeForTests) -> None:
    async with on_stdio(hold, ERAS[1]) as tools:
        await seeing(hold, tools)
        await in_a_thread(hold, "project", "init", "demo")
        client = tools.client
        async with client.listen(resource_subscriptions=[TASKS], resources_list_changed=True) as stream:
            await in_a_thread(hold, "run", "-d", "-n", "web-1", "--", "sleep", "600")
            assert await asyncio.wait_for(anext(stream), 60) == ResourcesListChanged()
            await in_a_thread(hold, "task", "add", "one more")
            while (event := await asyncio.wait_for(anext(stream), 60)) != ResourceUpdated(uri=TASKS):
                assert event == ResourcesListChanged()


async def test_what_an_agent_may_not_see_is_no_news_to_it(hold: HomeForTests) -> None:
    async with on_stdio(hold, ERAS[1]) as tools:
        await seeing(hold, tools)
    with acting_as(hold, "mcp-tester") as tester:
        known = tester.call("news", of="list")["mark"]
        hold("run", "-d", "-n", "secret", "--", "sleep", "600")
        still = tester.call("news", of="list", after=known, timeout=0)
        assert still["subjects"] == []
        hold("run", "-d", "-n", "web-1", "--", "sleep", "600")
        assert tester.call("news", of="list", after=still["mark"])["subjects"] == ["list"]


async def test_a_listener_hears_that_its_grant_was_revoked(hold: HomeForTests) -> None:
    heard = Heard()
    async with on_stdio(hold, message_handler=heard) as tools:
        await seeing(hold, tools)
        await in_a_thread(hold, "run", "-d", "-n", "web-1", "--", "sleep", "600")
        assert "hold://sessions/web-1/log" in await listed(tools)
        grants = next(o["grants"] for o in hold.host.operators() if o["name"] == "mcp-tester")
        shown = next(str(g["id"]) for g in grants if g["sessions"] == ["web-*"])
        await in_a_thread(hold, "operator", "revoke", shown)
        await heard.hears("list")
        assert "hold://sessions/web-1/log" not in await listed(tools)


async def test_a_listener_goes_on_with_the_next_host(hold: HomeForTests) -> None:
    heard = Heard()
    async with on_stdio(hold, message_handler=heard) as tools:
        await seeing(hold, tools)
        await listed(tools)
        await in_a_thread(hold, "down")
        await in_a_thread(hold, "run", "-d", "-n", "web-1", "--", "sleep", "600")
        await heard.hears("list")


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_over_http_hears_of_it_too(hold: HomeForTests, era: str) -> None:
    url = serve(hold)
    secret = token(hold, "mcp-tester")
    assert hold("operator", "grant", "mcp-tester", "--grant", "view", "--session", "web-*").code == 0
    heard = Heard()
    async with over_http(url, secret, era, message_handler=heard) as tools:
        if era == ERAS[0]:
            await listed(tools)
            await in_a_thread(hold, "run", "-d", "-n", "web-1", "--", "sleep", "600")
            await heard.hears("list")
            return
        async with tools.client.listen(resources_list_changed=True) as stream:
            await in_a_thread(hold, "run", "-d", "-n", "web-1", "--", "sleep", "600")
            assert await asyncio.wait_for(anext(stream), 60) == ResourcesListChanged()
