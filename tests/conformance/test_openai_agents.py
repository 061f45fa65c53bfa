"""The OpenAI Agents SDK's session on both stores."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents.memory import Session, SessionSettings

from holdfast.integrations.openai_agents import HoldfastSession
from holdfast.model.errors import HoldfastError


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        made: str = request.getfixturevalue("postgres").url()
        return made
    return f"sqlite:///{tmp_path}/talk.db"


def said(n: int) -> Any:
    return {"role": "user", "content": f"héllo {n}"}


async def test_a_conversation_is_kept_in_order_and_found_by_another_process(url: str) -> None:
    async with HoldfastSession.open("a", url) as session, HoldfastSession.open("b", url) as other:
        assert isinstance(session, Session)
        assert await session.get_items() == []
        await session.add_items([said(1), said(2)])
        await session.add_items([said(3)])
        await session.add_items([])
        await other.add_items([said(9)])
    async with HoldfastSession.open("a", url) as session:
        assert await session.get_items() == [said(1), said(2), said(3)]
        assert await session.get_items(limit=2) == [said(2), said(3)]
        assert await session.get_items(limit=0) == []
        assert await session.pop_item() == said(3)
        await session.add_items([said(4)])
        assert await session.get_items() == [said(1), said(2), said(4)]
        await session.clear_session()
        assert (await session.get_items(), await session.pop_item()) == ([], None)
    async with HoldfastSession.open("b", url, session_settings=SessionSettings(limit=1)) as other:
        await other.add_items([said(10)])
        assert await other.get_items() == [said(10)]


async def test_items_added_at_the_same_time_are_all_there(url: str) -> None:
    async with HoldfastSession.open("a", url) as one, HoldfastSession.open("a", url) as two:
        await asyncio.gather(*(s.add_items([said(n), said(n)]) for n in range(20) for s in (one, two)))
        items: Any = await one.get_items()
        assert len(items) == 80
        assert all(a == b for a, b in zip(items[::2], items[1::2], strict=True))  # what was added together stays so
        popped = await asyncio.gather(*(s.pop_item() for _ in range(40) for s in (one, two)))
        assert len(popped) == 80
        assert await two.pop_item() is None


async def test_a_real_runner_keeps_its_turns_in_it(url: str) -> None:
    from agents import Agent, RunConfig, Runner
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    class Parrot(Model):
        """The model is the world around us: it answers with how much it was given."""

        async def get_response(self, *args: Any, **options: Any) -> ModelResponse:
            given = options.get("input", args[1] if len(args) > 1 else [])
            words = ResponseOutputText(text=f"heard {len(given)}", type="output_text", annotations=[])
            message = ResponseOutputMessage(
                id="m", type="message", role="assistant", status="completed", content=[words]
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *args: Any, **options: Any) -> Any:
            raise NotImplementedError

    agent: Any = Agent(name="parrot", model=Parrot())
    config = RunConfig(tracing_disabled=True)
    async with HoldfastSession.open("a", url) as session:
        assert (await Runner.run(agent, "one", session=session, run_config=config)).final_output == "heard 1"
    async with HoldfastSession.open("a", url) as session:
        assert (await Runner.run(agent, "two", session=session, run_config=config)).final_output == "heard 3"
        assert len(await session.get_items()) == 4


async def test_what_cannot_be_kept_is_refused_and_nothing_of_it_stays(url: str) -> None:
    async with HoldfastSession.open("a", url) as session:
        for bad in ("\ud800", object()):
            with pytest.raises(HoldfastError):
                await session.add_items([said(1), {"content": bad}])  # type: ignore[list-item]
        assert await session.get_items() == []
