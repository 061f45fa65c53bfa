"""Checkpoints of runs: saved at milestones by whoever works, and from the log by policy for whoever never asks.

The live state of a run is its last checkpoint with the log folded in since (replay.py). It is kept in memory between
saves, so that a save reads the entries since the last one and writes the change, however long the history is.
"""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

from ...delta import encode
from ...delta.save_chain import SaveChains
from ...model import ids
from ...model.errors import HoldfastError, invalid
from ...model.limits import CHECKPOINT_BYTES, CHECKPOINT_ENTRIES
from ...model.work import run_state
from ...store import queries
from ..background import Background
from ..runs import log
from . import rows
from .rows import Moved, New, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...delta.save_chain import SaveChain
    from ...store.base import Store, Transaction

Json = dict[str, Any]

_PAGE = 1000  # log entries per query while folding
_CHAINS_KEPT = 10_000  # small; forgotten ones are read again
_FOREVER = 1 << 62


class _Live(dict[str, Any]):
    """A run's state as of `upto`, in memory."""

    upto = 0


class Checkpoints:
    """One per process and store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lines: SaveChains[int] = SaveChains()
        self._unlooked: dict[str, list[int]] = {}  # run -> [entries, bytes] until somebody looks
        self._looking: set[str] = set()  # runs that somebody looks at now
        self._chains: dict[str, list[int]] = {}  # run -> [whole record, changes since (bytes), their number]
        self._background = Background("a checkpoint")

    # -- saving -----------------------------------------------------------------------------------------------------

    async def save(
        self,
        run: str,
        fields: Json | None,
        *,
        replace: bool = False,
        epoch: int | None,
        label: str | None,
        by: str,
        request: str,
        sent: str | None = None,
        locked: bool = False,
    ) -> Row:
        """A milestone: the live state with these fields set (`replace`: with nothing else).

        The state is made from memory, without a lock. If the log goes on meanwhile, it is made again from the store
        while the run is locked; `locked` does that at once, for a client whose own save lost that race. `sent`: the
        hash of fields that came in pieces.
        """
        if fields is not None and not isinstance(fields, dict):
            raise invalid("a state is an object of names and values", f"got {type(fields).__name__}")
        line = self._lines.line(run)
        async with line.lock:
            if not locked and sent is None:
                live = await self._current(run, line)
                if replace:
                    live.clear()
                    live.update(run_state.blank())
                live.update(run_state.owned(fields or {}))
                try:
                    saved = await self._write(run, line, live, "milestone", label, epoch, by, request)
                    assert saved is not None  # only a periodic one can be too late
                    return saved
                except Moved:
                    pass
            line.lost()
            wanted = _Wanted(run, fields or {}, replace, label, by, request, sent)
            saved = await self._store.write(lambda: _rebuilt(wanted, epoch))
            self._chained(saved)
            return saved

    async def put(self, new: New, epoch: int | None, sent: str | None = None) -> Row:
        """A change that a client made of a state it holds itself; `sent`: the hash of a record that came in pieces."""
        self._lines.forget(new.run)
        if sent is None:
            saved = await self._store.write(lambda: rows.save(new, epoch))
        else:
            saved = await self._store.write(lambda: rows.save_sent(new, sent, epoch))
        self._chained(saved)
        return saved

    def _chained(self, saved: Row) -> None:
        """Count a record that was not made by a line, and make the run's chain whole when that is due."""
        counts = self._chains.get(saved.run)
        if saved.base is None:
            counts = [saved.stored, 0, 0]
        elif counts is not None:
            counts = [counts[0], counts[1] + saved.stored, counts[2] + 1]
        if counts is None or encode.snapshot_due(*counts):
            self._background.add(self._compact_chain(saved.run, saved.seq))
        else:
            self._chains[saved.run] = counts

    async def save_from_log(self, run: str) -> Row | None:
        """A periodic one: what the log says, for an agent that never saves."""
        line = self._lines.line(run)
        async with line.lock:
            live = await self._current(run, line)
            return await self._write(run, line, live, "periodic", None, None, "holdfast", ids.new("req_"))

    async def _write(
        self,
        run: str,
        line: SaveChain[int],
        live: _Live,
        kind: str,
        label: str | None,
        epoch: int | None,
        by: str,
        request: str,
    ) -> Row | None:
        try:
            change = line.change(live)
            base = None if change.whole else line.at
            new = New(
                run, kind, label, by, request, live.upto, base, line.hash, change.hash, change.size, change.record
            )
            if kind == "periodic":
                saved = await self._store.write(lambda: rows.save_periodic(new))
            else:
                saved = await self._store.write(lambda: rows.save(new, epoch))
        except BaseException:
            line.lost()  # not stored, or not known to be: what is in memory is ahead of the disk
            raise
        if saved is None:
            line.lost()
            return None
        live.upto = saved.log_upto
        line.saved(saved.seq, change)
        if line.due:
            self._background.add(self._compact(run, saved.seq, change.hash, line.snapshot()))
        return saved

    async def _compact_chain(self, run: str, seq: int) -> None:
        """Look how long the chain behind a checkpoint is, and make it whole if that is due."""
        found, kept, sizes = await self._store.read(lambda: rows.stored(run, seq))
        if encode.snapshot_due(sizes[0], sum(sizes[1:]), len(sizes) - 1):
            await self._compact(run, seq, found.hash, kept)
            sizes = [sum(sizes)]
        if len(self._chains) > _CHAINS_KEPT:
            self._chains.clear()
        self._chains[run] = [sizes[0], sum(sizes[1:]), len(sizes) - 1]

    async def _compact(self, run: str, seq: int, hash: str, kept: dict[str, bytes]) -> None:
        record = await asyncio.to_thread(encode.whole, kept)  # compressing leaves the loop free
        await self._store.write(lambda: rows.compact(run, seq, hash, record))

    # -- the live state ----------------------------------------------------------------------------------------------

    async def _current(self, run: str, line: SaveChain[int]) -> _Live:
        """The live state up to the log's end, from memory and what the log added since; else from the store."""
        live: _Live | None = line.live
        if live is not None:
            after = live.upto
            added = await self._store.read(lambda: _entries(run, after, _FOREVER))
            # A milestone of somebody else is a state that is not in this memory.
            if not any(entry["kind"] == "checkpoint" for entry in added):
                run_state.folded(live, added)
                live.upto = added[-1]["seq"] if added else live.upto
                return live
        found, kept, sizes, entries = await self._store.read(lambda: _at(run, _FOREVER))
        if found is not None:
            line.begin(found.seq, found.hash, kept, sizes)
        else:
            line.lost()
        live = line.live = _Live(encode.values(kept) if found is not None else run_state.blank())
        run_state.folded(live, entries)
        live.upto = entries[-1]["seq"] if entries else found.log_upto if found is not None else 0
        return live

    async def live(self, run: str) -> tuple[Json, int]:
        """The state as this process holds it, and its position. Look, do not keep: it goes on with the run."""
        line = self._lines.line(run)
        async with line.lock:
            current = await self._current(run, line)
            return current, current.upto

    async def state_at(self, run: str, position: int | None = None) -> tuple[Json, int, str]:
        """The state at a position of the log, the position, and the state's hash. Runs nothing."""
        found, kept, _, entries = await self._store.read(lambda: _at(run, _FOREVER if position is None else position))
        state = run_state.folded(encode.values(kept) if found is not None else run_state.blank(), entries)
        at = entries[-1]["seq"] if entries else found.log_upto if found is not None else 0
        return state, at, encode.state_hash(state)

    # -- looking -----------------------------------------------------------------------------------------------------

    async def show(self, run: str, seq: int | None) -> tuple[Row, Json]:
        found, kept, _ = await self._store.read(lambda: rows.stored(run, seq))
        return found, encode.values(kept)

    async def diff(self, run: str, seq: int, other: int | None, other_run: str | None) -> Json:
        before, old = await self.show(run, seq)
        after, new = await self.show(other_run or run, other)
        return {
            "from": before.describe(),
            "to": after.describe(),
            "changes": run_state.differences(old, new),
        }

    async def restore(self, run: str, seq: int, *, epoch: int | None, by: str, request: str) -> tuple[Row, Json]:
        """Make the state of an earlier checkpoint the run's state again: as a new checkpoint, nothing is undone."""
        _, state = await self.show(run, seq)
        saved = await self.save(
            run, state, replace=True, epoch=epoch, label=f"restored from {seq}", by=by, request=request
        )
        return saved, state

    async def history(self, run: str, at: int | None, after: int, limit: int) -> Json:
        """What was thought, done and seen, in order; with `at` up to there, and the state then."""
        upto = _FOREVER if at is None else at
        entries = await self._store.read(lambda: log.entries(run, after, upto, limit))
        told: Json = {"run": run, "entries": [run_state.told(entry) for entry in entries]}
        if at is not None:
            state, position, digest = await self.state_at(run, at)
            if position < at:
                raise HoldfastError("not_found", f"the log of {run} ends at {position}", "choose an earlier position")
            told |= {"at": position, "state": state, "hash": digest}
        return told

    # -- by policy ---------------------------------------------------------------------------------------------------

    def noticed(self, run: str, size: int) -> None:
        """The log grew by an entry of about this size; look whether a periodic checkpoint is due. Costs nothing."""
        if self.counted(run, size):
            self.look(run)

    def counted(self, run: str, size: int) -> bool:
        """Whether it is time to `look`. From any thread: a count that two of them spoil is a look a little later."""
        left = self._unlooked.get(run)
        if left is None:
            if len(self._unlooked) > _CHAINS_KEPT:
                self._unlooked.clear()
            left = self._unlooked[run] = [_LOOK_EVERY, _LOOK_BYTES]
        left[0] -= 1
        left[1] -= size
        if left[0] > 0 and left[1] > 0:
            return False
        self._unlooked.pop(run, None)
        return True

    def look(self, run: str) -> None:
        """One look at a time: two of them would both find the same entries unsaved, and save twice."""
        if run not in self._looking:
            self._looking.add(run)
            self._background.add(self._save_while_due(run))

    def look_soon(self, run: str) -> None:
        """Its policy was changed: what was worked out from the old one does not hold."""
        self._unlooked.pop(run, None)

    async def _save_while_due(self, run: str) -> None:
        try:
            while (left := await self._left(run)) is None:
                try:
                    await self.save_from_log(run)
                except Moved:
                    pass  # a milestone was saved in this moment
            self._unlooked[run] = left
        finally:
            self._looking.discard(run)

    async def _left(self, run: str) -> list[int] | None:
        """How many entries and bytes until the next look; None: a checkpoint is due now."""
        set_ = await self._store.read(lambda: rows.policy(run))
        entries, size = set_ if set_ is not None else (CHECKPOINT_ENTRIES, CHECKPOINT_BYTES)
        _, unsaved, grown = await self._store.read(lambda: rows.unsaved(run))
        if due(entries, size, unsaved, grown):
            return None
        return [
            max(entries - unsaved, _LOOK_EVERY) if entries else _LOOK_AGAIN,
            max(size - grown, _LOOK_BYTES) if size else _LOOK_AGAIN * _LOOK_BYTES,
        ]

    async def drain(self) -> None:
        """Wait for what is under way in the background."""
        await self._background.drain()


_LOOK_EVERY = 20  # writes before a first look at whether a checkpoint is due, and at least: the policy's precision
_LOOK_BYTES = 64 << 10
_LOOK_AGAIN = 1000  # writes until the next look where the policy is off: another process may have changed it


def due(every_entries: int, every_bytes: int, entries: int, size: int) -> bool:
    """Whether the log has grown enough since the last checkpoint; 0 switches a measure off."""
    return bool(entries) and (0 < every_entries <= entries or 0 < every_bytes <= size)


class _Wanted(NamedTuple):
    """A milestone that is to be made while its run is locked."""

    run: str
    fields: Json
    replace: bool
    label: str | None
    by: str
    request: str
    sent: str | None


def _rebuilt(wanted: _Wanted, epoch: int | None) -> Transaction[Row]:
    """Save the live state with some fields set. The log cannot go on while the run is locked."""
    run = wanted.run
    yield from queries.held(run)
    known = yield from rows.made(run, wanted.request)
    if known is not None:
        return known
    fields = wanted.fields if wanted.sent is None else (yield from rows.sent_fields(wanted.sent))
    found, kept, _, entries = yield from _at(run, _FOREVER)
    state = encode.values(kept) if found is not None else run_state.blank()
    state = run_state.blank() if wanted.replace else run_state.folded(state, entries)
    change = encode.Encoder(kept if found is not None else None).change(state | fields)
    upto = entries[-1]["seq"] if entries else found.log_upto if found is not None else 0
    base, base_hash = (found.seq, found.hash) if found is not None else (None, "")
    new = New(
        run,
        "milestone",
        wanted.label,
        wanted.by,
        wanted.request,
        upto,
        base,
        base_hash,
        change.hash,
        change.size,
        change.record,
    )
    return (yield from rows.save(new, epoch))


def _entries(run: str, after: int, upto: int) -> Transaction[list[Json]]:
    """All of a stretch of the log, page by page."""
    found: list[Json] = []
    while True:
        page = yield from queries.log(run, after, upto, _PAGE)
        found += [log.describe(entry) for entry in page]
        if len(page) < _PAGE:
            return found
        after = page[-1].seq


def _at(run: str, position: int) -> Transaction[tuple[Row | None, dict[str, bytes], list[int], list[Json]]]:
    """What a state at a position is made of: the checkpoint before it, and the entries since."""
    yield from queries.run(run)
    found = yield from rows.at_position(run, position)
    kept: dict[str, bytes] = {}
    sizes: list[int] = []
    if found is not None:
        found, kept, sizes = yield from rows.stored(run, found.seq)
    entries = yield from _entries(run, found.log_upto if found is not None else 0, position)
    return found, kept, sizes, entries
