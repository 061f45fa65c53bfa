"""Workers of tests/crash/test_failover.py: real `hold worker` processes over the migration of docs/examples."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from pathlib import Path
from typing import Any

import psycopg

from tests.support.home import HOLD, HomeForTests, until

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
DEADLINE_S = 100.0
LEASE_S = 4  # short, so that a takeover does not take the test's time; a worker that a busy machine fences is replaced


# The example with another `move` before its own; what it does then, it does really.
BEFORE = """
import os, signal, time, asyncio, {module}
from {module} import jobs
plain = {module}.move

{async_}def move(database, batch, step):
    {before}
    return {await_}plain(database, batch, step)

{module}.move = move
jobs.max_crashes["migrate"] = 1000  # the tests kill more of them than a job's own mistakes should
"""


class Table:
    """The two tables that are moved between, in SQLite or PostgreSQL."""

    def __init__(self, database: str, batches: int) -> None:
        self.database, self.batches = database, batches
        self.module = "migrate_postgres" if database.startswith("postgresql") else "migrate_sqlite"
        words = [str(EXAMPLES / f"{self.module}.py"), database, str(batches * 100)]
        subprocess.run([HOLD[0], *words], check=True, timeout=DEADLINE_S)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        if self.module == "migrate_postgres":
            with psycopg.connect(self.database) as server:
                return server.execute(sql.encode()).fetchall()
        db = sqlite3.connect(self.database, timeout=60)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def moved(self) -> int:
        """Batches that are there."""
        return int(self.ask("SELECT COUNT(DISTINCT batch) FROM orders")[0][0])

    def check(self) -> None:
        """Every row was moved exactly once, with its value."""
        assert self.ask("SELECT COUNT(*), COUNT(DISTINCT id) FROM orders") == [(self.batches * 100, self.batches * 100)]
        wrong = "SELECT COUNT(*) FROM orders o JOIN old_orders p ON p.id = o.id WHERE o.euros * 100 - p.cents NOT BETWEEN -0.001 AND 0.001"
        assert self.ask(wrong) == [(0,)]


class Worker:
    """One `hold worker` process, its lines in a file."""

    def __init__(self, hold: HomeForTests, name: str, jobs: str, *options: str, folder: Path) -> None:
        self.name = name
        self.path = hold.path.parent / f"{name}.lines"
        words = [*HOLD, "worker", jobs, "--name", name, "--lease", f"{LEASE_S}s", *options]
        with open(self.path, "wb") as lines:
            self.process = subprocess.Popen(words, env=hold.env, cwd=folder, stdout=lines, stderr=lines)

    @property
    def said(self) -> str:
        return self.path.read_text()

    def ready(self) -> Worker:
        until(lambda: "looks for work" in self.said or self.process.poll() is not None, timeout=DEADLINE_S)
        assert self.process.poll() is None, self.said
        return self

    def signal(self, number: int) -> None:
        os.kill(self.process.pid, number)

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S)


class Crew:
    """Workers that are ended when the test is. They wait in front of the last batch until `go`: what a test does to
    them in the middle of the work, it does in the middle, however slow it is."""

    def __init__(self, hold: HomeForTests, table: Table, folder: Path, before: str | None = None) -> None:
        self.hold, self.folder, self.jobs = hold, folder, "changed:jobs"
        self.workers: list[Worker] = []
        self._go = folder / "go"
        waits = table.module == "migrate_postgres"
        pause = "await asyncio.sleep(0.02)" if waits else "time.sleep(0.02)"
        gate = f"while batch == {table.batches - 1} and not os.path.exists({str(self._go)!r}): {pause}"
        source = BEFORE.format(
            module=table.module,
            before=before or gate,
            async_="async " if waits else "",
            await_="await " if waits else "",
        )
        (folder / "changed.py").write_text(source)
        hold.env["PYTHONPATH"] = str(EXAMPLES)

    def go(self) -> None:
        self._go.touch()

    def add(self, *options: str) -> Worker:
        made = Worker(self.hold, f"w{len(self.workers) + 1}", self.jobs, *options, folder=self.folder)
        self.workers.append(made)
        return made

    def named(self, name: str | None) -> Worker | None:
        return next((w for w in self.workers if w.name == name and w.process.poll() is None), None)

    def refill(self) -> None:
        """Always two: one works, one stands by."""
        while sum(w.process.poll() is None for w in self.workers) < 2:
            self.add("--standby")

    def close(self) -> None:
        for worker in self.workers:
            worker.process.kill()
            worker.process.wait()
