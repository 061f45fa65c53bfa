"""LangGraph's own conformance suite over both stores, and what a saver here promises beyond it."""

from __future__ import annotations

import operator
import random
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from holdfast.integrations.langgraph import HoldfastSaver, _SerdeCodec
from holdfast.integrations.store_thread import LIST
from holdfast.model.errors import HoldfastError

TESTS = 81  # of the conformance package, 0.0.2; a later one has more


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        made: str = request.getfixturevalue("postgres").url()
        return made
    return f"sqlite:///{tmp_path}/graph.db"


@pytest.fixture
def saver(url: str) -> Iterator[HoldfastSaver]:
    with HoldfastSaver.open(url) as made:
        yield made


async def test_all_eight_capabilities_are_there_and_every_conformance_test_passes(url: str) -> None:
    @checkpointer_test(name="holdfast")
    async def factory() -> AsyncIterator[HoldfastSaver]:
        async with HoldfastSaver.open(url) as saver:
            yield saver

    report = await validate(factory)
    # "FULL" is also said of a saver without the extended ones, so each is looked at.
    assert {name for name, r in report.results.items() if r.detected} == {c.value for c in ALL_CAPABILITIES}
    assert len(ALL_CAPABILITIES) == 8
    assert {name: r.failures for name, r in report.results.items() if r.failures or not r.passed} == {}
    assert sum(r.tests_passed for r in report.results.values()) >= TESTS


# -- a real graph ---------------------------------------------------------------------------------------------------


class Chat(TypedDict):
    messages: Annotated[list[Any], add_messages]


class Plain(TypedDict):
    messages: Annotated[list[Any], operator.add]


def joined(state: list[Any], updates: Any) -> list[Any]:
    return [*state, *(item for update in updates for item in update)]


class Spread(TypedDict):
    messages: Annotated[list[Any], DeltaChannel(joined)]


def text(chance: random.Random) -> str:
    return chance.randbytes(500).hex()


def chat(saver: HoldfastSaver, chance: random.Random) -> Any:
    builder = StateGraph(Chat)
    builder.add_node("agent", lambda state: {"messages": [AIMessage(text(chance)), AIMessage(text(chance))]})
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    return builder.compile(checkpointer=saver)


def thread(name: str = "1", **more: str) -> Any:
    return {"configurable": {"thread_id": name, **more}}


def contents(values: Any) -> list[str]:
    return [m.content for m in values["messages"]]


def test_a_conversation_goes_on_in_another_process_and_its_whole_history_can_be_read(url: str) -> None:
    chance, said = random.Random(1), []  # type: tuple[random.Random, list[list[str]]]
    for _ in range(3):  # each saver knows only what is on disk
        with HoldfastSaver.open(url) as saver:
            graph = chat(saver, chance)
            said += [contents(graph.invoke({"messages": [HumanMessage(text(chance))]}, thread())) for _ in range(4)]
    assert [len(s) for s in said] == [3 * n for n in range(1, 13)]
    with HoldfastSaver.open(url) as saver:
        graph = chat(saver, chance)
        ends = [s for s in graph.get_state_history(thread()) if not s.next]
        assert [contents(s.values) for s in reversed(ends)] == said
        # From the middle of it, another way: the first one stays.
        other = graph.invoke({"messages": [HumanMessage("otherwise")]}, ends[6].config)
        assert contents(other)[: len(said[5])] == said[5]
        assert contents(saver.get_tuple(ends[0].config).checkpoint["channel_values"]) == said[-1]  # type: ignore[union-attr]


async def test_the_async_face_works_on_the_same_thread_as_the_sync_one(url: str) -> None:
    chance = random.Random(2)
    async with HoldfastSaver.open(url) as saver:
        graph = chat(saver, chance)
        first = await graph.ainvoke({"messages": [HumanMessage("a")]}, thread())
        second = graph.invoke({"messages": [HumanMessage("b")]}, thread())
        assert contents(second)[:3] == contents(first)
        history = [s async for s in graph.aget_state_history(thread())]
        assert len(history) == len(list(graph.get_state_history(thread()))) == 6


def test_an_edit_of_a_message_in_place_is_saved(saver: HoldfastSaver) -> None:
    message = AIMessage("before", id="m", usage_metadata={"input_tokens": 1, "output_tokens": 1, "total_tokens": 2})
    messages: list[Any] = [message, {"role": "tool", "n": 1}, "plain"]
    config: Any = {"configurable": {"thread_id": "e", "checkpoint_ns": ""}}
    seen = []
    for step in range(7):
        if step == 1:
            message.content = "after"
        elif step == 2:
            message.additional_kwargs["deep"] = {"x": [1]}
        elif step == 3:
            message.additional_kwargs["deep"]["x"][0] = True
        elif step == 4:
            messages[1]["n"] = 1.0
        elif step == 5:
            assert message.usage_metadata
            message.usage_metadata["input_tokens"] = 5
        elif step == 6:
            message.__pydantic_extra__ = {"extra_field": "allowed"}
        checkpoint = empty_checkpoint() | {"id": f"{step:04}", "channel_values": {"messages": messages}}
        config = saver.put(config, checkpoint, {"source": "loop", "step": step}, {})
        seen.append(repr(messages))
    for step, wanted in enumerate(seen):
        found = saver.get_tuple(thread("e", checkpoint_id=f"{step:04}"))
        assert found
        assert repr(found.checkpoint["channel_values"]["messages"]) == wanted, step


def test_removing_checkpoints_leaves_the_state_of_those_that_stay(saver: HoldfastSaver) -> None:
    chance = random.Random(3)
    graph = chat(saver, chance)
    for n in range(12):
        graph.invoke({"messages": [HumanMessage(text(chance))]}, thread() | {"metadata": {"run_id": f"r{n % 3}"}})
    before = {
        s.config["configurable"]["checkpoint_id"]: contents(s.values)
        for s in graph.get_state_history(thread())
        if s.values.get("messages")
    }
    saver.copy_thread("1", "copy")
    saver.delete_for_runs(["r0", "r2"])
    for name, wanted in (("1", 12), ("copy", 0)):  # the copy has the same runs: they are gone there, too
        left = [s for s in graph.get_state_history(thread(name)) if s.values.get("messages")]
        assert len(left) <= len(before)
        assert all(contents(s.values) == before[s.config["configurable"]["checkpoint_id"]] for s in left)
        assert len(left) >= wanted // 3
    saver.prune(["1"])
    left = list(graph.get_state_history(thread()))
    assert len(left) == 1
    more = graph.invoke({"messages": [HumanMessage("and on")]}, thread())
    assert contents(more)[:-3] == contents(left[0].values)


def test_pruning_keeps_the_ancestors_that_a_delta_channel_is_made_of(saver: HoldfastSaver) -> None:
    """A DeltaChannel's value lives in the writes of earlier checkpoints; without them it would be empty in silence."""
    builder = StateGraph(Spread)
    builder.add_node("agent", lambda state: {"messages": [f"answer {len(state['messages'])}"]})
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    graph: Any = builder.compile(checkpointer=saver)
    for n in range(4):
        graph.invoke({"messages": [f"question {n}"]}, thread())
    wanted = graph.get_state(thread()).values
    assert len(wanted["messages"]) == 8
    saver.prune(["1"])
    assert graph.get_state(thread()).values == wanted


def test_a_base_that_another_saver_removed_costs_one_whole_save(url: str) -> None:
    chance = random.Random(4)
    with HoldfastSaver.open(url) as one, HoldfastSaver.open(url) as two:
        graph = chat(one, chance)
        graph.invoke({"messages": [HumanMessage("a")]}, thread())
        two.delete_thread("1")
        graph.invoke({"messages": [HumanMessage("b")]}, thread())
        assert contents(graph.get_state(thread()).values)[0] == "b"


def test_four_hundred_turns_of_three_kilobytes_make_a_file_of_at_most_three_times_that(tmp_path: Path) -> None:
    chance, path = random.Random(5), tmp_path / "graph.db"

    def agent(state: Plain) -> Any:
        return {"messages": [{"role": "a", "content": text(chance)}, {"role": "t", "content": text(chance)}]}

    builder = StateGraph(Plain)
    builder.add_node("agent", agent)
    builder.add_edge(START, "agent")
    builder.add_edge("agent", END)
    with HoldfastSaver.open(f"sqlite:///{path}") as saver:
        graph: Any = builder.compile(checkpointer=saver)
        for _ in range(400):
            graph.invoke({"messages": [{"role": "u", "content": text(chance)}]}, thread())
        values = graph.get_state(thread()).values
    assert len(values["messages"]) == 1200
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    assert path.stat().st_size <= 3 * 400 * 3 * 1000


def test_chat_messages_cost_their_change_however_long_the_history_is(tmp_path: Path) -> None:
    chance, path = random.Random(6), tmp_path / "chat.db"
    messages: list[Any] = []
    config: Any = {"configurable": {"thread_id": "c", "checkpoint_ns": ""}}
    with HoldfastSaver.open(f"sqlite:///{path}") as saver:
        for turn in range(300):
            used = {"input_tokens": turn, "output_tokens": 1, "total_tokens": turn + 1}
            messages = [*messages, AIMessage(text(chance), id=f"m{turn}", usage_metadata=used)]
            checkpoint = empty_checkpoint() | {"id": f"{turn:04}", "channel_values": {"messages": messages}}
            config = saver.put(config, checkpoint, {"source": "loop", "step": turn}, {})
    with sqlite3.connect(path) as database:
        sizes = [size for (size,) in database.execute("SELECT length(record) FROM thread_checkpoint ORDER BY id")]
    database.close()
    # Whole ones, made in the background, are there too: few, and each four times rarer than the one before.
    changes = sorted(sizes)[:-10]
    assert changes[-1] <= 1.5 * changes[len(changes) // 2]


def test_looking_at_messages_makes_no_object_for_each_and_still_tells_them_from_dictionaries() -> None:
    codec = _SerdeCodec(JsonPlusSerializer())
    message = AIMessage("said", id="m")
    assert codec.views(LIST, [message])[0] is message.__dict__
    fields = dict(message.__dict__)
    assert codec.shadow(LIST, message) == codec.views(LIST, [message])[0]
    assert codec.shadow(LIST, message) != codec.views(LIST, [fields])[0]
    assert codec.shadow(LIST, fields) != codec.views(LIST, [message])[0]
    assert codec.shadow(LIST, fields) == codec.views(LIST, [fields, message])[0]


def test_a_wrong_url_and_a_closed_saver_are_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(HoldfastError, match="is no store"), HoldfastSaver.open("mysql://x"):
        pass
    saver = HoldfastSaver.open(f"sqlite:///{tmp_path}/a.db")
    with pytest.raises(HoldfastError, match="thread's id"):
        saver.put(thread(""), empty_checkpoint(), {}, {})
    with pytest.raises(HoldfastError, match="no such prune strategy"):
        saver.prune(["x"], strategy="some")
    saver.close()
    saver.close()


def test_a_copy_of_a_saver_with_another_serializer_uses_that_one(tmp_path: Path) -> None:
    """LangGraph makes such copies when it restricts which types may be loaded."""
    with HoldfastSaver.open(f"sqlite:///{tmp_path}/a.db") as saver:
        copied = saver.with_allowlist([("builtins", "set")])
        config = copied.put(thread(checkpoint_ns=""), empty_checkpoint(), {"source": "loop", "step": 0}, {})
        assert saver.get_tuple(config)
        assert copied.get_tuple(config)
        assert isinstance(copied, HoldfastSaver)
        assert copied is saver or copied._threads() is not saver._threads()
