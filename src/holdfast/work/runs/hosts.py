"""Hosts that share a store: each is known there, and says that it is there while it holds leases.

The fence is the attempt's epoch, under its row lock; a host's row only shortens the wait. A lease of a host that is
late counts as run out: an hour's lease on a machine that burnt is free after half a minute. All times are the
database's.
"""

from __future__ import annotations

from typing import NamedTuple

from ...model.limits import HOST_BEAT_UNTIL_S
from ...store.base import Query, Transaction

_UNTIL = int(HOST_BEAT_UNTIL_S * 1e6)


def register(name: str, version: str) -> Transaction[int]:
    """This host has opened the store: its generation. An older daemon of the same home finds itself replaced."""
    rows = yield Query(
        "INSERT INTO host (id, generation, name, version) VALUES ({host}, 1, ?, ?) ON CONFLICT (id) DO UPDATE"
        " SET generation = host.generation + 1, name = excluded.name, version = excluded.version RETURNING generation",
        (name, version),
    )
    return int(rows[0][0])


def held() -> Transaction[None]:
    """This host gives a lease, and is there."""
    yield Query("UPDATE host SET beat_until = {now} + ? WHERE id = {host}", (_UNTIL,))


class Beat(NamedTuple):
    replaced: bool  # by another daemon of this home
    late: bool  # others may have taken over what this host held
    holds: bool  # it holds leases, and has to go on


def beat(generation: int) -> Transaction[Beat]:
    """Still there. A host without leases is not waited for, and not late."""
    found = yield Query("SELECT generation, beat_until, {now} FROM host WHERE id = {host} {for_update}")
    if not found or found[0][0] != generation:
        return Beat(replaced=True, late=False, holds=False)
    _, until, now = found[0]
    leases = yield Query(
        "SELECT 1 FROM attempt WHERE host = {host} AND lease_until > {now} AND ended_at IS NULL LIMIT 1"
    )
    yield Query("UPDATE host SET beat_until = ? WHERE id = {host}", (now + _UNTIL if leases else None,))
    return Beat(replaced=False, late=until is not None and until < now, holds=bool(leases))


def known() -> Transaction[str | None]:
    """The machine of a host that uses this store; None: it is no home's."""
    rows = yield Query("SELECT name FROM host ORDER BY id LIMIT 1")
    return str(rows[0][0]) if rows else None


def leases(give_back: bool) -> Transaction[list[str]]:
    """The workers that hold a lease of this host now; given back, each finds itself fenced."""
    rows = yield Query(
        "SELECT a.id, a.worker FROM attempt a WHERE a.host = {host} AND a.lease_until > {now} AND a.ended_at IS NULL"
        " AND a.worker NOT LIKE 'hand:%' ORDER BY a.id {for_update}"
    )
    for attempt, _ in rows if give_back else []:
        yield Query("UPDATE attempt SET lease_until = 0 WHERE id = ?", (attempt,))
        # It did not crash: it was told to leave.
        yield Query("DELETE FROM holding WHERE run IN (SELECT id FROM run WHERE attempt = ?)", (attempt,))
    return sorted({str(worker) for _, worker in rows})
