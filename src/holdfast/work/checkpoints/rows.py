"""The transactions behind checkpoints of runs: a position in the log, and the change of the state since another one."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from ...delta import encode
from ...model import ids
from ...model.errors import HoldfastError, invalid, not_found
from ...model.limits import PIECE_BYTES, STATE_BYTES_MAX
from ...model.times import rfc3339
from ...store import queries
from ...store.base import Query, Transaction
from ...wire import json_values
from ..artifacts import rows as artifacts
from ..runs import lease

Json = dict[str, Any]
_ROW = "run, seq, log_upto, at, by_whom, epoch, kind, label, base, hash, size, length(record)"


class Row(NamedTuple):
    """A checkpoint without its record."""

    run: str
    seq: int
    log_upto: int
    at: int
    by: str | None
    epoch: int
    kind: str
    label: str | None
    base: int | None
    hash: str
    size: int
    stored: int

    def describe(self) -> Json:
        return {**self._asdict(), "at": rfc3339(self.at / 1e6)}


class New(NamedTuple):
    """A save, checked and encoded."""

    run: str
    kind: str
    label: str | None
    by: str
    request: str
    log_upto: int  # of the entries folded into the state: the log must not have gone on
    base: int | None
    base_hash: str
    hash: str
    size: int
    record: bytes


class Moved(HoldfastError):
    """The log has entries that the state does not know, or the base is not what it was: look again, then save."""

    def __init__(self) -> None:
        super().__init__("conflict", "the run's log went on meanwhile", "look at it, and save again")


def row(run: str, seq: int | None) -> Transaction[Row | None]:
    """One by its number, or the latest."""
    rows = yield Query(
        f"SELECT {_ROW} FROM checkpoint WHERE run = ?"
        + (" AND seq = ?" if seq is not None else "")
        + " ORDER BY seq DESC LIMIT 1",
        (run, seq) if seq is not None else (run,),
    )
    return Row(*rows[0]) if rows else None


def made(run: str, request: str) -> Transaction[Row | None]:
    """The one that a request saved."""
    known = yield Query("SELECT seq FROM checkpoint WHERE run = ? AND request = ?", (run, request))
    return (yield from row(run, int(known[0][0]))) if known else None


def wanted(run: str, seq: int | None) -> Transaction[Row]:
    found = yield from row(run, seq)
    if found is None:
        yield from queries.run(run)  # no such run is another answer
        what = f"run {run} has no checkpoint yet" if seq is None else f"run {run} has no checkpoint {seq}"
        raise not_found(what, f"hold checkpoint ls {run}")
    return found


def listing(run: str, limit: int) -> Transaction[list[Json]]:
    yield from queries.run(run)
    rows = yield Query(f"SELECT {_ROW} FROM checkpoint WHERE run = ? ORDER BY seq DESC LIMIT ?", (run, limit))
    return [Row(*r).describe() for r in reversed(rows)]


def chain(run: str, seq: int) -> Transaction[list[bytes]]:
    """The records that give a checkpoint's state, oldest first."""
    rows = yield Query(
        "WITH RECURSIVE chain (seq, base, n) AS ("
        " SELECT seq, base, 0 FROM checkpoint WHERE run = ? AND seq = ?"
        " UNION ALL SELECT c.seq, c.base, chain.n + 1 FROM chain JOIN checkpoint c ON c.run = ? AND c.seq = chain.base)"
        " SELECT c.record FROM chain JOIN checkpoint c ON c.run = ? AND c.seq = chain.seq ORDER BY chain.n DESC",
        (run, seq, run, run),
    )
    return [bytes(r[0]) for r in rows]


def stored(run: str, seq: int | None) -> Transaction[tuple[Row, dict[str, bytes], list[int]]]:
    """A checkpoint, its kept bytes, and the sizes of the records they came from."""
    found = yield from wanted(run, seq)
    records = yield from chain(run, found.seq)
    return found, encode.restore(records, found.hash), [len(r) for r in records]


def save_sent(new: New, sha256: str, epoch: int | None) -> Transaction[Row]:
    """A save whose record came in pieces before it."""
    yield from queries.held(new.run)  # the run before the pieces, as everywhere
    before = yield from made(new.run, new.request)
    record = b"" if before else (yield from artifacts.taken(sha256))
    return (yield from save(new._replace(record=record), epoch))


def sent_fields(sha256: str) -> Transaction[Json]:
    """Fields of a state, as JSON that came in pieces."""
    raw = yield from artifacts.taken(sha256)
    if len(raw) > STATE_BYTES_MAX:
        raise invalid(f"a state has at most {STATE_BYTES_MAX >> 20} MB", "keep large values as artifacts")
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        raise invalid("the fields of a state come as a JSON object", "upgrade the client") from None


def lengths(run: str, seq: int | None) -> Transaction[tuple[Row, list[tuple[int, int]]]]:
    """A checkpoint, and the records that give its state, oldest first: their numbers and lengths."""
    found = yield from wanted(run, seq)
    records: list[tuple[int, int]] = []
    at: int | None = found.seq
    while at is not None:
        rows = yield Query("SELECT seq, length(record), base FROM checkpoint WHERE run = ? AND seq = ?", (run, at))
        records.append((int(rows[0][0]), int(rows[0][1])))
        at = rows[0][2]
    return found, records[::-1]


def part(run: str, seq: int, piece: int) -> Transaction[bytes]:
    """A piece of one record."""
    rows = yield Query(
        "SELECT substr(record, ?, ?) FROM checkpoint WHERE run = ? AND seq = ?",
        (piece * PIECE_BYTES + 1, PIECE_BYTES, run, seq),
    )
    if not rows:
        raise not_found(f"run {run} has no checkpoint {seq}", f"hold checkpoint ls {run}")
    return bytes(rows[0][0])


def at_position(run: str, position: int) -> Transaction[Row | None]:
    """The last checkpoint that is true at a position of the log."""
    rows = yield Query(
        f"SELECT {_ROW} FROM checkpoint WHERE run = ? AND log_upto <= ? ORDER BY log_upto DESC, seq DESC LIMIT 1",
        (run, position),
    )
    return Row(*rows[0]) if rows else None


def log_end(run: str) -> Transaction[int]:
    rows = yield Query("SELECT COALESCE(MAX(seq), 0) FROM log WHERE run = ?", (run,))
    return int(rows[0][0])


def save(new: New, epoch: int | None) -> Transaction[Row]:
    """A milestone: an entry of the log, and the state as of it. By a worker under its epoch, or by hand."""
    held = yield from queries.held(new.run)
    known = yield from made(new.run, new.request)
    if known is not None:
        return known
    if (yield from log_end(new.run)) != new.log_upto:
        raise Moved
    hand = epoch is None
    epoch = yield from lease.writer(new.run, held, epoch, new.by, new.request)
    if hand:
        yield from lease.let_go(held)
    seq = yield from _next(new)
    body = json_values.encode({"checkpoint": seq, "label": new.label, "hash": new.hash}, "checkpoint")
    upto = yield from queries.append(new.run, "checkpoint", body, at=held.now, epoch=epoch, by=new.by)
    yield from _insert(new, seq, upto, held.now, epoch)
    return (yield from wanted(new.run, seq))


def save_periodic(new: New) -> Transaction[Row | None]:
    """Made from the log alone, so it needs no lease: whoever makes it, it says the same. None: not needed any more."""
    held = yield from queries.held(new.run)
    last = yield from row(new.run, None)
    if last is not None and last.log_upto >= new.log_upto:
        return None
    seq = yield from _next(new)
    yield from _insert(new, seq, new.log_upto, held.now, held.epoch)
    return (yield from wanted(new.run, seq))


def _next(new: New) -> Transaction[int]:
    last = yield from row(new.run, None)
    if new.base is not None:
        base = yield from row(new.run, new.base)
        if base is None or base.hash != new.base_hash:
            raise Moved
    return last.seq + 1 if last is not None else 1


def _insert(new: New, seq: int, upto: int, now: int, epoch: int) -> Transaction[None]:
    yield Query(
        "INSERT INTO checkpoint"
        " (run, seq, log_upto, at, by_whom, epoch, kind, label, request, base, hash, size, record)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            new.run,
            seq,
            upto,
            now,
            new.by,
            epoch,
            new.kind,
            new.label,
            new.request,
            new.base,
            new.hash,
            new.size,
            new.record,
        ),
    )


def compact(run: str, seq: int, hash: str, record: bytes) -> Transaction[None]:
    """Keep a checkpoint whole from now on: the same state in other bytes."""
    yield Query(
        "UPDATE checkpoint SET base = NULL, record = ? WHERE run = ? AND seq = ? AND hash = ?", (record, run, seq, hash)
    )


def fork(run: str, seq: int | None, *, label: str | None, by: str, request: str) -> Transaction[Json]:
    """A new run, with an attempt of its own, that begins where a checkpoint of another one stands."""
    done = yield Query("SELECT id, forked_from FROM run WHERE request = ?", (request,))
    if done:
        return {"run": done[0][0], "forked_from": done[0][1], "checkpoint": 1}
    source = yield from queries.run(run)
    found, kept, _ = yield from stored(run, seq)
    now = yield from queries.now()
    attempt, made, origin = ids.new("att_"), ids.new("run_"), f"{run}#{found.seq}"
    yield Query(
        "INSERT INTO attempt (id, task, n, worker, epoch, lease_until, request, created_at)"
        " VALUES (?, NULL, 1, NULL, 0, 0, ?, ?)",
        (attempt, request, now),
    )
    yield Query(
        "INSERT INTO run (id, attempt, state, params, items, parent, forked_from, request, created_at)"
        " VALUES (?, ?, 'active', ?, ?, ?, ?, ?, ?)",
        (made, attempt, source.params, source.items, source.parent, origin, request, now),
    )
    event = json_values.encode({"event": "fork", "from": run, "checkpoint": found.seq}, "event")
    upto = yield from queries.append(made, "run", event, at=now, epoch=0, by=by)
    record = encode.whole(kept)
    new = New(made, "fork", label, by, request, upto, None, "", found.hash, found.size, record)
    yield from _insert(new, 1, upto, now, 0)
    return {"run": made, "forked_from": origin, "checkpoint": 1}


def policy(run: str) -> Transaction[tuple[int, int] | None]:
    rows = yield Query("SELECT every_entries, every_bytes FROM checkpoint_policy WHERE run = ?", (run,))
    return (int(rows[0][0]), int(rows[0][1])) if rows else None


def set_policy(run: str, entries: int, size: int) -> Transaction[None]:
    yield from queries.held(run)
    yield Query(
        "INSERT INTO checkpoint_policy (run, every_entries, every_bytes) VALUES (?, ?, ?)"
        " ON CONFLICT (run) DO UPDATE SET every_entries = excluded.every_entries, every_bytes = excluded.every_bytes",
        (run, entries, size),
    )


def unsaved(run: str) -> Transaction[tuple[int, int, int]]:
    """(log end, entries, bytes) since the last checkpoint."""
    last = yield from row(run, None)
    after = last.log_upto if last is not None else 0
    rows = yield Query(
        "SELECT COALESCE(MAX(seq), 0), COUNT(*), COALESCE(SUM(length(body)), 0) FROM log WHERE run = ? AND seq > ?",
        (run, after),
    )
    return int(rows[0][0]) or after, int(rows[0][1]), int(rows[0][2])
