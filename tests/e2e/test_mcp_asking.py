"""The tool `ask`: a person's answer is told as one, and nothing else is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import mcp_types as types
import pytest

from tests.support.agents import ERAS, Json, on_stdio, over_http
from tests.support.home import HomeForTests
from tests.support.web import serve, token

Dialog = Callable[[Any, types.ElicitRequestParams], Any]


def dialog(action: str, content: Json | None = None, after_s: float = 0.0) -> Dialog:
    """A client's dialog, and what comes of it: at once where no person is there, later where one thinks."""

    async def show(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        await asyncio.sleep(after_s)
        return types.ElicitResult(action=action, content=content)  # type: ignore[arg-type]

    return show


@pytest.mark.parametrize("era", ERAS)
async def test_a_question_goes_through_the_clients_own_dialog_where_it_has_one(hold: HomeForTests, era: str) -> None:
    asked: list[str] = []

    async def show(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content={"answer": "next"})

    async with on_stdio(hold, era, elicitation_callback=show) as tools:
        told = await tools("ask", text="Which branch?", options=["main", "next"])
        assert (told["state"], told["answer"]) == ("answered", "next")
    assert asked == ["Which branch?"]
    assert hold.host.inbox(all=True) == []


@pytest.mark.parametrize("era", ERAS)
async def test_a_no_after_a_moment_is_a_persons(hold: HomeForTests, era: str) -> None:
    async with on_stdio(hold, era, elicitation_callback=dialog("decline", after_s=1.1)) as tools:
        told = await tools("ask", text="Push it?")
        assert (told["state"], told["via"]) == ("denied", "client")
    assert hold.host.inbox(all=True) == []


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("name", "answer"),
    [
        ("cancelled", dialog("cancel")),
        ("declined at once", dialog("decline")),
        ("accepted without words", dialog("accept")),
        ("not one of the options", dialog("accept", {"answer": "maybe"})),
        ("no dialog", None),
    ],
)
async def test_a_question_that_no_person_saw_goes_to_the_inbox(
    hold: HomeForTests, era: str, name: str, answer: Dialog | None
) -> None:
    options: Json = {} if answer is None else {"elicitation_callback": answer}
    async with on_stdio(hold, era, **options) as tools:
        told = await tools("ask", text="Push it?", options=["yes", "no"], wait_s=0)
        assert (told["state"], told["via"]) == ("open", "inbox"), name
        assert told["next"] == f"wait for=answer={told['ask']}"
        (item,) = hold.host.inbox()
        assert (item.id, item.text, item.options) == (told["ask"], "Push it?", ["yes", "no"])
        assert (item.asker or {})["name"] == "mcp-tester"
        hold.host.answer(item.id, "no")
        seen = await tools("wait", **{"for": f"answer={told['ask']}"})
        assert (seen["event"], seen["state"], seen["answer"]) == ("answer", "answered", "no")


@pytest.mark.parametrize("era", ERAS)
async def test_over_http_a_cancelled_dialog_is_an_item_as_well(hold: HomeForTests, era: str) -> None:
    url, secret = serve(hold), token(hold, "remote")
    async with over_http(url, secret, era, elicitation_callback=dialog("cancel")) as tools:
        told = await tools("ask", text="Push it?", wait_s=0)
        assert told["state"] == "open"
        assert [item.id for item in hold.host.inbox()] == [told["ask"]]
