"""Move a table in batches, so that killing whoever does it loses nothing and moves nothing twice. For PostgreSQL.

python docs/examples/migrate_postgres.py postgresql://me@db/shop 400        a table to try it with
cd docs/examples
hold store use postgresql://me@db/work                                      homes on several machines share it
hold worker migrate_postgres:jobs &
hold worker migrate_postgres:jobs --standby &                               or on another machine
hold work submit migrate --params '{"database": "postgresql://me@db/shop"}' --item 0 --item 1 --item 2 --item 3
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

import holdfast

BATCH = 100  # rows

# `orders` has no key: a row that was moved twice would show.
SCHEMA = """
CREATE TABLE IF NOT EXISTS old_orders (id BIGINT PRIMARY KEY, customer TEXT, cents BIGINT);
CREATE TABLE IF NOT EXISTS orders (id BIGINT, customer TEXT, euros NUMERIC, batch BIGINT);
CREATE TABLE IF NOT EXISTS fence (run TEXT PRIMARY KEY, epoch BIGINT NOT NULL);
"""

jobs = holdfast.Jobs()


@jobs.job
async def migrate(run: Any) -> dict[str, int]:
    """One step for each batch. Whoever takes over runs this from its beginning; batches that are done are not."""
    database, moved = run.params["database"], 0
    for batch in run.items:
        moved += await run.step(f"move:{batch}", move, database, int(batch), effect="verifiable", verify=rows_moved)
    return {"rows": moved}


async def move(database: str, batch: int, step: Any) -> int:
    async with transaction(database, step) as db:
        done = await db.execute(
            "INSERT INTO orders SELECT id, customer, cents / 100.0, %(batch)s FROM old_orders"
            " WHERE id / %(size)s = %(batch)s",
            {"batch": batch, "size": BATCH},
        )
        return int(done.rowcount)


async def rows_moved(database: str, batch: int, step: Any) -> int | None:
    """Asked when a worker died in `move`: what is there, or None. It draws the line too: from here on the dead one,
    should it only have been asleep, cannot move this batch any more."""
    async with transaction(database, step) as db:
        found = await db.execute("SELECT COUNT(*) FROM orders WHERE batch = %s", (batch,))
        return (await found.fetchone())[0] or None


@asynccontextmanager
async def transaction(database: str, step: Any) -> AsyncIterator[Any]:
    """All or nothing, and only for the newest worker: the target remembers the highest epoch it has seen."""
    # A worker that was stopped in here holds a lock: after ten seconds the server takes it away.
    settings = "-c idle_in_transaction_session_timeout=10000"
    async with await psycopg.AsyncConnection.connect(database, options=settings) as db:
        fenced = await db.execute(
            "INSERT INTO fence VALUES (%s, %s) ON CONFLICT (run) DO UPDATE SET epoch = excluded.epoch"
            " WHERE excluded.epoch >= fence.epoch",
            (step.run, step.epoch),
        )
        if fenced.rowcount != 1:
            raise holdfast.Fenced(f"the database knows a newer worker than epoch {step.epoch}")
        yield db


async def fill(database: str, rows: int) -> None:
    async with await psycopg.AsyncConnection.connect(database) as db:
        await db.execute(SCHEMA)
        async with db.cursor().copy("COPY old_orders FROM STDIN") as sent:
            for n in range(rows):
                await sent.write_row((n, f"customer {n % 97}", n * 7))


if __name__ == "__main__":
    asyncio.run(fill(sys.argv[1], int(sys.argv[2])))
