"""A store behind PgBouncer, which lends a connection for one transaction and then to somebody else."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from holdfast.testing.work import working
from tests.support.pgbouncer import Bouncer
from tests.support.postgres import Server

_RUNS, _STEPS = 6, 5

# What a pooler does with settings of a connection's own: refuse them, or, where it was told to, ignore them in silence.
_IGNORED = "idle_in_transaction_session_timeout,lock_timeout"


@pytest.fixture(params=["refuses settings", "ignores settings"])
def bouncer(request: pytest.FixtureRequest, postgres: Server) -> Iterator[Bouncer]:
    made = Bouncer(postgres, **({"ignore_startup_parameters": _IGNORED} if "ignores" in request.param else {}))
    yield made
    made.close()


async def test_workers_behind_a_pooler_keep_every_step_and_say_once_that_it_is_there(
    bouncer: Bouncer, postgres: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "holdfast.store")
    url = bouncer.before(postgres.url())
    async with working(url) as work, working(url) as other:

        async def one(n: int) -> str:
            mine = work if n % 2 else other
            made = await mine.begin_run(worker=f"w{n}", task=f"t{n}")
            for step in range(_STEPS):
                key = {"run": made["run"], "key": f"s{step}", "epoch": made["epoch"]}
                assert (await mine.step_begin(**key))["decision"] == "execute"
                await mine.step_end(**key, result={"n": step})
            return str(made["run"])

        for run in await asyncio.gather(*(one(n) for n in range(_RUNS))):
            status = await work.run_status(run=run)
            assert (status["steps"]["done"], status["log_end"]) == (_STEPS, 1 + 2 * _STEPS)
    said = [record.message for record in caplog.records if "pooler" in record.message]
    assert len(said) == 2, said  # each store says it once


async def test_a_transaction_behind_a_pooler_has_the_settings_that_the_promises_need(
    bouncer: Bouncer, postgres: Server
) -> None:
    from holdfast.store.base import Query, Transaction

    def settings() -> Transaction[list[str]]:
        names = ("synchronous_commit", "lock_timeout", "idle_in_transaction_session_timeout")
        found = []
        for name in names:
            rows = yield Query("SELECT current_setting(?)", (name,))
            found.append(rows[0][0])
        return found

    async with working(bouncer.before(postgres.url())) as work:
        run = await work.begin_run(worker="w")
        await work.step_begin(run=run["run"], epoch=run["epoch"], key="k")
        assert await work.store.write(settings) == ["on", "30s", "10s"]
