"""Foreseen writes in quick succession: done in a transaction that stays open, flushed as records ahead of its commit.

For whoever reads through the store nothing is different. Others who look into the file see what is committed: that
comes after so many writes, before anybody else writes or reads, and once nothing came for a moment. SQLite need not
flush that commit: until one of its flushes has covered it, the records are kept.
"""

from __future__ import annotations

import logging
import os
import random
import sqlite3
from collections.abc import Callable, Sequence

from ..model.errors import HoldfastError
from . import sqlite_quick
from .ahead import CHAPTERS, FILE_BYTES, AheadFile, outstanding, packed, padded
from .base import Quick

log = logging.getLogger("holdfast.store")
_TOGETHER = 64  # writes in one commit: its pages are then a twentieth of what they were, and doing them again is quick
_WAIT_S = 10.0  # for another store to commit, as long as for its lock


class Ahead:
    """Of one store, under its turn. `kept` is what was acknowledged and is not committed."""

    def __init__(self, path: str) -> None:
        self._wal = path + "-wal"
        self._file = AheadFile(path + "-ahead", _WAIT_S)
        self.kept: list[tuple[Quick, int]] = []
        self.open = False  # a transaction is, and what is kept is done in it
        self._seen: dict[str, sqlite_quick.Seen] = {}  # by this transaction
        self._chapter = 0
        self._at = -1  # where the next record goes; -1: what SQLite has of the earlier ones may not be flushed
        self._off = False  # it failed once: the disk is not to be trusted with it

    def recover(self, database: sqlite3.Connection) -> None:
        """Do what a store before us acknowledged and did not commit."""
        join(database, self._file.content(), self._file.path)

    def do(self, database: sqlite3.Connection, quicks: Sequence[Quick], clock: Callable[[], int]) -> int:
        """Do them in order as far as things are as foreseen, and flush them; how many. On an error none is done."""
        self._look_whether_open(database)
        owed = bool(self.kept) and not self.open  # comes first, and the usual way sees to that
        if self._off or owed or len(self.kept) + len(quicks) > _TOGETHER:
            return 0
        written = 0
        try:
            if not self.open and not self._begin(database):
                return 0
            now, place = clock(), len(self.kept)
            records = [packed(self._chapter, place + n, quick, now) for n, quick in enumerate(quicks)]
            data, count, alone = padded(records), 0, len(quicks) == 1
            if self._at + len(data) > FILE_BYTES:
                return 0
            if alone:  # as nearly always: the disk gets it while SQLite is at it, once it is sure that it can be done
                if not sqlite_quick.sure(database, quicks[0], now, self._seen):
                    return 0
                written = self._put(data)
            while count < len(quicks) and sqlite_quick.done(database, quicks[count], now, self._seen):
                count += 1
            if alone and not count:
                raise RuntimeError("it is not as it was a moment ago")
            if count:
                written = written or self._put(padded(records[:count]))
                self._file.flush()
                self._at += written
                self.kept += [(quick, now) for quick in quicks[:count]]
            return count
        except Exception as e:  # noqa: BLE001 - the usual way finds the same error, and says it to whom it concerns
            self._off = isinstance(e, OSError)
            log.log(logging.WARNING if self._off else logging.DEBUG, "not written ahead of %s: %s", self._wal, e)
            self._erase(written)  # first: with nothing kept, another store may come in after the other
            self._undo(database)
            return 0

    def _put(self, data: bytes) -> int:
        self._file.put(data, self._at)
        return len(data)

    def _erase(self, length: int) -> None:
        """A record that nobody was told of: what comes after a crash must not find it."""
        if not length:
            return
        try:
            self._file.put(bytes(length), self._at)
            self._file.flush()
        except OSError as e:
            self._off = True
            log.warning("cannot take a record ahead of %s back: %s", self._wal, e)

    def _begin(self, database: sqlite3.Connection) -> bool:
        if not self._file.alone():
            return False
        try:
            if self._at < 0:
                self._clear(database)
            database.execute("PRAGMA synchronous=NORMAL")
            database.execute("BEGIN IMMEDIATE")
        except BaseException:
            self._over(database)
            raise
        self.open, self._chapter, self._seen = True, (_chapter(database) + 1) % CHAPTERS, {}
        return True

    def _clear(self, database: sqlite3.Connection) -> None:
        """Forget the records of whoever was here before, once SQLite's own log is sure to have what they say."""
        if not _chapter(database):
            # Not from 1: the records of a file that was here before belong to none of its chapters.
            database.execute(f"PRAGMA user_version={random.randrange(1, CHAPTERS // 2)}")
        with open(self._wal, "rb") as wal:
            os.fdatasync(wal.fileno())
        self._file.fill()
        self._at = 0

    def land(self, database: sqlite3.Connection) -> None:
        """Commit what is kept. Where that fails it stays kept, and nothing else can be done here before it is."""
        self._look_whether_open(database)
        if not self.kept:
            self._undo(database)
            return
        try:
            if not self.open:
                database.execute("BEGIN IMMEDIATE")
                for quick, now in self.kept:
                    _do_again(database, quick, now, self._file.path)
            database.execute(f"PRAGMA user_version={self._chapter}")
            database.execute("COMMIT")
        except BaseException:
            self._undo(database)
            raise
        self.open = False
        self.kept.clear()
        self._over(database)

    def _look_whether_open(self, database: sqlite3.Connection) -> None:
        """SQLite ends a transaction by itself when the disk fails it, also under somebody who only reads in it."""
        if self.open and not database.in_transaction:
            self._undo(database)

    def _undo(self, database: sqlite3.Connection) -> None:
        if database.in_transaction:
            database.execute("ROLLBACK")
        if self.open:
            self.open = False
            if not self.kept:
                self._over(database)

    def _over(self, database: sqlite3.Connection) -> None:
        database.execute("PRAGMA synchronous=FULL")
        self._file.share()

    def touch(self, database: sqlite3.Connection) -> None:
        """Something for a commit to write: where no page has changed, as by an UPDATE to the same values, SQLite
        writes nothing and flushes nothing, and the records would be given up for it."""
        if self._at > 0:
            database.execute(f"PRAGMA user_version={_chapter(database)}")

    def flushed(self) -> None:
        """SQLite has flushed a commit, and with it all before: the records are not needed any more."""
        self._at = min(self._at, 0)

    def close(self) -> None:
        self._file.close()


def join(database: sqlite3.Connection, data: bytes, path: str) -> None:
    """Do what the records in `data` have and the database has not."""
    if not outstanding(data, _chapter(database)):
        return
    database.execute("BEGIN IMMEDIATE")
    try:
        records = outstanding(data, _chapter(database))  # another one may have been quicker
        for record in records[:-1]:
            _do_again(database, record.quick, record.now, path)
        for record in records[-1:]:
            if not sqlite_quick.done(database, record.quick, record.now):
                # Nobody was told that it is done: it was on its way to the disk, and SQLite refused it.
                log.warning("the last record of %s does not fit its database, and is left out", path)
            database.execute(f"PRAGMA user_version={record.chapter}")
        database.execute("COMMIT")
    except BaseException:
        database.execute("ROLLBACK")
        raise


def _do_again(database: sqlite3.Connection, quick: Quick, now: int, path: str) -> None:
    if not sqlite_quick.done(database, quick, now):
        raise HoldfastError(
            "store_damaged", f"{path} holds writes that do not fit its database", "restore a backup of both, or neither"
        )


def _chapter(database: sqlite3.Connection) -> int:
    return int(database.execute("PRAGMA user_version").fetchone()[0])
