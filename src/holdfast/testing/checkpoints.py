"""The conformance suite of checkpoints, replay and short-term memory, over any store. See `StoreSuite`."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from ..delta import encode
from ..model.work import run_state
from ..store.base import Query, Store, Transaction
from ..work.checkpoints import rows as checkpoint_rows
from ..work.runs import log
from ..work.service import Work
from .store import opened, refused

Json = dict[str, Any]


@asynccontextmanager
async def working(url: str, cache: str | None = None) -> AsyncIterator[Work]:
    """A process that works, as far as memory goes: nothing is kept from one to the next but the store."""
    async with opened(url) as store:
        work = Work(store, "op_test", cache)
        yield work
        await work.aclose()


async def begun(work: Work) -> Json:
    made = await work.begin_run(worker="w1", ttl_s=3600)
    return {"run": made["run"], "epoch": made["epoch"]}


async def act(work: Work, mine: Json, chance: random.Random, n: int) -> None:
    """Something an agent does, as the log knows it."""
    kind = chance.choice(
        [
            "message",
            "reasoning",
            "decision",
            "learned",
            "rejected",
            "question",
            "answer",
            "step",
            "scratch",
            "save",
            "policy",
        ]
    )
    if kind == "step":
        await work.call("step_begin", key=f"k{n}", effect="unsafe", action=f"do {n}", why="it is next", **mine)
        await work.call("step_end", key=f"k{n}", result={"n": n}, **mine)
    elif kind == "scratch":
        await work.call("memory_set", name=f"s{n % 3}", value=n, **mine)
    elif kind == "policy":
        await work.checkpoints.save_from_log(mine["run"])
    elif kind == "save":
        await work.call("checkpoint_save", state={"goal": f"g{n}", "plan": [1, n], "extra": {"n": float(n)}}, **mine)
    else:
        body = {"role": "user", "content": f"{kind} {n}"} if kind == "message" else {"text": f"{kind} {n}", "why": "so"}
        await work.call("log_append", kind=kind, body=body, **mine)


class _Busy:
    """A store with somebody else, who adds to a run's log in front of every write."""

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run, self._said, self.url = store, run, 0, store.url

    async def write(self, transaction: Callable[[], Transaction[Any]]) -> Any:
        self._said += 1
        body, request = f'"message {self._said}"', f"req_busy_{self._said}"
        await self._store.decide(log.added(self._run, "message", body, None, "other", None, request))
        return await self._store.write(transaction)

    async def read(self, transaction: Callable[[], Transaction[Any]]) -> Any:
        return await self._store.read(transaction)


class CheckpointSuite:
    """Every backend passes all of it."""

    async def test_a_checkpoint_keeps_all_of_an_agents_state_and_gives_it_back_to_another_process(
        self, store_url: str
    ) -> None:
        state = {
            "goal": "move the data",
            "constraints": ["no downtime"],
            "plan": ["a", "b"],
            "current_step": 1,
            "context": {"rate": 1.0, "n": 1, "on": True},
            "messages": [{"role": "user", "content": "héllo ☃"}],
            "artifacts": ["report"],
            "sessions": [{"session": "ses_1", "generation": 2, "offset": 99}],
            "open_paths": [{"path": "dump and load", "why": "too slow"}],
            "resume_point": {"next": "b"},
        }
        async with working(store_url) as work:
            mine = await begun(work)
            saved = await work.checkpoint_save(state=state, label="half", **mine)
            assert (saved["seq"], saved["kind"], saved["label"]) == (1, "milestone", "half")
        async with working(store_url) as work:
            found = await work.checkpoint_show(run=mine["run"])
            assert {k: found["state"][k] for k in state} == state
            assert found["hash"] == saved["hash"] == encode.state_hash(found["state"])

    async def test_fields_that_are_not_given_keep_their_values_and_the_logs_messages_are_in(
        self, store_url: str
    ) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            await work.checkpoint_save(state={"goal": "g", "plan": [1]}, **mine)
            await work.log_append(kind="message", body={"role": "user", "content": "hi"}, **mine)
            await work.checkpoint_save(state={"plan": [2]}, **mine)
            state = (await work.checkpoint_show(run=mine["run"]))["state"]
            assert (state["goal"], state["plan"]) == ("g", [2])
            assert state["messages"] == [{"role": "user", "content": "hi"}]
            await work.checkpoint_save(state={"goal": "new"}, replace=True, **mine)
            state = (await work.checkpoint_show(run=mine["run"]))["state"]
            assert (state["goal"], state["plan"], state["messages"]) == ("new", [], [])

    async def test_replay_at_any_position_gives_the_state_that_was_live_then_and_runs_nothing(
        self, store_url: str
    ) -> None:
        chance, hashes = random.Random(7), {}  # type: tuple[random.Random, dict[int, str]]
        async with working(store_url) as work:
            mine = await begun(work)
            run = mine["run"]
            for n in range(80):
                await act(work, mine, chance, n)
                live, at = await work.checkpoints.live(run)  # kept in memory, entry by entry
                hashes[at] = encode.state_hash(live)
            await work.checkpoints.drain()
            made = await work.checkpoint_ls(run=run)
            assert {c["kind"] for c in made} == {"milestone", "periodic"}
        async with working(store_url) as work:
            before = await work.step_ls(run=run)
            for at, wanted in hashes.items():
                told = await work.history(run=run, at=at)
                assert told["hash"] == wanted == encode.state_hash(told["state"]), at
                assert [e["seq"] for e in told["entries"]] == list(range(1, at + 1))
            # From the log alone, without the periodic ones, it is the same again.
            await work.store.write(lambda: _without_periodic(run))
            for at, wanted in hashes.items():
                assert (await work.state_at(run=run, position=at))["hash"] == wanted, at
            assert await work.step_ls(run=run) == before

    async def test_history_says_what_was_thought_done_and_seen_in_order_and_why(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            await work.log_append(kind="reasoning", body={"text": "the disk is full"}, **mine)
            await work.step_begin(key="clean", effect="unsafe", action="rm /tmp/x", why="to make room", **mine)
            await work.step_end(key="clean", result="removed", **mine)
            await work.log_append(kind="decision", body={"text": "go on", "why": "room again"}, **mine)
            told = (await work.history(run=mine["run"]))["entries"]
            assert [e["said"] for e in told] == ["run", "thought", "did", "saw", "decided"]
            assert (told[2]["text"], told[2]["why"]) == ("rm /tmp/x", "to make room")
            with refused("not_found"):
                await work.history(run=mine["run"], at=99)

    async def test_an_agent_that_never_saves_is_saved_from_its_log(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            for n in range(450):
                await work.call("log_append", kind="message", body={"role": "user", "content": f"m{n}"}, **mine)
                if n % 10 == 0:
                    await work.checkpoints.drain()  # a look takes its time; meanwhile the log grows on
            await work.checkpoints.drain()
            made = await work.checkpoint_ls(run=mine["run"])
            assert [c["kind"] for c in made] == ["periodic"] * len(made)
            assert len(made) == 2
            state = (await work.checkpoint_show(run=mine["run"]))["state"]
            assert len(state["messages"]) == made[-1]["log_upto"] - 1  # all but the entry that began the run
            assert sum(c["stored"] for c in made) < made[-1]["size"]

    async def test_looks_that_come_while_one_is_under_way_save_nothing_twice(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            await work.checkpoint_policy(run=mine["run"], entries=0, size=0)
            for n in range(20):
                await work.call("log_append", kind="message", body={"role": "user", "content": f"m{n}"}, **mine)
            await work.checkpoint_policy(run=mine["run"], entries=20, size=0)
            for n in range(10):
                for _ in range(3):  # all find the same entries unsaved, and each a longer log than the one before
                    work.checkpoints.look(mine["run"])
                await work.call("log_append", kind="message", body={"role": "user", "content": f"more {n}"}, **mine)
            await work.checkpoints.drain()
            assert len(await work.checkpoint_ls(run=mine["run"])) == 1

    async def test_two_checkpoints_can_be_compared_and_an_old_one_restored(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            await work.checkpoint_save(state={"goal": "a", "plan": [1, 2], "context": {"x": 1, "y": 2}}, **mine)
            await work.checkpoint_save(state={"goal": "b", "plan": [1, 2, 3], "context": {"x": 1, "y": True}}, **mine)
            changes = (await work.checkpoint_diff(run=mine["run"], seq=1, other=2))["changes"]
            assert changes == [
                {
                    "key": "context",
                    "change": "changed",
                    "entries": [{"key": "y", "change": "changed", "from": 2, "to": True}],
                },
                {"key": "goal", "change": "changed", "from": "a", "to": "b"},
                {"key": "plan", "change": "changed", "at": 2, "removed": [], "added": [3]},
            ]
            restored = await work.checkpoint_restore(seq=1, **mine)
            assert (restored["seq"], restored["label"], restored["state"]["goal"]) == (3, "restored from 1", "a")
            assert (await work.state_at(run=mine["run"]))["state"]["plan"] == [1, 2]
            assert len(await work.checkpoint_ls(run=mine["run"])) == 3  # nothing was undone

    async def test_a_fork_begins_where_a_checkpoint_stands_and_goes_its_own_way(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            for n in range(3):
                await work.checkpoint_save(state={"context": {"n": n}}, **mine)
            request = "req_fork"
            forked = await work.checkpoint_fork(run=mine["run"], seq=2, request=request)
            assert forked["forked_from"] == f"{mine['run']}#2"
            assert await work.checkpoint_fork(run=mine["run"], seq=2, request=request) == forked  # asked twice
            assert (await work.state_at(run=forked["run"]))["state"]["context"] == {"n": 1}
            assert (await work.run_status(run=forked["run"]))["forked_from"] == forked["forked_from"]
            taken = await work.begin_run(run=forked["run"], worker="w2")
            await work.checkpoint_save(run=forked["run"], epoch=taken["epoch"], state={"context": {"n": "other"}})
            assert (await work.state_at(run=mine["run"]))["state"]["context"] == {"n": 2}
            assert (await work.state_at(run=forked["run"]))["state"]["context"] == {"n": "other"}

    async def test_saving_is_fenced_like_every_write(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            with refused("fenced"):
                await work.checkpoint_save(run=mine["run"], epoch=mine["epoch"] + 1, state={"goal": "x"})
            with refused("fenced"):
                await work.checkpoint_save(run=mine["run"], state={"goal": "by hand"})  # held by a worker
            assert await work.checkpoint_ls(run=mine["run"]) == []
            await work.lease_release(**mine)
            await work.checkpoint_save(run=mine["run"], state={"goal": "by hand"})
            assert not (await work.run_status(run=mine["run"]))["leased"]

    async def test_a_repeated_save_is_one_checkpoint(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            first = await work.checkpoint_save(state={"goal": "g"}, request="req_1", **mine)
            again = await work.checkpoint_save(state={"goal": "g"}, request="req_1", **mine)
            assert (first, len(await work.checkpoint_ls(run=mine["run"]))) == (again, 1)

    async def test_savers_in_two_processes_see_each_other(self, store_url: str) -> None:
        async with working(store_url) as one, working(store_url) as two:
            mine = await begun(one)
            await one.checkpoint_save(state={"context": {"one": 1}}, **mine)
            await two.checkpoint_save(state={"goal": "two"}, **mine)
            await two.log_append(kind="message", body="m", **mine)
            await one.checkpoint_save(state={"plan": ["one"]}, **mine)
            state = (await two.checkpoint_show(run=mine["run"]))["state"]
            assert (state["context"], state["goal"], state["plan"], state["messages"]) == (
                {"one": 1},
                "two",
                ["one"],
                ["m"],
            )

    async def test_a_save_is_not_lost_to_a_log_that_goes_on_all_the_time(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            busy = Work(_Busy(work.store, mine["run"]), "op_busy")  # type: ignore[arg-type]
            for n in range(3):
                saved = await busy.checkpoint_save(state={"goal": f"g{n}", "plan": [n]}, request=f"req_{n}", **mine)
                assert saved == await busy.checkpoint_save(state={"goal": "other"}, request=f"req_{n}", **mine)
            back = await busy.checkpoint_restore(seq=2, **mine)
            assert back["state"]["goal"] == "g1"
            await busy.aclose()
            found = await work.checkpoint_show(run=mine["run"])
            assert (found["seq"], found["state"]["goal"], found["state"]["plan"]) == (4, "g1", [1])
            live = (await work.state_at(run=mine["run"]))["state"]
            messages = [e["body"] for e in await work.log_read(run=mine["run"], after=found["log_upto"])]
            assert live["messages"] == found["state"]["messages"] + messages
            for seq in (1, 2, 3):  # each one is the whole log up to it
                one = await work.checkpoint_show(run=mine["run"], seq=seq)
                said = [e for e in await work.log_read(run=mine["run"], upto=one["log_upto"]) if e["kind"] == "message"]
                assert one["state"]["messages"] == [e["body"] for e in said]

    async def test_what_is_sent_in_pieces_for_a_save_under_the_lock_is_checked(self, store_url: str) -> None:
        import base64
        import hashlib

        async def sent(work: Work, content: bytes) -> str:
            sha256 = hashlib.sha256(content).hexdigest()
            await work.artifact_piece(sha256=sha256, piece=0, data=base64.b64encode(content).decode())
            return sha256

        async with working(store_url) as work:
            mine = await begun(work)
            for wrong in (b"[1]", b"no JSON", b"[" * 100_000):
                with refused("invalid"):
                    await work.checkpoint_save(sent=await sent(work, wrong), locked=True, **mine)
            with refused("invalid"):
                await work.checkpoint_save(sent="no hash", **mine)
            told: Json = {"sent": await sent(work, b'{"goal": "g"}'), "locked": True, "request": "req_1", **mine}
            assert await work.checkpoint_save(**told) == await work.checkpoint_save(**told)
            assert (await work.checkpoint_show(run=mine["run"]))["state"]["goal"] == "g"
            with refused("fenced"):
                await work.checkpoint_save(run=mine["run"], epoch=mine["epoch"] + 1, state={"goal": "x"}, locked=True)

    async def test_a_long_history_is_stored_once_and_its_snapshots_are_few(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine, chance = await begun(work), random.Random(1)
            messages: list[Json] = []
            for _ in range(150):
                messages += [{"role": "user", "content": chance.randbytes(500).hex()} for _ in range(3)]
                await work.checkpoint_save(state={"messages": messages}, **mine)
            await work.checkpoints.drain()
            made = await work.checkpoint_ls(run=mine["run"])
            assert sum(c["stored"] for c in made) < 3 * 150 * 3 * 1000
            assert 2 <= sum(c["base"] is None for c in made) <= 10
            for seq in (1, 2, 50, 149, 150):
                found = await work.checkpoint_show(run=mine["run"], seq=seq)
                assert found["state"]["messages"] == messages[: 3 * seq]

    async def test_a_damaged_record_is_refused_and_the_one_before_it_still_restored(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            for goal in ("a", "b"):
                await work.checkpoint_save(state={"goal": goal}, **mine)
            await work.store.write(lambda: _damage(mine["run"], 2))
            with refused("damaged"):
                await work.checkpoint_show(run=mine["run"], seq=2)
            assert (await work.checkpoint_show(run=mine["run"], seq=1))["state"]["goal"] == "a"

    async def test_what_cannot_be_saved_is_refused_in_one_line(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            await work.checkpoint_save(state={"goal": "good"}, **mine)
            for state in ({"a": "\ud800"}, {"a": {1: 2}}, ["a list"], {"a": {"b": object()}}):
                with refused("invalid"):
                    await work.checkpoint_save(state=state, **mine)  # type: ignore[arg-type]
            with refused("not_found"):
                await work.checkpoint_show(run=mine["run"], seq=9)
            with refused("not_found"):
                await work.checkpoint_show(run="run_0000000000000000")
            with refused("invalid"):
                await work.checkpoint_put(run=mine["run"], record="no base64!", hash="0" * 64, size=1, log_upto=1)
            await work.checkpoint_save(state={"plan": [1]}, **mine)
            assert (await work.checkpoint_show(run=mine["run"]))["state"]["goal"] == "good"

    async def test_a_client_may_send_the_change_itself_and_loses_only_to_a_longer_log(self, store_url: str) -> None:
        import base64

        async with working(store_url) as work:
            mine, encoder = await begun(work), encode.Encoder()
            change = encoder.change(run_state.blank() | {"goal": "a"})
            put: Json = {"hash": change.hash, "size": change.size, "record": base64.b64encode(change.record).decode()}
            first = await work.checkpoint_put(log_upto=1, **put, **mine)
            change = encoder.change(run_state.blank() | {"goal": "b"})
            put = {"hash": change.hash, "size": change.size, "record": base64.b64encode(change.record).decode()}
            put |= {"base": first["seq"], "base_hash": first["hash"]}
            with refused("conflict"):
                await work.checkpoint_put(log_upto=1, **put, **mine)  # the log has the first checkpoint's entry too
            await work.checkpoint_put(log_upto=first["log_upto"], **put, **mine)
            assert (await work.checkpoint_show(run=mine["run"]))["state"]["goal"] == "b"

    # -- memory ------------------------------------------------------------------------------------------------------

    async def test_a_window_holds_the_newest_messages_that_fit_and_every_instruction(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            await work.memory_append(message={"role": "system", "content": "be calm"}, **mine)
            for n in range(50):
                await work.memory_append(message={"role": "user", "content": f"{n:03} " + "x" * 96}, **mine)
            window = await work.memory_window(run=mine["run"], max_tokens=400)
            assert window["messages"][0]["content"] == "be calm"
            kept = [m["content"][:3] for m in window["messages"][1:]]
            assert kept == [f"{n:03}" for n in range(50 - len(kept), 50)]
            assert 5 < len(kept) < 15
            assert (window["omitted"], window["tokens"] <= 400) == (50 - len(kept), True)
            assert len((await work.memory_window(run=mine["run"]))["messages"]) == 51

    async def test_the_window_is_the_same_for_a_process_that_remembers_nothing(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            for n in range(30):
                await work.memory_append(message={"role": "user", "content": f"m{n}"}, **mine)
                if n == 10:
                    await work.checkpoint_save(state={"goal": "g"}, **mine)
                await work.log_append(kind="reasoning", body={"text": "hm"}, **mine)
            await work.memory_set(name="token", value={"a": [1]}, ttl_s=3600, **mine)
            before = await work.memory_window(run=mine["run"], max_tokens=150)
        async with working(store_url) as work:
            assert await work.memory_window(run=mine["run"], max_tokens=150) == before
            assert (await work.memory_get(run=mine["run"], name="token"))["value"] == {"a": [1]}

    async def test_a_scratch_value_ends_with_its_time_and_can_be_forgotten(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            await work.memory_set(name="soon", value=1, ttl_s=0.000001, **mine)
            await work.memory_set(name="long", value=[1, None], **mine)
            await work.memory_set(name="gone", value=1, **mine)
            await work.memory_set(name="gone", ttl_s=0, **mine)
            for name in ("soon", "gone", "never"):
                with refused("not_found"):
                    await work.memory_get(run=mine["run"], name=name)
            assert (await work.memory_get(run=mine["run"], name="long"))["value"] == [1, None]
            assert list((await work.state_at(run=mine["run"]))["state"]["scratch"]) == ["long"]  # it does not pile up

    async def test_a_checkpoint_with_other_messages_is_the_new_window(self, store_url: str) -> None:
        async with working(store_url) as work:
            mine = await begun(work)
            await work.memory_append(message={"role": "user", "content": "long talk"}, **mine)
            await work.memory_window(run=mine["run"])
            await work.checkpoint_save(state={"messages": [{"role": "user", "content": "a summary"}]}, **mine)
            await work.memory_append(message={"role": "user", "content": "next"}, **mine)
            window = await work.memory_window(run=mine["run"])
            assert [m["content"] for m in window["messages"]] == ["a summary", "next"]


def _without_periodic(run: str) -> Transaction[None]:
    """Take the periodic checkpoints away; milestones that are kept as a change of one are made whole first."""
    rows = yield Query("SELECT seq, hash FROM checkpoint WHERE run = ? AND kind = 'milestone'", (run,))
    for seq, digest in rows:
        records = yield from checkpoint_rows.chain(run, seq)
        yield from checkpoint_rows.compact(run, seq, digest, encode.whole(encode.restore(records, digest)))
    yield Query("DELETE FROM checkpoint WHERE run = ? AND kind = 'periodic'", (run,))


def _damage(run: str, seq: int) -> Transaction[None]:
    rows = yield Query("SELECT record FROM checkpoint WHERE run = ? AND seq = ?", (run, seq))
    record = bytearray(rows[0][0])
    record[-1] ^= 1
    yield Query("UPDATE checkpoint SET record = ? WHERE run = ? AND seq = ?", (bytes(record), run, seq))
