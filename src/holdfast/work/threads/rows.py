"""The transactions behind threads: an agent framework's checkpoints in chains of changes, and writes beside them."""

from __future__ import annotations

from typing import NamedTuple

from ...delta import encode
from ...model.errors import HoldfastError
from ...store.base import Query, Transaction

PAGE = 100  # checkpoints looked at per query when listing
_HEAD = "thread, ns, id, parent, meta, hash"


class Head(NamedTuple):
    """A checkpoint without its state."""

    thread: str
    ns: str
    id: str
    parent: str | None
    meta: bytes
    hash: str


class Write(NamedTuple):
    task: str
    n: int
    path: str
    channel: str
    kind: str
    data: bytes


class Stored(NamedTuple):
    """A checkpoint's kept bytes, the sizes of the records they came from, and the writes beside it."""

    head: Head
    kept: dict[str, bytes]
    sizes: list[int]
    writes: list[Write]


class BaseGone(HoldfastError):
    """What a change is against is not there any more: save the whole."""

    def __init__(self) -> None:
        super().__init__("conflict", "the checkpoint before this one was removed meanwhile", "save it again")


def chain(thread: str, ns: str, id: str) -> Transaction[list[bytes]]:
    """The records that give a checkpoint's state, oldest first."""
    rows = yield Query(
        "WITH RECURSIVE chain (id, base, n) AS ("
        " SELECT id, base, 0 FROM thread_checkpoint WHERE thread = ? AND ns = ? AND id = ?"
        " UNION ALL SELECT c.id, c.base, chain.n + 1 FROM chain"
        " JOIN thread_checkpoint c ON c.thread = ? AND c.ns = ? AND c.id = chain.base)"
        " SELECT c.record FROM chain JOIN thread_checkpoint c ON c.thread = ? AND c.ns = ? AND c.id = chain.id"
        " ORDER BY chain.n DESC",
        (thread, ns, id, thread, ns, thread, ns),
    )
    return [bytes(row[0]) for row in rows]


def head(thread: str, ns: str, id: str | None) -> Transaction[Head | None]:
    """One by its id, or the latest: ids grow with time."""
    if id:
        rows = yield Query(
            f"SELECT {_HEAD} FROM thread_checkpoint WHERE thread = ? AND ns = ? AND id = ?", (thread, ns, id)
        )
    else:
        rows = yield Query(
            f"SELECT {_HEAD} FROM thread_checkpoint WHERE thread = ? AND ns = ? ORDER BY id DESC LIMIT 1", (thread, ns)
        )
    return Head(*rows[0]) if rows else None


def stored(thread: str, ns: str, id: str | None, *, writes: bool = True) -> Transaction[Stored | None]:
    found = yield from head(thread, ns, id)
    if found is None:
        return None
    records = yield from chain(thread, ns, found.id)
    beside = []
    if writes:
        rows = yield Query(
            "SELECT task, n, path, channel, kind, data FROM thread_write WHERE thread = ? AND ns = ? AND id = ?",
            (thread, ns, found.id),
        )
        # Sorted here: databases differ in how they order text.
        beside = sorted((Write(*row) for row in rows), key=lambda w: (w.path, w.task, w.n))
    kept = encode.restore(records, found.hash)
    return Stored(found, kept, [len(r) for r in records], beside)


def page(
    thread: str | None, ns: str | None, id: str | None, before: str | None, after: tuple[str, str, str] | None
) -> Transaction[list[Head]]:
    """A page of checkpoints, newest first; `after` is where the last page ended."""
    where, args = ["1 = 1"], []  # type: tuple[list[str], list[str]]
    for condition, value in (("thread = ?", thread), ("ns = ?", ns), ("id = ?", id), ("id < ?", before)):
        if value is not None:
            where.append(condition)
            args.append(value)
    if after is not None:
        where.append("(id < ? OR (id = ? AND (thread > ? OR (thread = ? AND ns > ?))))")
        args += [after[2], after[2], after[0], after[0], after[1]]
    rows = yield Query(
        f"SELECT {_HEAD} FROM thread_checkpoint WHERE {' AND '.join(where)} ORDER BY id DESC, thread, ns LIMIT {PAGE}",
        tuple(args),
    )
    return [Head(*row) for row in rows]


def put(new: Head, graph_run: str | None, record: bytes, base: str | None, base_hash: str) -> Transaction[None]:
    """Store a checkpoint. Stored before with the same state (a repeated request), it stays as it is."""
    before = yield from head(new.thread, new.ns, new.id)
    if before is not None:
        if before.hash == new.hash:
            yield Query(
                "UPDATE thread_checkpoint SET parent = ?, graph_run = ?, meta = ?"
                " WHERE thread = ? AND ns = ? AND id = ?",
                (new.parent, graph_run, new.meta, new.thread, new.ns, new.id),
            )
            return
        yield from detach(new.thread, new.ns, {new.id})
        yield Query(
            "DELETE FROM thread_checkpoint WHERE thread = ? AND ns = ? AND id = ?", (new.thread, new.ns, new.id)
        )
    if base is not None:
        rows = yield Query(
            "SELECT hash FROM thread_checkpoint WHERE thread = ? AND ns = ? AND id = ? {for_share}",
            (new.thread, new.ns, base),
        )
        if not rows or rows[0][0] != base_hash:
            raise BaseGone
    yield Query(
        "INSERT INTO thread_checkpoint (thread, ns, id, parent, graph_run, meta, base, hash, record)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (new.thread, new.ns, new.id, new.parent, graph_run, new.meta, base, new.hash, record),
    )


def compact(thread: str, ns: str, id: str, hash: str, record: bytes) -> Transaction[None]:
    """Keep a checkpoint whole from now on. The same state in other bytes: whoever is based on it does not notice."""
    yield Query(
        "UPDATE thread_checkpoint SET base = NULL, record = ? WHERE thread = ? AND ns = ? AND id = ? AND hash = ?",
        (record, thread, ns, id, hash),
    )


def put_writes(thread: str, ns: str, id: str, writes: list[Write]) -> Transaction[None]:
    columns = ("path", "channel", "kind", "data")
    replaced = "UPDATE SET " + ", ".join(f"{name} = excluded.{name}" for name in columns)
    for w in writes:
        # A task's ordinary writes are kept as they came first; a special one (n < 0) is replaced by a later one.
        again = replaced if w.n < 0 else "NOTHING"
        yield Query(
            "INSERT INTO thread_write (thread, ns, id, task, n, path, channel, kind, data)"
            f" VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (thread, ns, id, task, n) DO {again}",
            (thread, ns, id, w.task, w.n, w.path, w.channel, w.kind, w.data),
        )


def detach(thread: str, ns: str, going: set[str]) -> Transaction[None]:
    """Make whole what is based on checkpoints that go and stays itself."""
    rows = yield Query(
        "SELECT id, hash, base FROM thread_checkpoint WHERE thread = ? AND ns = ? AND base IS NOT NULL {for_update}",
        (thread, ns),
    )
    for id, hash, base in rows:
        if base in going and id not in going:
            records = yield from chain(thread, ns, id)
            kept = encode.restore(records, hash)
            yield from compact(thread, ns, id, hash, encode.whole(kept))


def remove(thread: str, going: dict[str, set[str]]) -> Transaction[None]:
    """Remove checkpoints (namespace -> ids) with their writes; the others keep their state."""
    for ns, ids in going.items():
        yield from detach(thread, ns, ids)
        for id in ids:
            yield Query("DELETE FROM thread_write WHERE thread = ? AND ns = ? AND id = ?", (thread, ns, id))
            yield Query("DELETE FROM thread_checkpoint WHERE thread = ? AND ns = ? AND id = ?", (thread, ns, id))


def remove_thread(thread: str) -> Transaction[None]:
    yield Query("DELETE FROM thread_write WHERE thread = ?", (thread,))
    yield Query("DELETE FROM thread_checkpoint WHERE thread = ?", (thread,))


def remove_runs(graph_runs: list[str]) -> Transaction[list[str]]:
    """Remove what these runs of the framework saved; the threads that changed."""
    going: dict[str, dict[str, set[str]]] = {}
    for graph_run in graph_runs:
        rows = yield Query("SELECT thread, ns, id FROM thread_checkpoint WHERE graph_run = ?", (graph_run,))
        for thread, ns, id in rows:
            going.setdefault(thread, {}).setdefault(ns, set()).add(id)
    for thread, spaces in going.items():
        yield from remove(thread, spaces)
    return list(going)


def copy_thread(source: str, target: str) -> Transaction[None]:
    """Every checkpoint and write, chains included: a base is named by its id, which is the same in the copy."""
    yield Query(
        "INSERT INTO thread_checkpoint (thread, ns, id, parent, graph_run, meta, base, hash, record)"
        " SELECT ?, ns, id, parent, graph_run, meta, base, hash, record FROM thread_checkpoint WHERE thread = ?"
        " ON CONFLICT (thread, ns, id) DO NOTHING",
        (target, source),
    )
    yield Query(
        "INSERT INTO thread_write (thread, ns, id, task, n, path, channel, kind, data)"
        " SELECT ?, ns, id, task, n, path, channel, kind, data FROM thread_write WHERE thread = ?"
        " ON CONFLICT (thread, ns, id, task, n) DO NOTHING",
        (target, source),
    )


def heads(thread: str) -> Transaction[list[Head]]:
    rows = yield Query(f"SELECT {_HEAD} FROM thread_checkpoint WHERE thread = ? ORDER BY id DESC", (thread,))
    return [Head(*row) for row in rows]
