"""A blocking worker on PostgreSQL: foreseen writes on the socket itself, and everything else as ever."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import asyncpg
import pytest

from holdfast.model.errors import HoldfastError
from holdfast.store import postgres_near
from holdfast.store.base import Query, Quick, Transaction
from holdfast.store.postgres import PostgresStore
from holdfast.store.postgres_near import Line, NearPostgres
from holdfast.system.brief_poll import Arrival
from holdfast.work.service import Work
from tests.support.postgres import Server

Json = dict[str, Any]


class Caller:
    """Calls of the work plane, made from a thread without a running loop."""

    def __init__(self, url: str) -> None:
        self.url, self.loop = url, asyncio.new_event_loop()
        self.store = self.loop.run_until_complete(NearPostgres.open(url))
        self.work = Work(self.store, "op")
        made = self.loop.run_until_complete(self.work.begin_run(worker="w", ttl_s=3600))
        self.mine: Json = {"run": made["run"], "epoch": made["epoch"]}

    def call(self, name: str, **args: Any) -> Any:
        return postgres_near.run(self.work.call(name, **args, **self.mine), self.loop)

    def step(self, key: str, result: Any = None) -> Json:
        begun: Json = self.call("step_begin", key=key, args=[key])
        if begun["decision"] == "execute":
            self.call("step_end", key=key, result=result)
        return begun

    def done(self) -> dict[str, Any]:
        steps = self.loop.run_until_complete(self.work.step_ls(run=self.mine["run"]))
        return {s["key"]: s["result"] for s in steps if s["state"] == "done"}

    def ask(self, sql: str) -> Any:
        """By a connection of its own."""

        async def asked() -> Any:
            connection = await asyncpg.connect(self.url)
            try:
                return await connection.fetchval(sql)
            finally:
                await connection.close()

        return self.loop.run_until_complete(asked())

    def close(self) -> None:
        self.loop.run_until_complete(self.store.close())
        self.loop.close()


@pytest.fixture
def caller(postgres: Server) -> Iterator[Caller]:
    with contextlib.closing(Caller(postgres.url())) as made:
        yield made


def test_a_foreseen_write_needs_no_event_loop(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    caller.step("first")

    def refuse(*args: Any) -> None:
        raise AssertionError("the loop was run")

    with monkeypatch.context() as m:
        m.setattr(type(caller.loop), "run_until_complete", refuse)
        for n in range(5):
            assert caller.step(f"s{n}", "ä\\'\n" * 3 + str(n))["decision"] == "execute"
        caller.call("step_end", key="look", effect="none", args=[1], action="look", result=None)
        caller.call("step_begin", key="a", args=[1])
        ended = {"key": "a", "result": {"x": [1, None]}, "request": "req_a"}
        assert caller.call("step_next", ended=ended, key="b", args=[2])["decision"] == "execute"
    texts = {f"s{n}": "ä\\'\n" * 3 + str(n) for n in range(5)}
    assert caller.done() == {"first": None, "look": None, "a": {"x": [1, None]}, **texts}


def test_the_rows_are_those_of_the_transaction(caller: Caller) -> None:
    columns = "effect, action, args_hash, args, epoch, tries, result, state, error, session, exec_id, settled_by"
    for key in ("near", "far"):
        about = {"key": key, "args": ["x" * 3000, None], "action": "do", "why": "because", "idem_key": "i"}
        if key == "far":
            caller.store._drop()
            caller.store._lineless = True
        else:
            caller.step("first")
        caller.call("step_begin", **about)
        caller.call("step_end", key=key, result="y" * 70_000)
    rows = [caller.ask(f"SELECT ROW({columns})::text FROM step WHERE key = '{key}'") for key in ("near", "far")]
    assert rows[0] == rows[1]
    notes = "SELECT string_agg(kind || ' ' || body, ';' ORDER BY seq) FROM log WHERE step = "
    assert caller.ask(notes + "'near'") == caller.ask(notes + "'far'")


def test_what_is_not_as_foreseen_is_decided_by_the_transaction(caller: Caller) -> None:
    caller.step("a", 1)
    assert caller.step("a")["result"] == 1, "it is known"
    with pytest.raises(HoldfastError, match="other arguments"):
        caller.call("step_begin", key="a", args=["b"])
    with pytest.raises(HoldfastError, match="not begun"):
        caller.call("step_end", key="never")
    caller.call("step_begin", key="b", args=[1])
    assert caller.call("step_begin", key="b", args=[1])["decision"] == "in_doubt"
    caller.step("c", 3)
    caller.mine["epoch"] += 1
    with pytest.raises(HoldfastError, match="taken over"):
        caller.step("d")
    assert caller.done() == {"a": 1, "c": 3}


def test_a_connection_that_the_server_ended_is_replaced(caller: Caller) -> None:
    for n in range(3):
        caller.step(f"before{n}")
        gone = "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity"
        assert caller.ask(f"{gone} WHERE application_name = 'holdfast' AND datname = current_database()") >= 1
        assert caller.step(f"after{n}")["decision"] == "execute"
    assert len(caller.done()) == 6


def test_a_write_whose_answer_was_lost_is_not_done_twice(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    caller.step("first")
    answer = Line._answer

    def lost(self: Line) -> tuple[int, str | None]:
        answer(self)
        raise ConnectionResetError("the line broke")

    for name, args in (("step_begin", {"args": [1]}), ("step_end", {"result": 7})):
        with monkeypatch.context() as m:
            m.setattr(Line, "_answer", lost)
            told = caller.call(name, key="a", request=f"req_{name}", **args)
        assert told.get("decision", "execute") == "execute"
        caller.step(f"after {name}")
    assert caller.done()["a"] == 7
    assert caller.ask("SELECT COUNT(*) FROM log WHERE step = 'a'") == 2


def test_an_answer_that_nobody_waited_for_is_not_taken_for_the_next_one(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    caller.step("first")

    def interrupted(self: Line) -> tuple[int, str | None]:
        raise KeyboardInterrupt

    with monkeypatch.context() as m:
        m.setattr(Line, "_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            caller.call("step_begin", key="a", args=[1])
    caller.mine["epoch"] += 1
    with pytest.raises(HoldfastError, match="taken over"):
        caller.call("step_begin", key="b", args=[1])
    assert caller.ask("SELECT COUNT(*) FROM step WHERE key = 'b'") == 0


def test_a_notice_that_comes_in_two_parts_behind_an_answer_is_read_as_one() -> None:
    line = Line.__new__(Line)
    server, line._sock = socket.socketpair()
    line._arrival, line._more = Arrival(line._sock, 0.001), b""
    row, ready = b"D\0\0\0\x06\0\0", b"Z\0\0\0\x05I"
    notice = b"N\0\0\0\x16SNOTICE\0Mreload\0\0\0"
    with server, line._sock:
        server.sendall(row + ready + notice[:7])
        assert line._answer() == (1, None)
        server.sendall(notice[7:] + ready)
        assert line._answer() == (0, None)


def test_an_error_of_the_server_is_left_to_the_transaction_and_the_next_call_works(caller: Caller) -> None:
    caller.step("first")
    assert caller.store._line is not None
    assert not caller.store._done(caller.store._line, Quick("step_begun", ("too", "few"), None))
    assert caller.store._line is None
    for n in range(3):
        assert caller.step(f"s{n}")["decision"] == "execute"
    assert caller.store._line is not None


async def test_a_remark_that_comes_while_its_run_is_forgotten_leaves_no_orphan(postgres: Server) -> None:
    url = postgres.url()
    store = await PostgresStore.open(url)
    work = Work(store, "op")
    made = await work.begin_run(worker="w", ttl_s=3600)
    await work.run_end(run=made["run"], epoch=made["epoch"])
    remarking = await asyncpg.connect(url)
    await remarking.execute("BEGIN")
    await remarking.execute("SELECT 1 FROM attempt FOR UPDATE")
    await remarking.execute(
        "INSERT INTO log (run, seq, kind, at, epoch, body) SELECT id, 99, 'note', 0, 0, '\"late\"' FROM run"
    )

    async def forget() -> Any:
        return await work.call("work_prune", older_than_s=0)

    pruning = asyncio.create_task(forget())
    waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    looking = await asyncpg.connect(url)
    for _ in range(3000):
        if await looking.fetchval(waiting):
            break
        await asyncio.sleep(0.01)
    await remarking.execute("COMMIT")
    assert (await pruning)["runs"] == 1

    def orphans() -> Transaction[int]:
        rows = yield Query("SELECT COUNT(*) FROM log")
        return int(rows[0][0])

    assert await store.read(orphans) == 0
    await remarking.close()
    await looking.close()
    await store.close()
