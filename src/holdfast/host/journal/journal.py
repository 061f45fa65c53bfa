"""The journal: who did what, in order, each entry chained to the one before, heads signed by the host's key."""

from __future__ import annotations

import asyncio
import logging
import os
import sqlite3
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from ...model import journal_chain as chain
from ...model import limits
from ...model.errors import HoldfastError
from ...system.atomic_files import read_json, write_json
from .ledger import Ledger

Json = dict[str, Any]
T = TypeVar("T")
log = logging.getLogger("holdfast.host")

_SIGN_AFTER_S = 2.0  # without a new entry for so long the end is signed too: a burst costs one signature more
_LEISURE_S = 0.005  # an entry that is owed anyway is committed beside the answer, not before it
_QUEUE_MAX = 10_000  # entries that wait for a disk that does not answer; past it the host refuses to act

Sign = Callable[[bytes], bytes]
Signed = Callable[[str, bytes], bool]  # whether a hex signature of these bytes is the host's


class NotWritten(HoldfastError):
    """What was noted is not on disk, and waits for it in memory. Whether it was done is for whoever noted it to say."""


class Journal:
    """`note` queues, `written` waits until everything noted so far is durable."""

    def __init__(self, ledger: Ledger, host: str, head_file: str, sign: Sign, signed: Signed) -> None:
        self._ledger, self._host, self._head_file, self._sign, self._signed = ledger, host, head_file, sign, signed
        self._queue: deque[Json] = deque()
        self._noted = self._durable = 0
        self.failing = False  # the last commit did not reach the disk
        self._job: asyncio.Task[None] | None = None
        self._idle: asyncio.TimerHandle | None = None
        self.tip: tuple[int, bytes] = (0, chain.first_hash(host))
        self._head_n = 0

    async def open(self) -> None:
        """Find the end of the chain; a chain that lost what was signed is told, and its last head kept."""
        self.tip = await self._ledger.read(self._tip)
        kept = read_json(self._head_file)
        if kept is None:
            return
        n, digest = int(kept.get("n") or 0), str(kept.get("hash"))
        found = await self._ledger.read(lambda db: _hash_at(db, n))
        if found is None or found.hex() != digest:
            log.error("the journal does not hold entry %d as it was signed: hold journal verify", n)
            os.replace(self._head_file, f"{self._head_file}.{n}.kept")
        else:
            self._head_n = n

    # -- writing

    def note(
        self,
        kind: str,
        *,
        session: str | None,
        actor: Json | None,
        why: str | None = None,
        epoch: int | None = None,
        offset: int | None = None,
        owed: bool = False,
        alone: bool = False,
        **facts: Any,
    ) -> None:
        """Queue an entry: durable with the next commit, in this order. One that is `owed` is on disk in another form,
        which the next host would make it from: nobody waits for it, and its commit gets out of the answer's way. One
        that comes `alone` need not wait for the loop's next turn, as those do that others are noted with."""
        if len(self._queue) >= _QUEUE_MAX:
            raise HoldfastError("busy", "the journal's disk does not keep up", "see the disk, then try again")
        entry = _entry(kind, actor, {"session": session, "why": why, "epoch": epoch, "offset": offset, **facts})
        chain.canonical(entry)  # what cannot be written is the caller's error now, not everybody's at every commit
        self._queue.append(entry)
        self._noted += 1
        if owed:
            asyncio.get_running_loop().call_later(_LEISURE_S, self._begin)
        else:
            self._begin(alone)

    def _begin(self, at_once: bool = False) -> None:
        if self._job is None and self._queue:
            begun = self._write() if at_once else None
            self._job = asyncio.get_running_loop().create_task(self._commit(begun))

    def _write(self) -> tuple[int, Awaitable[tuple[int, bytes]]]:
        """Have all that is queued written; how many entries that is, and the new end of the chain."""
        batch = list(self._queue)
        return len(batch), self._ledger.write(lambda db: self._append(db, batch))

    async def commit(
        self, work: Callable[[sqlite3.Connection], object], kind: str, *, actor: Json, why: str | None, **facts: Any
    ) -> None:
        """A change of the ledger and its entry in one transaction: neither is there without the other."""
        entry = _entry(kind, actor, {"why": why, **facts})

        def both(db: sqlite3.Connection) -> tuple[int, bytes]:
            work(db)
            return self._append(db, [entry])

        self.tip = await self._ledger.write(both)
        self._keep_head()
        self._sign_when_idle()

    async def written(self) -> None:
        """Until everything noted so far is durable; raises where it cannot be."""
        goal = self._noted
        while self._durable < goal:
            self._begin()
            assert self._job is not None
            await _kept(asyncio.shield(self._job))

    async def _commit(self, begun: tuple[int, Awaitable[tuple[int, bytes]]] | None) -> None:
        """Take what is queued, until nothing is: one commit for all that came meanwhile."""
        try:
            while self._queue:
                (count, written), begun = begun or self._write(), None
                self.tip = await written
                for _ in range(count):
                    self._queue.popleft()
                self._durable += count
                self.failing = False
                self._keep_head()
        except HoldfastError as e:
            self.failing = True
            log.error("journal: %s", e.line())
            raise
        finally:
            self._job = None
        self._sign_when_idle()

    def _append(self, db: sqlite3.Connection, batch: list[Json]) -> tuple[int, bytes]:
        """On the ledger's thread, inside its transaction."""
        n, digest = self._tip(db)
        for entry in batch:
            n += 1
            body = chain.canonical({"n": n, **entry})
            digest = chain.next_hash(digest, body)
            db.execute("INSERT INTO entries VALUES (?, ?, ?, ?)", (n, body, digest, entry.get("session")))
            if n % chain.HEAD_EVERY == 0:
                self._sign_head(db, n, digest)
        return n, digest

    def _sign_head(self, db: sqlite3.Connection, n: int, digest: bytes) -> None:
        head = chain.head(self._host, n, digest, round(time.time(), 6))
        signature = self._sign(chain.head_bytes(head)).hex()
        db.execute("INSERT OR IGNORE INTO heads VALUES (?, ?, ?, ?)", (n, head["hash"], head["at"], signature))

    def _tip(self, db: sqlite3.Connection) -> tuple[int, bytes]:
        found = db.execute("SELECT n, hash FROM entries ORDER BY n DESC LIMIT 1").fetchone()
        return (int(found[0]), bytes(found[1])) if found else (0, chain.first_hash(self._host))

    # -- what keepers spooled

    async def ingested(self, session: str) -> int:
        """The number up to which a session's spool is in the journal; numbers go on across generations."""
        query = "SELECT max(upto) FROM spooled WHERE session = ?"
        found = await self._ledger.read(lambda db: db.execute(query, (session,)).fetchone())
        return int(found[0] or 0)

    async def ingest(self, session: str, name: str, events: list[Json]) -> None:
        """Chain what a keeper recorded; what is there already is left out, in the same transaction that knows."""
        self.tip = await _kept(self._ledger.write(lambda db: self._ingest(db, session, name, events)))
        self._keep_head()
        self._sign_when_idle()

    def _ingest(self, db: sqlite3.Connection, session: str, name: str, events: list[Json]) -> tuple[int, bytes]:
        fresh, upto = [], dict[int, int]()
        for event in events:
            generation, number = int(event.get("generation") or 0), int(event.get("n") or 0)
            if generation not in upto:
                query = "SELECT upto FROM spooled WHERE session = ? AND generation = ?"
                found = db.execute(query, (session, generation)).fetchone()
                upto[generation] = int(found[0]) if found else 0
            if number > upto[generation]:
                upto[generation] = number
                about = {k: v for k, v in event.items() if v is not None and k not in ("n", "session")}
                fresh.append({**about, "session": session, "session_name": name, "spool": number})
        for generation, number in upto.items():
            change = "INSERT INTO spooled VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET upto = excluded.upto"
            db.execute(change, (session, generation, number))
        return self._append(db, fresh)

    # -- heads

    def _sign_when_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        loop = asyncio.get_running_loop()
        self._idle = loop.call_later(_SIGN_AFTER_S, lambda: loop.create_task(self.sign()))

    def _keep_head(self) -> None:
        """After a commit that reached a multiple: the newest head goes beside the ledger."""
        if self.tip[0] // chain.HEAD_EVERY > self._head_n // chain.HEAD_EVERY:
            asyncio.get_running_loop().create_task(self._write_head())

    async def sign(self) -> Json | None:
        """Sign the chain's end and keep the head; None while nothing was ever written."""
        await self.written()
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        if self.tip[0] == 0:
            return None
        await self._ledger.write(lambda db: self._sign_head(db, *self._tip(db)))
        return await self._write_head()

    async def _write_head(self) -> Json | None:
        head = await self.head()
        if head is not None and head["n"] > self._head_n:
            self._head_n = head["n"]
            write_json(self._head_file, head, durable=False)
        return head

    async def head(self) -> Json | None:
        """The newest signed head."""
        return await self._ledger.read(self._last_head)

    def _last_head(self, db: sqlite3.Connection) -> Json | None:
        found = db.execute("SELECT n, hash, at, signature FROM heads ORDER BY n DESC LIMIT 1").fetchone()
        return _head_row(self._host, found) if found else None

    # -- proving

    async def verify(self, foreign: list[Json]) -> chain.JournalCheck:
        """Walk all of it on the reading thread, against the heads in the ledger, beside it, and given."""
        await self.written()
        known = [*foreign, *self._kept_heads()]
        return await self._ledger.read(lambda db: self._verify(db, known, self.tip))

    def _kept_heads(self) -> list[Json]:
        """The newest head beside the ledger, and those that a damaged chain did not match when it was opened."""
        folder, name = os.path.split(self._head_file)
        files = [n for n in os.listdir(folder) if n == name or (n.startswith(name + ".") and n.endswith(".kept"))]
        return [h for h in (read_json(os.path.join(folder, n)) for n in files) if h and "n" in h]

    def _verify(self, db: sqlite3.Connection, known: list[Json], tip: tuple[int, bytes]) -> chain.JournalCheck:
        db.execute("BEGIN")  # one view of the whole, whatever is written meanwhile
        try:
            found = db.execute("SELECT n, hash, at, signature FROM heads ORDER BY n")
            heads = [_head_row(self._host, row) for row in found]
            # SQLite keeps any type anywhere: whoever changes a value's type must not get past the check by an error.
            rows = db.execute(
                "SELECT n, COALESCE(CAST(body AS BLOB), x''), hash, CAST(session AS TEXT) FROM entries ORDER BY n"
            )
            verdict = chain.verify(rows, heads, self._host, self._is_signed, known)
        finally:
            db.execute("ROLLBACK")
        if verdict.ok and verdict.entries < tip[0]:  # it ran past this entry a moment ago
            verdict.bad, verdict.reason = verdict.entries + 1, "the end is cut off"
        return verdict

    def _is_signed(self, head: Json) -> bool:
        return self._signed(str(head.get("signature")), chain.head_bytes(head))

    async def close(self) -> None:
        """At the host's end: everything written, the end signed."""
        try:
            await self.sign()
        except HoldfastError as e:
            log.error("the journal's end is not signed: %s", e.line())
        if self._idle is not None:
            self._idle.cancel()


async def _kept(writing: Awaitable[T]) -> T:
    try:
        return await writing
    except HoldfastError as e:
        raise NotWritten(e.code, e.message, e.hint) from None


def _entry(kind: str, actor: Json | None, about: Json) -> Json:
    """An entry without its number; what is None is left out."""
    entry = {"kind": kind, "at": round(time.time(), 6), **about}
    if entry.get("why") is not None:
        entry["why"] = str(entry["why"])[: limits.WHY_MAX]
    if actor is not None:
        entry.update(operator=actor["operator"], operator_kind=actor["kind"], name=actor["name"])
    return {k: v for k, v in entry.items() if v is not None}


def _head_row(host: str, row: tuple[int, str, float, str]) -> Json:
    return {"host": host, "n": row[0], "hash": row[1], "at": row[2], "signature": row[3]}


def _hash_at(db: sqlite3.Connection, n: int) -> bytes | None:
    found = db.execute("SELECT hash FROM entries WHERE n = ?", (n,)).fetchone()
    return bytes(found[0]) if found else None
