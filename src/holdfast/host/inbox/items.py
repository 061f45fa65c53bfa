"""The inbox: items that wait for a person, kept in the ledger. The only place that makes or ends one.

Every change has a number (`changed`) that only grows, so that a client follows by asking for what came after the
last number it has seen; also across a restart of the host. Whoever waits is told only what is durable.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from ...model import ids, limits
from ...model.errors import HoldfastError, not_found
from ...model.inbox import item as asks
from ...model.times import rfc3339

Json = dict[str, Any]
T = TypeVar("T")
Changed = Callable[[Json], None]
Effect = Callable[[Json], Awaitable[None]]
Commit = Callable[[Callable[[sqlite3.Connection], object]], Awaitable[None]]

_NO_DATE = 1e18
# What the host itself keeps with an item: requests; the prompt or menu it is about; who asked, from which dialog.
_KEPT = frozenset(
    {"request", "answer_request", "spent", "input_at", "front", "blocked_at", "process", "dialog", "stands"}
)  # the request that waits for it (host/inbox/standing_requests.py)


class _Ledger(Protocol):
    """The part of host.ledger.Ledger that is used here."""

    def write(self, fn: Callable[[sqlite3.Connection], T]) -> Awaitable[T]: ...
    def read(self, fn: Callable[[sqlite3.Connection], T]) -> Awaitable[T]: ...


class Entry:
    """An open item. `lock` is held by the one who ends it, `done` is set once its end is durable."""

    __slots__ = ("done", "item", "lock")

    def __init__(self, item: Json) -> None:
        self.item = item
        self.lock = asyncio.Lock()
        self.done = asyncio.Event()


class Inbox:
    """Open items in memory, all of them in the ledger. `on_change(item)` hears of each new one and of its end."""

    def __init__(self, ledger: _Ledger, on_change: Changed, clock: Callable[[], float] = time.time) -> None:
        self._ledger, self._on_change, self._clock = ledger, on_change, clock
        self.entries: dict[str, Entry] = {}
        self.last = 0
        self._changed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def load(self) -> None:
        """What was open when the last host went; what ran out of time meanwhile has expired."""
        rows, self.last = await self._ledger.read(_read_open)
        self.entries = {item["id"]: Entry(item) for item in map(json.loads, rows)}
        self._set_timer()

    # -- looking

    def open_items(self) -> list[Json]:
        return sorted((e.item for e in self.entries.values()), key=lambda i: (i["created_at"], i["id"]))

    async def find(self, ask: str) -> Json:
        """An item by its id, or by an unambiguous beginning of one that is open."""
        if ask in self.entries:
            return self.entries[ask].item
        prefix = ask if ask.startswith("ask_") else "ask_" + ask
        hits = [i for i in self.entries if len(prefix) > len("ask_") and i.startswith(prefix)]
        if len(hits) == 1:
            return self.entries[hits[0]].item
        row = await self._ledger.read(lambda db: db.execute("SELECT body FROM asks WHERE id = ?", (ask,)).fetchone())
        if row is None:
            raise not_found(f"no inbox item {ask[:60]!r}", "hold inbox lists them")
        found: Json = json.loads(row[0])
        return found

    async def by_request(self, request: str) -> Json | None:
        """The item that was made for this very request before, whatever became of it."""
        query = "SELECT body FROM asks WHERE request = ?"
        row = await self._ledger.read(lambda db: db.execute(query, (request,)).fetchone())
        return json.loads(row[0]) if row else None

    async def since(self, after: int) -> list[Json]:
        """Items whose last change is newer than `after`, in order of their changes."""
        query = "SELECT body FROM asks WHERE changed > ? ORDER BY changed"
        rows = await self._ledger.read(lambda db: db.execute(query, (after,)).fetchall())
        return [json.loads(row[0]) for row in rows]

    async def change(self, after: int) -> None:
        """Until something is newer than `after`."""
        while self.last <= after:
            await self._changed.wait()

    async def settled(self, ask: str) -> Json:
        """The item once it is no longer open."""
        entry = self.entries.get(ask)
        if entry is not None:
            await entry.done.wait()
        return await self.find(ask)

    # -- changing

    async def add(
        self,
        kind: str,
        *,
        session: Json | None = None,
        asker: Json | None = None,
        text: str = "",
        options: list[str] | None = None,
        detail: Json | None = None,
        timeout_s: float | None = None,
        request: str | None = None,
        prompt: Json | None = None,
        ask: str | None = None,
        more: Json | None = None,
    ) -> Json:
        """A new item, durable when this returns. `session` is {session, session_name, generation}; `more` is what the
        host keeps with it and shows to nobody (_KEPT)."""
        if asker is not None and sum(_is_of(e.item, asker) for e in self.entries.values()) >= limits.ASKS_OPEN_MAX:
            raise HoldfastError(
                "busy", f"{asker['name']} has {limits.ASKS_OPEN_MAX} open inbox items", "wait for an answer first"
            )
        now = self._clock()
        item: Json = {
            "id": ask or ids.new("ask_"),
            "kind": kind,
            "state": "open",
            **(session or {"session": None, "session_name": None, "generation": None}),
            "asker": asker,
            "text": text,
            "options": options or [],
            "detail": detail or {},
            "request": request,
            "created_at": now,
            "expires_at": None if timeout_s is None else now + timeout_s,
            **(prompt or {"input_at": None, "offset": None}),
            "answer": None,
            "answered_by": None,
            "answered_at": None,
            "answer_request": None,
            "answer_why": None,
            "reason": None,
            **(more or {}),
        }
        adding = asyncio.ensure_future(self._add(item))
        try:
            return await asyncio.shield(adding)
        except asyncio.CancelledError:  # who leaves meanwhile leaves no item that only the disk knows
            await asyncio.wait({adding})
            raise

    async def _add(self, item: Json) -> Json:
        try:
            await self._store(item, new=True)
        except sqlite3.IntegrityError:
            raise HoldfastError("conflict", f"{item['id']} was asked already", "ask anew, under another id") from None
        self.entries[item["id"]] = Entry(item)
        self._woken(item)
        self._set_timer()
        self._on_change(item)
        return item

    async def end(
        self,
        ask: str,
        event: str,
        *,
        by: Json | None = None,
        answer: str | None = None,
        request: str | None = None,
        why: str | None = None,
        effect: Effect | None = None,
        commit: Commit | None = None,
        reason: str | None = None,
    ) -> Json:
        """End an item, once. `effect` runs before the end is written down and may refuse it; `commit` writes it down
        together with what the journal says of it. Whoever leaves meanwhile does not leave half an end behind.

        An effect that is done and not yet written when the host dies is not done again: it is the effect itself
        that refuses (a prompt that was answered is another prompt).
        """
        entry = self.entries.get(ask)
        if entry is None:
            item = await self.find(ask)
            if request is not None and item["answer_request"] == request:
                return item  # the same request, sent again because its reply was lost
            raise asks.over(item)
        return await asyncio.shield(self._end(entry, event, by, answer, request, why, effect, commit, reason))

    async def _end(
        self,
        entry: Entry,
        event: str,
        by: Json | None,
        answer: str | None,
        request: str | None,
        why: str | None,
        effect: Effect | None,
        commit: Commit | None,
        reason: str | None,
    ) -> Json:
        async with entry.lock:
            if entry.item["state"] != "open":
                raise asks.over(entry.item)
            state = asks.after(entry.item, event)
            if effect is not None:
                await effect(entry.item)
            ended = {
                **entry.item,
                "state": state,
                "answer": answer,
                "answered_by": by,
                "answer_request": request,
                "answer_why": why,
                "answered_at": self._clock(),
                "reason": reason,
            }
            await self._store(ended, commit)
            entry.item = ended
            self.entries.pop(ended["id"], None)
            entry.done.set()
            self._woken(ended)
        self._set_timer()
        self._on_change(ended)
        return ended

    async def spend(self, ask: str) -> bool:
        """Use a yes, durably; false where it was used before. One yes is for one run, however often it is asked."""

        def write(db: sqlite3.Connection) -> bool:
            row = db.execute("SELECT body FROM asks WHERE id = ?", (ask,)).fetchone()
            item = json.loads(row[0]) if row else {"spent": True}
            if item.get("spent"):
                return False
            db.execute("UPDATE asks SET body = ? WHERE id = ?", (json.dumps({**item, "spent": True}), ask))
            return True

        return await self._ledger.write(write)

    async def standing(self) -> list[Json]:
        """The items that keep a request."""
        query = "SELECT body FROM asks WHERE instr(body, ?) ORDER BY changed"
        rows = await self._ledger.read(lambda db: db.execute(query, ('"stands"',)).fetchall())
        return [item for item in (json.loads(row[0]) for row in rows) if "stands" in item]

    async def amend_request(self, ask: str, facts: Json) -> None:
        """Keep more about the request that an ended item was made for."""

        def write(db: sqlite3.Connection) -> None:
            row = db.execute("SELECT body FROM asks WHERE id = ?", (ask,)).fetchone()
            if row is not None:  # else so many came after it that it is no longer kept
                item = json.loads(row[0])
                item["stands"] = {**item["stands"], **facts}
                db.execute("UPDATE asks SET body = ? WHERE id = ?", (json.dumps(item), ask))

        await self._ledger.write(write)

    async def amend(self, ask: str, **changes: Any) -> None:
        """Change what an open item says, durably; one that is over stays as it is."""
        entry = self.entries.get(ask)
        if entry is None:
            return
        async with entry.lock:
            if entry.item["state"] == "open":
                item = {**entry.item, **changes}
                await self._store(item)
                entry.item = item
                self._woken(item)

    async def vanish(self, matches: Callable[[Json], bool], reason: str | None = None) -> None:
        """Whatever matches is no longer wanted."""
        for item in self.open_items():
            if matches(item):
                await self._end_quietly(item["id"], "vanish", reason)

    async def _end_quietly(self, ask: str, event: str, reason: str | None = None) -> None:
        try:
            await self.end(ask, event, reason=reason)
        except HoldfastError:
            pass  # somebody answered it a moment earlier

    async def _store(self, item: Json, commit: Commit | None = None, *, new: bool = False) -> None:
        def write(db: sqlite3.Connection) -> int:
            changed: int = db.execute("SELECT COALESCE(MAX(changed), 0) + 1 FROM asks").fetchone()[0]
            item["changed"] = changed
            row = (item["id"], changed, item["state"], item["request"], json.dumps(item))
            if new:
                db.execute("INSERT INTO asks (id, changed, state, request, body) VALUES (?, ?, ?, ?, ?)", row)
            else:
                change = "UPDATE asks SET changed = ?, state = ?, body = ? WHERE id = ?"
                db.execute(change, (changed, item["state"], row[4], item["id"]))
            db.execute(
                "DELETE FROM asks WHERE state != 'open' AND changed <= "
                "(SELECT changed FROM asks WHERE state != 'open' ORDER BY changed DESC LIMIT 1 OFFSET ?)",
                (limits.ASKS_CLOSED_KEPT,),
            )
            return changed

        await (self._ledger.write(write) if commit is None else commit(write))

    def _woken(self, item: Json) -> None:
        self.last = max(self.last, int(item["changed"]))
        self._changed.set()
        self._changed = asyncio.Event()

    # -- time

    def _set_timer(self) -> None:
        """One timer for the next item that runs out; none where no item does."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = min((e.item["expires_at"] or _NO_DATE for e in self.entries.values()), default=_NO_DATE)
        if due < _NO_DATE:
            delay = min(max(0.0, due - self._clock()), limits.CLOCK_LOOK_S)  # the clock may be set meanwhile
            self._timer = asyncio.get_running_loop().call_later(delay, self._expire)

    def _expire(self) -> None:
        now = self._clock()
        self._timer = None
        late = [i["id"] for i in self.open_items() if (i["expires_at"] or _NO_DATE) <= now]
        task = asyncio.get_running_loop().create_task(self._expire_all(late))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _expire_all(self, late: list[str]) -> None:
        for ask in late:
            await self._end_quietly(ask, "expire")
        self._set_timer()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()


def _is_of(item: Json, asker: Json) -> bool:
    return bool(item["asker"]) and item["asker"]["operator"] == asker["operator"]


def _read_open(db: sqlite3.Connection) -> tuple[list[str], int]:
    rows = [row[0] for row in db.execute("SELECT body FROM asks WHERE state = 'open' ORDER BY changed")]
    return rows, int(db.execute("SELECT COALESCE(MAX(changed), 0) FROM asks").fetchone()[0])


def view(item: Json, name: str | None) -> Json:
    """An item as clients see it; the session's name is the present one."""
    shown = {k: v for k, v in item.items() if k not in _KEPT}
    shown["session_name"] = name or item["session_name"]
    shown = {"answer_why": None, "reason": None, **shown}  # an item of an older host has none
    for key in ("created_at", "expires_at", "answered_at"):
        shown[key] = rfc3339(item[key])
    return shown
