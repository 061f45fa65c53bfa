"""Checkpoints of a run whose log goes on all the time: none is lost, and each is the whole of what was said."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from holdfast.client._async.checkpoints import AsyncRunState, SavedState
from holdfast.client._async.host import AsyncHost
from holdfast.client._sync.host import Host
from tests.support.home import HomeForTests


def _interrupted(run: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Somebody else adds to the log whenever this run puts a checkpoint; the names of the calls that save."""
    saves: list[str] = []
    call = run._call

    def late(name: str, **args: Any) -> Any:
        if name == "checkpoint_put":
            run.log({"content": f"message {len(saves)}"})
        if name.startswith("checkpoint_"):
            saves.append(name)
        return call(name, **args)

    monkeypatch.setattr(run, "_call", late)
    return saves


def test_a_save_that_loses_against_the_log_is_made_again_under_the_lock(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    with host.work.run() as run:
        run.checkpoint(goal="g", context={"kept": True})
        with monkeypatch.context() as patched:
            saves = _interrupted(run, patched)
            large = ["x" * 1000] * 3000
            for n in range(3):
                fields: dict[str, Any] = {"plan": [n]} | ({"large": large} if n == 1 else {})
                saved = run.checkpoint(**fields)
                state = run.restore()
                assert (state["goal"], state["plan"], len(state["messages"])) == ("g", [n], n + 1)
                assert host.work.call("checkpoint_show", run=run.id, seq=saved["seq"])["state"] == state
            assert saves == ["checkpoint_put", "checkpoint_save"] * 3
        saved = run.checkpoint(goal="h")  # a change against what the store made under the lock
        assert (saved["base"], saved["stored"] < 1000) == (saved["seq"] - 1, True)
        state = run.restore()
        assert (state["goal"], state["plan"], state["large"], len(state["messages"])) == ("h", [2], large, 3)


def test_checkpoints_beside_the_steps_of_four_threads_are_all_saved(host: Host) -> None:
    with host.work.run() as run:
        run.step("first", lambda: 1)  # before the threads: connections and tables are there
        done, errors = threading.Event(), list[BaseException]()

        def steps(thread: int) -> None:
            n = 0
            try:
                while not done.is_set():
                    run.step(f"s{thread}:{n}", lambda: 1, effect="idempotent")
                    n += 1
            except BaseException as e:  # noqa: BLE001 - told by the test
                errors.append(e)

        threads = [threading.Thread(target=steps, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        try:
            saved = [run.checkpoint(goal=f"g{n}") for n in range(10)]
        finally:
            done.set()
            for thread in threads:
                thread.join()
        assert errors == []
        assert [one["seq"] for one in saved] == sorted({one["seq"] for one in saved})
        for n, one in enumerate(saved):
            state = host.work.call("checkpoint_show", run=run.id, seq=one["seq"])["state"]
            assert state["goal"] == f"g{n}"


async def test_checkpoints_that_are_saved_at_once_are_all_kept_and_repeat_no_message(
    host: Host, hold: HomeForTests
) -> None:
    async with AsyncHost(str(hold.path)) as mine, await mine.work.run() as run:
        await run.checkpoint(goal="g")
        for n in range(3):
            await run.message({"content": f"before {n}"})
        fields: list[dict[str, Any]] = [{f"mine_{n}": n} for n in range(6)]
        saves = [run.checkpoint(**one) for one in fields]
        said = [run.message({"content": f"beside {n}"}) for n in range(3)]
        await asyncio.gather(*saves, *said)
        await run.checkpoint(goal="h")
        state = await run.restore()
        assert [state[f"mine_{n}"] for n in range(6)] == list(range(6))
        contents = [message["content"] for message in state["messages"]]
        assert sorted(contents) == [f"{when} {n}" for when in ("before", "beside") for n in range(3)]
        for one in await run.checkpoints():
            await mine.work.call("checkpoint_show", run=run.id, seq=one["seq"])  # its hash is checked


async def test_a_checkpoint_saved_while_another_looks_for_the_last_one_is_kept(
    host: Host, hold: HomeForTests, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncHost(str(hold.path)) as mine, await mine.work.run() as run:
        await run.checkpoint(goal="g")
        await run.checkpoint(plan=["p"])
        load, more = AsyncRunState._load, iter(range(3))

        async def overtaken(self: AsyncRunState) -> SavedState:
            found = await load(self)
            for n in more:  # in the moment between a look at the last checkpoint and one at the log
                await mine.work.call("checkpoint_save", run=run.id, state={f"theirs_{n}": n}, epoch=run.epoch)
                break
            return found

        monkeypatch.setattr(AsyncRunState, "_load", overtaken)
        run._held = None
        for n in range(3):
            fields: dict[str, Any] = {f"mine_{n}": n}
            await run.checkpoint(**fields)
            run._held = None
        assert next(more, None) is None, "each of them came in between"
        state = await run.restore()
        assert [state.get(f"{whose}_{n}") for whose in ("mine", "theirs") for n in range(3)] == [0, 1, 2] * 2
