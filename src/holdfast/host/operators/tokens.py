"""Bearer tokens of agents that come over HTTP: held as hashes, ended with their operator, by hand, or by time."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from typing import Any

from ...model.errors import HoldfastError
from ...model.limits import CLOCK_LOOK_S, TOKENS_MAX
from ...model.names import refused
from ..journal.ledger import Ledger
from .operators import Commit, Operator, Operators

Json = dict[str, Any]


class Tokens:
    """Which hashes stand for whom. Whoever waits in `ended` hears at once when one no longer does."""

    def __init__(self, ledger: Ledger, operators: Operators) -> None:
        self._ledger, self._operators = ledger, operators
        self._known: dict[str, tuple[str, float | None]] = {}  # hash -> operator, until
        self._changed = asyncio.Event()

    async def open(self) -> None:
        rows = "SELECT hash, operator, until FROM tokens WHERE ended_at IS NULL"
        found: list[Any] = await self._ledger.write(lambda db: db.execute(rows).fetchall())
        self._known = {str(hash): (str(operator), until) for hash, operator, until in found}

    def find(self, hash: str, now: float) -> Operator:
        """Whom a token stands for at this moment; the same words for one that is unknown, over or revoked."""
        operator, until = self._known.get(hash, ("", None))
        who = self._operators.by_id.get(operator)
        if who is None or who.revoked_at is not None or (until is not None and until <= now):
            raise refused("that token is not valid", "a person makes one: hold mcp token AGENT")
        return who

    async def add(self, hash: str, who: Operator, by: str, until: float, commit: Commit) -> None:
        now = time.time()
        if who.kind == "human":
            raise refused(f"{who.name} is a person", "a token is for an agent or a service")
        if who.revoked_at is not None:
            raise refused(f"{who.name} was revoked", "enrol another one")
        if hash in self._known:
            raise refused("that token was used before", "make a new one")
        if sum(end is None or end > now for _, end in self._known.values()) >= TOKENS_MAX:
            raise HoldfastError("conflict", f"{TOKENS_MAX} tokens are in force", "end some: hold mcp token AGENT --end")
        values = (hash, who.id, by, now, until)
        await commit(lambda db: db.execute("INSERT INTO tokens VALUES (?, ?, ?, ?, ?, NULL)", values))
        self._known[hash] = (who.id, until)

    async def end(self, who: Operator, commit: Commit) -> int:
        """All of an operator's; how many there were."""

        def change(db: sqlite3.Connection) -> None:
            db.execute("UPDATE tokens SET ended_at = ? WHERE operator = ? AND ended_at IS NULL", (time.time(), who.id))

        await commit(change)
        # Asked only now: one that was made meanwhile, before it, is ended in the ledger as well.
        mine = [hash for hash, (operator, _) in self._known.items() if operator == who.id]
        for hash in mine:
            self._known.pop(hash, None)
        self.recheck()
        return len(mine)

    def recheck(self) -> None:
        """Something ended: everybody who waits looks again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def ended(self, hash: str) -> None:
        """Until a token is no longer valid."""
        while True:
            changed = self._changed
            try:
                self.find(hash, time.time())
            except HoldfastError:
                return
            until = self._known[hash][1]
            left = None if until is None else min(max(0.0, until - time.time()), CLOCK_LOOK_S)
            try:
                async with asyncio.timeout(left):
                    await changed.wait()
            except TimeoutError:
                continue
