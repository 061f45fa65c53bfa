"""Move a table in batches, so that killing whoever does it loses nothing and moves nothing twice. For SQLite.

    python docs/examples/migrate_sqlite.py shop.db 400         a table to try it with
    cd docs/examples
    hold worker migrate_sqlite:jobs &
    hold worker migrate_sqlite:jobs --standby &
    hold work submit migrate --params '{"database": "/path/to/shop.db"}' --item 0 --item 1 --item 2 --item 3

Kill the first worker whenever you like; stop it (SIGSTOP) and let it go on later. The standby finishes.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import holdfast

BATCH = 100  # rows

# `orders` has no key: a row that was moved twice would show.
SCHEMA = """
CREATE TABLE IF NOT EXISTS old_orders (id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER);
CREATE TABLE IF NOT EXISTS orders (id INTEGER, customer TEXT, euros REAL, batch INTEGER);
CREATE TABLE IF NOT EXISTS fence (run TEXT PRIMARY KEY, epoch INTEGER NOT NULL);
"""

jobs = holdfast.Jobs()


@jobs.job
def migrate(run: Any) -> dict[str, int]:
    """One step for each batch. Whoever takes over runs this from its beginning; batches that are done are not."""
    database = run.params["database"]
    moved = sum(
        run.step(f"move:{batch}", move, database, int(batch), effect="verifiable", verify=rows_moved)
        for batch in run.items
    )
    return {"rows": moved}


def move(database: str, batch: int, step: Any) -> int:
    with transaction(database, step) as db:
        made = db.execute(
            "INSERT INTO orders SELECT id, customer, cents / 100.0, ? FROM old_orders WHERE id / ? = ?",
            (batch, BATCH, batch),
        )
        return made.rowcount


def rows_moved(database: str, batch: int, step: Any) -> int | None:
    """Asked when a worker died in `move`: what is there, or None. It draws the line too: from here on the dead one,
    should it only have been asleep, cannot move this batch any more."""
    with transaction(database, step) as db:
        (count,) = db.execute("SELECT COUNT(*) FROM orders WHERE batch = ?", (batch,)).fetchone()
        return count or None


@contextmanager
def transaction(database: str, step: Any) -> Iterator[sqlite3.Connection]:
    """All or nothing, and only for the newest worker: the target remembers the highest epoch it has seen."""
    db = sqlite3.connect(database, timeout=60, isolation_level=None)
    try:
        db.execute("BEGIN IMMEDIATE")
        newest = db.execute(
            "INSERT INTO fence VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET epoch = excluded.epoch"
            " WHERE excluded.epoch >= fence.epoch",
            (step.run, step.epoch),
        )
        if newest.rowcount != 1:
            raise holdfast.Fenced(f"the database knows a newer worker than epoch {step.epoch}")
        yield db
        db.execute("COMMIT")
    finally:
        db.close()  # rolls back what was not committed


def fill(database: str, rows: int) -> None:
    with sqlite3.connect(database) as db:
        db.executescript(SCHEMA)
        made = ((n, f"customer {n % 97}", n * 7) for n in range(rows))
        db.executemany("INSERT INTO old_orders VALUES (?, ?, ?)", made)
    db.close()


if __name__ == "__main__":
    fill(sys.argv[1], int(sys.argv[2]))
