"""Browsers that are logged in to the console: held as hashes, each made from a link that worked once."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from typing import Any

from ..model.errors import HoldfastError
from ..model.limits import LINK_TTL_S, LOGIN_TTL_S, LOGINS_MAX
from ..model.names import refused
from .ledger import Ledger
from .operators import Commit

_LINK, _LOGIN = "link", "login"


class Logins:
    """Which hashes let a browser in, and until when. Whoever waits in `ended` hears at once when one no longer does."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: dict[str, tuple[str, float]] = {}  # hash -> what it is, until
        self._changed = asyncio.Event()
        self._using = asyncio.Lock()

    async def open(self) -> None:
        rows = "SELECT hash, kind, until FROM logins WHERE ended_at IS NULL AND until > ?"
        now = time.time()
        found: list[Any] = await self._ledger.write(lambda db: db.execute(rows, (now,)).fetchall())
        self._known = {str(hash): (str(kind), float(until)) for hash, kind, until in found}

    async def add(self, hash: str, commit: Commit) -> float:
        """A link that lets one browser in; when it ends."""
        now = time.time()
        self._forget_old(now)
        if hash in self._known:
            raise refused("that link was made before", "hold web link makes a new one")
        if len(self._known) >= LOGINS_MAX:
            raise HoldfastError("conflict", f"{LOGINS_MAX} browsers and links are known", "end them: hold web logout")
        until = now + LINK_TTL_S
        await commit(lambda db: _insert(db, hash, _LINK, now, until))
        self._known[hash] = (_LINK, until)
        return until

    async def use(self, link: str, login: str, commit: Commit) -> float:
        """A browser comes with a link: the link is over, the browser is in; until when."""
        async with self._using:  # of two at once, one
            now = time.time()
            kind, ends = self._known.get(link, ("", 0.0))
            if kind != _LINK or ends <= now or login in self._known or login == link:
                raise refused("that link is over, or was used before", "hold web link makes a new one")
            until = now + LOGIN_TTL_S

            def change(db: sqlite3.Connection) -> None:
                db.execute("UPDATE logins SET ended_at = ? WHERE hash = ?", (now, link))
                _insert(db, login, _LOGIN, now, until)

            del self._known[link]  # also where writing it down fails: once is once
            await commit(change)
            self._known[login] = (_LOGIN, until)
            return until

    def check(self, hash: str, now: float) -> float:
        """Until when a browser is in; the same words for one that is unknown or over."""
        kind, until = self._known.get(hash, ("", 0.0))
        if kind != _LOGIN or until <= now:
            raise refused("this browser is not logged in", "hold web link prints a link that logs it in")
        return until

    async def end(self, hash: str | None, commit: Commit) -> int:
        """One browser, or all of them with the links that wait; how many there were."""
        ended = [known for known in self._known if hash in (None, known)]

        def change(db: sqlite3.Connection) -> None:
            where, values = ("", ()) if hash is None else (" AND hash = ?", (hash,))
            db.execute("UPDATE logins SET ended_at = ? WHERE ended_at IS NULL" + where, (time.time(), *values))

        await commit(change)
        for known in ended:
            self._known.pop(known, None)
        self._changed.set()
        self._changed = asyncio.Event()
        return len(ended)

    async def ended(self, hash: str) -> None:
        """Until a browser is no longer in."""
        while True:
            changed = self._changed
            try:
                until = self.check(hash, time.time())
            except HoldfastError:
                return
            try:
                async with asyncio.timeout(max(0.0, until - time.time())):
                    await changed.wait()
            except TimeoutError:
                continue

    def _forget_old(self, now: float) -> None:
        self._known = {hash: about for hash, about in self._known.items() if about[1] > now}


def _insert(db: sqlite3.Connection, hash: str, kind: str, at: float, until: float) -> None:
    db.execute("DELETE FROM logins WHERE until < ?", (at - LOGIN_TTL_S,))  # nobody asks for those any more
    db.execute("INSERT INTO logins VALUES (?, ?, ?, ?, NULL)", (hash, kind, at, until))
