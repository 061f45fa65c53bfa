"""Artifacts: content by its hash, named by a run. A name always has its content; content without one is collected."""

from __future__ import annotations

import hashlib
from typing import Any

from ...model.errors import HoldfastError, invalid, not_found
from ...model.limits import PIECE_BYTES
from ...model.times import rfc3339
from ...store import queries
from ...store.base import Query, Ref, Transaction
from ...wire import json_values
from ..runs import lease

Json = dict[str, Any]
_HEX = frozenset("0123456789abcdef")


def check_hash(sha256: object) -> str:
    if not isinstance(sha256, str) or len(sha256) != 64 or not _HEX.issuperset(sha256):
        raise invalid("a content's hash is 64 hexadecimal digits (SHA-256)", "sha256sum FILE prints it")
    return sha256


def _guard(mode: str) -> Transaction[int]:
    """Senders of pieces share it. Whoever names or collects has it alone: no name is given to what is just being
    collected, and what was verified is what gets the name."""
    rows = yield Query(
        "WITH held AS MATERIALIZED (SELECT name FROM guard WHERE name = 'blobs' {" + mode + "}) SELECT {now} FROM held"
    )
    return int(rows[0][0])


def piece(sha256: str, n: int, data: bytes) -> Transaction[Json]:
    """One part of a content that is on its way. Kept by nothing but its age until the whole is put."""
    now = yield from _guard("for_share")
    yield from _keep_piece(sha256, n, data, now)
    return {"sha256": sha256, "piece": n}


def _keep_piece(sha256: str, n: int, data: bytes, now: int) -> Transaction[None]:
    whole = yield Query("SELECT 1 FROM blob WHERE sha256 = ?", (sha256,))
    if not whole:
        yield Query(
            "INSERT INTO piece (sha256, n, at, data) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (sha256, n) DO UPDATE SET data = excluded.data, at = excluded.at",
            (sha256, n, now, data),
        )


def put(
    run: str,
    name: str,
    sha256: str,
    data: bytes | None,
    *,
    media: str | None,
    made_by: str,
    sources: str,
    epoch: int | None,
) -> Transaction[Json]:
    """Name a content: `data` itself, or the pieces that came before. Content and name are one commit."""
    held = yield from queries.held(run)
    if epoch is not None:
        lease.check(held, epoch)
    before = yield Query("SELECT sha256 FROM ref WHERE owner = ? AND name = ?", (run, name))
    replaced = before[0][0] if before and before[0][0] != sha256 else None
    now = yield from _guard("for_update")
    known = yield Query("SELECT size FROM blob WHERE sha256 = ?", (sha256,))
    if known:
        size = int(known[0][0])
    else:
        if data is not None:
            yield Query("DELETE FROM piece WHERE sha256 = ?", (sha256,))
            for n in range(max(1, -(-len(data) // PIECE_BYTES))):
                yield from _keep_piece(sha256, n, data[n * PIECE_BYTES : (n + 1) * PIECE_BYTES], now)
        size = yield from _verified(sha256)
        yield Query(
            "INSERT INTO blob (sha256, size, at) VALUES (?, ?, ?) ON CONFLICT (sha256) DO NOTHING", (sha256, size, now)
        )
    yield Query(
        "INSERT INTO ref (owner, name, sha256, media, made_by, sources, at) VALUES (?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (owner, name) DO UPDATE SET sha256 = excluded.sha256, media = excluded.media,"
        " made_by = excluded.made_by, sources = excluded.sources, at = excluded.at",
        (run, name, sha256, media, made_by, sources, now),
    )
    if replaced:
        yield from _drop_unnamed(replaced)
    return describe(Ref(run, name, sha256, size, media, made_by, sources, now))


def _verified(sha256: str) -> Transaction[int]:
    """The size of a content whose pieces are all there and are what the hash says; one piece in memory at a time."""
    hashed, size, n = hashlib.sha256(), 0, 0
    while rows := (yield Query("SELECT data FROM piece WHERE sha256 = ? AND n = ?", (sha256, n))):
        hashed.update(rows[0][0])
        size, n = size + len(rows[0][0]), n + 1
    if n == 0:
        raise not_found(f"no content {sha256[:12]}… has come", "send its pieces first")
    if hashed.hexdigest() != sha256:
        raise HoldfastError(
            "conflict", f"what came is not the content {sha256[:12]}…", "a piece is missing or changed: send it again"
        )
    return size


def taken(sha256: str) -> Transaction[bytes]:
    """A content that came in pieces, for somebody who keeps it elsewhere: its pieces go, unless it also has a name."""
    yield from _guard("for_update")
    yield from _verified(sha256)
    rows = yield Query("SELECT data FROM piece WHERE sha256 = ? ORDER BY n", (sha256,))
    yield Query(
        "DELETE FROM piece WHERE sha256 = ? AND NOT EXISTS (SELECT 1 FROM blob WHERE blob.sha256 = piece.sha256)",
        (sha256,),
    )
    return b"".join(bytes(data) for (data,) in rows)


def _drop_unnamed(sha256: str) -> Transaction[None]:
    """Under the guard alone."""
    dropped = yield Query(
        "DELETE FROM blob WHERE sha256 = ? AND NOT EXISTS (SELECT 1 FROM ref WHERE ref.sha256 = blob.sha256)"
        " RETURNING sha256",
        (sha256,),
    )
    if dropped:
        yield Query("DELETE FROM piece WHERE sha256 = ?", (sha256,))


def remove(run: str, name: str, epoch: int | None) -> Transaction[Json]:
    """Take a name away, and the content with its last one."""
    held = yield from queries.held(run)
    if epoch is not None:
        lease.check(held, epoch)
    yield from _guard("for_update")
    gone = yield Query("DELETE FROM ref WHERE owner = ? AND name = ? RETURNING sha256", (run, name))
    if gone:
        yield from _drop_unnamed(gone[0][0])
    return {"removed": bool(gone)}


def forget(run: str, name: str) -> Transaction[int]:
    """The same for a run that is being forgotten; the bytes that are free now."""
    yield from _guard("for_update")
    gone = yield Query("DELETE FROM ref WHERE owner = ? AND name = ? RETURNING sha256", (run, name))
    if not gone:
        return 0
    size = yield Query("SELECT size FROM blob WHERE sha256 = ?", (gone[0][0],))
    yield from _drop_unnamed(gone[0][0])
    left = yield Query("SELECT 1 FROM blob WHERE sha256 = ?", (gone[0][0],))
    return 0 if left else int(size[0][0])


def find(run: str, name: str) -> Transaction[Json]:
    yield from queries.seen(run)
    rows = yield from _refs("r.owner = ? AND r.name = ?", (run, name))
    if not rows:
        raise not_found(f"{run} has no artifact {name[:80]!r}", f"hold artifact ls {run}")
    return describe(rows[0])


def listing(run: str | None) -> Transaction[list[Json]]:
    if run is not None:
        yield from queries.seen(run)
    rows = yield from (_refs("r.owner = ?", (run,)) if run is not None else _refs("r.owner <> ?", ("",)))
    return [describe(row) for row in rows]


def _refs(where: str, args: tuple[Any, ...]) -> Transaction[list[Ref]]:
    rows = yield Query(
        "SELECT r.owner, r.name, r.sha256, b.size, r.media, r.made_by, r.sources, r.at"
        f" FROM ref r JOIN blob b ON b.sha256 = r.sha256 WHERE {where} ORDER BY r.at, r.name",
        args,
    )
    return [Ref(*row) for row in rows]


def read(sha256: str, n: int) -> Transaction[bytes | None]:
    """A piece of a whole content; None past its end."""
    known = yield Query("SELECT 1 FROM blob WHERE sha256 = ?", (sha256,))
    if not known:
        raise not_found(f"no content {sha256[:12]}… is kept", "hold artifact ls RUN")
    rows = yield Query("SELECT data FROM piece WHERE sha256 = ? AND n = ?", (sha256, n))
    return bytes(rows[0][0]) if rows else None


def orphans() -> Transaction[list[Json]]:
    """Content without a name, and uploads that were not finished."""
    unnamed = yield Query(
        "SELECT sha256, size, at FROM blob WHERE NOT EXISTS (SELECT 1 FROM ref WHERE ref.sha256 = blob.sha256)"
    )
    loose = yield Query(
        "SELECT sha256, SUM(LENGTH(data)), MAX(at) FROM piece"
        " WHERE NOT EXISTS (SELECT 1 FROM blob WHERE blob.sha256 = piece.sha256) GROUP BY sha256"
    )
    return [
        {"sha256": sha256, "size": int(size), "kind": kind, "at": rfc3339(at / 1e6)}
        for kind, rows in (("content", unnamed), ("upload", loose))
        for sha256, size, at in rows
    ]


def collect(older: int) -> Transaction[Json]:
    """Remove content that no name refers to, and uploads that have rested for `older` microseconds."""
    now = yield from _guard("for_update")
    dropped = yield Query(
        "DELETE FROM blob WHERE NOT EXISTS (SELECT 1 FROM ref WHERE ref.sha256 = blob.sha256) RETURNING sha256, size"
    )
    for sha256, _ in dropped:
        yield Query("DELETE FROM piece WHERE sha256 = ?", (sha256,))
    loose = yield Query(
        "DELETE FROM piece WHERE NOT EXISTS (SELECT 1 FROM blob WHERE blob.sha256 = piece.sha256)"
        " AND sha256 NOT IN (SELECT sha256 FROM piece WHERE at > ?) RETURNING sha256, LENGTH(data)",
        (now - older,),
    )
    return {
        "contents": len(dropped) + len({sha256 for sha256, _ in loose}),
        "bytes": sum(int(size) for _, size in dropped) + sum(int(size) for _, size in loose),
    }


def describe(ref: Ref) -> Json:
    return {
        "run": ref.owner,
        "name": ref.name,
        "sha256": ref.sha256,
        "size": ref.size,
        "media": ref.media,
        "made_by": ref.made_by,
        "sources": json_values.decode(ref.sources),
        "at": rfc3339(ref.at / 1e6),
    }
