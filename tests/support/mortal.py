"""Workers that die at a chosen point: a process that forks one per job, which kills itself at its nth boundary.

A boundary is the moment before each statement that writes (BEGIN and COMMIT too; of PostgreSQL, before each message that has one), after each COMMIT, and around each
effect on the world; at a read nothing is different from the boundary before it. Run as
`python -m tests.support.mortal`: jobs come as JSON lines, and each is answered with how its worker ended.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from typing import Any

Json = dict[str, Any]


class Boundaries:
    """Counts them, and dies at the one that was asked for."""

    def __init__(self, die_at: int) -> None:
        self.passed, self.die_at = 0, die_at

    def tick(self) -> None:
        self.passed += 1
        if self.passed == self.die_at:
            os.kill(os.getpid(), signal.SIGKILL)


def writes(sql: str) -> bool:
    return commits(sql) or not sql.startswith(("SELECT", "WITH", "PRAGMA"))


def commits(sql: str) -> bool:
    """Also a statement that is a transaction of its own (store/postgres.py)."""
    return sql == "COMMIT" or (sql.startswith("WITH held") and "INSERT INTO log" in sql)


def watch_statements(boundaries: Boundaries) -> None:
    """In this process, every writing statement has a boundary before it, and COMMIT one after it too."""
    from holdfast.store.postgres_connection import Connection

    class Watched(sqlite3.Connection):
        def execute(self, *args: Any) -> sqlite3.Cursor:
            if writes(args[0]):
                boundaries.tick()
            cursor = super().execute(*args)
            if args[0] == "COMMIT":
                boundaries.tick()
            return cursor

    plain_connect = sqlite3.connect

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        return plain_connect(*args, factory=Watched, **options)

    sqlite3.connect = connect  # type: ignore[assignment]

    plain_ask = Connection.ask

    def ask(self: Connection, queries: Any) -> Any:
        if any(writes(query.sql) for query in queries):
            boundaries.tick()
        answer = plain_ask(self, queries)
        if any(commits(query.sql) for query in queries):
            boundaries.tick()
        return answer

    Connection.ask = ask  # type: ignore[method-assign]


def _child(job: Json) -> int:
    boundaries = Boundaries(job.get("die_at", 0))
    watch_statements(boundaries)
    module, _, name = job["scenario"].rpartition(":")
    scenario = getattr(importlib.import_module(module), name)
    asyncio.run(scenario(job, boundaries))
    return 0


def main() -> None:
    for module in sys.argv[1:]:
        importlib.import_module(module)
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(0)
                status = _child(json.loads(line))
            except BaseException:  # noqa: BLE001 - a child of fork ends here, whatever happened
                import traceback

                traceback.print_exc()
            finally:
                os._exit(status)
        _, ended = os.waitpid(pid, 0)
        sys.stdout.write(json.dumps({"code": os.waitstatus_to_exitcode(ended)}) + "\n")
        sys.stdout.flush()


class Nursery:
    """The test's end of it."""

    def __init__(self, *modules: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.mortal", *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, scenario: str, die_at: int = 0, **job: Any) -> bool:
        """Whether it lived to its end; anything but that or the kill is a failure."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"scenario": scenario, "die_at": die_at, **job}) + "\n")
        self._process.stdin.flush()
        code = json.loads(self._process.stdout.readline())["code"]
        assert code in (0, -signal.SIGKILL), f"{scenario} ended with {code}; see stderr"
        return bool(code == 0)

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()
            self._process.stdout.close()


if __name__ == "__main__":
    main()
