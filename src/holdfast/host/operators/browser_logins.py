"""Browsers that are logged in to the console: held as hashes, each made from a link that worked once for one person."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from typing import Any, NamedTuple

from ...model.errors import HoldfastError
from ...model.limits import CLOCK_LOOK_S, LINK_TTL_S, LOGIN_TTL_S, LOGINS_MAX
from ...model.names import refused
from ..journal.ledger import Ledger
from .operators import Commit, Operator, Operators

_LINK, _LOGIN = "link", "login"


class _Known(NamedTuple):
    """What a hash is, until when, and who comes in with it."""

    kind: str
    until: float
    operator: str


_NOBODY = _Known("", 0.0, "")


class Logins:
    """Which hashes let whom in, and until when. Whoever waits in `ended` hears at once when one no longer does."""

    def __init__(self, ledger: Ledger, operators: Operators) -> None:
        self._ledger, self._operators = ledger, operators
        self._known: dict[str, _Known] = {}
        self._changed = asyncio.Event()
        self._turn = asyncio.Lock()  # what is written and what is known change together

    async def open(self) -> None:
        rows = "SELECT hash, kind, until, operator FROM logins WHERE ended_at IS NULL AND until > ?"
        now, owner = time.time(), self._operators.first
        found: list[Any] = await self._ledger.write(lambda db: db.execute(rows, (now,)).fetchall())
        self._known = {str(h): _Known(str(kind), float(until), str(who or owner)) for h, kind, until, who in found}

    async def add(self, hash: str, who: Operator, commit: Commit) -> float:
        """A link that lets one browser of one person in; when it ends."""
        now = time.time()
        if who.kind != "human":
            raise refused(f"{who.name} is {_A[who.kind]}", "a browser is a person's; for others: hold mcp token")
        if who.revoked_at is not None:
            raise refused(f"{who.name} was revoked", "enrol another one")
        self._forget_old(now)
        if hash in self._known:
            raise refused("that link was made before", "hold web link makes a new one")
        if sum(known.operator == who.id for known in self._known.values()) >= LOGINS_MAX:  # nobody fills another's
            words = f"{LOGINS_MAX} browsers and links of {who.name} are known"
            raise HoldfastError("conflict", words, "the owner ends them: hold web logout")
        made = _Known(_LINK, now + LINK_TTL_S, who.id)
        async with self._turn:
            await commit(lambda db: _insert(db, hash, made, now))
            self._known[hash] = made
        return made.until

    def whose(self, link: str) -> Operator | None:
        """Who comes in with a link, if it is one."""
        return self._operators.by_id.get(self._known.get(link, _NOBODY).operator)

    async def use(self, link: str, login: str, commit: Commit) -> float:
        """A browser comes with a link: the link is over, the browser is in; until when."""
        async with self._turn:  # of two at once, one
            now = time.time()
            known = self._known.get(link, _NOBODY)
            if not self._good(known, _LINK, now) or login in self._known or login == link:
                raise refused("that link is over, or was used before", "hold web link makes a new one")
            made = _Known(_LOGIN, now + LOGIN_TTL_S, known.operator)

            def change(db: sqlite3.Connection) -> None:
                db.execute("UPDATE logins SET ended_at = ? WHERE hash = ?", (now, link))
                _insert(db, login, made, now)

            del self._known[link]  # also where writing it down fails: once is once
            await commit(change)
            self._known[login] = made
            return made.until

    def check(self, hash: str, now: float) -> tuple[Operator, float]:
        """Whose browser it is, and until when; the same words for one that is unknown, over or revoked."""
        known = self._known.get(hash, _NOBODY)
        if not self._good(known, _LOGIN, now):
            raise refused("this browser is not logged in", "hold web link prints a link that logs it in")
        return self._operators.by_id[known.operator], known.until

    def _good(self, known: _Known, kind: str, now: float) -> bool:
        who = self._operators.by_id.get(known.operator)
        return known.kind == kind and known.until > now and who is not None and who.revoked_at is None

    async def end(self, hash: str | None, commit: Commit) -> int:
        """One browser, or all of them with the links that wait; how many there were."""

        def change(db: sqlite3.Connection) -> None:
            where, values = ("", ()) if hash is None else (" AND hash = ?", (hash,))
            db.execute("UPDATE logins SET ended_at = ? WHERE ended_at IS NULL" + where, (time.time(), *values))

        async with self._turn:  # a browser that is coming in is in, and then out, or does not come in
            ended = [known for known in self._known if hash in (None, known)]
            await commit(change)
            for known in ended:
                self._known.pop(known, None)
        self.recheck()
        return len(ended)

    def recheck(self) -> None:
        """Something ended: everybody who waits looks again."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def ended(self, hash: str) -> None:
        """Until a browser is no longer in."""
        while True:
            changed = self._changed
            try:
                _, until = self.check(hash, time.time())
            except HoldfastError:
                return
            try:
                async with asyncio.timeout(min(max(0.0, until - time.time()), CLOCK_LOOK_S)):
                    await changed.wait()
            except TimeoutError:
                continue

    def _forget_old(self, now: float) -> None:
        self._known = {hash: about for hash, about in self._known.items() if about.until > now}


_A = {"agent": "an agent", "service": "a service"}


def _insert(db: sqlite3.Connection, hash: str, made: _Known, at: float) -> None:
    db.execute("DELETE FROM logins WHERE until < ?", (at - LOGIN_TTL_S,))  # nobody asks for those any more
    values = (hash, made.kind, at, made.until, made.operator)
    db.execute("INSERT INTO logins (hash, kind, at, until, operator) VALUES (?, ?, ?, ?, ?)", values)
