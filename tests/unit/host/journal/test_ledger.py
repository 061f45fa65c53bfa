"""The ledger: durable when it returns, in groups, one failure alone, and an older home becomes a newer one."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import time
from pathlib import Path

import pytest

from holdfast.host.journal import ledger
from holdfast.host.journal.journal import Journal
from holdfast.host.journal.ledger import MIGRATIONS, Ledger
from holdfast.host.journal.refusals import Refusals
from holdfast.model.errors import HoldfastError
from holdfast.system import signing_keys

SEED = b"k" * 32
ACTOR = {"operator": "op_ada", "kind": "human", "name": "ada"}


async def opened(path: Path) -> Ledger:
    made = Ledger(str(path / "host.db"))
    await made.open()
    return made


def journal_of(made: Ledger, path: Path) -> Journal:
    public = signing_keys.public_of(SEED)
    return Journal(
        made,
        "hst_x",
        str(path / "journal.head"),
        lambda m: signing_keys.sign(SEED, m),
        lambda s, m: signing_keys.signed(public, s, m),
    )


async def test_writes_are_in_order_and_there_when_they_return(tmp_path: Path) -> None:
    made = await opened(tmp_path)
    await made.write(lambda db: db.execute("CREATE TABLE t (n INTEGER)"))
    writes = [made.write(lambda db, n=n: db.execute("INSERT INTO t VALUES (?)", (n,)).rowcount) for n in range(300)]  # type: ignore[misc]
    assert await asyncio.gather(*writes) == [1] * 300
    assert await made.read(lambda db: [r[0] for r in db.execute("SELECT n FROM t")]) == list(range(300))
    with sqlite3.connect(tmp_path / "host.db") as other:
        assert other.execute("SELECT count(*) FROM t").fetchone() == (300,)
    other.close()
    made.close()
    assert (tmp_path / "host.db").stat().st_mode & 0o777 == 0o600


async def test_one_that_fails_is_undone_alone(tmp_path: Path) -> None:
    made = await opened(tmp_path)
    await made.write(lambda db: db.execute("CREATE TABLE t (n INTEGER PRIMARY KEY)"))

    def half(db: sqlite3.Connection) -> None:
        db.execute("INSERT INTO t VALUES (2)")
        raise KeyError("no")

    first, second, third = (
        made.write(lambda db: db.execute("INSERT INTO t VALUES (1)").rowcount),
        made.write(half),
        made.write(lambda db: db.execute("INSERT INTO t VALUES (3)").rowcount),
    )
    assert await first == await third == 1
    with pytest.raises(KeyError):
        await second
    assert await made.read(lambda db: db.execute("SELECT n FROM t").fetchall()) == [(1,), (3,)]
    made.close()


async def test_a_reader_cannot_write(tmp_path: Path) -> None:
    made = await opened(tmp_path)
    with pytest.raises(sqlite3.OperationalError):
        await made.read(lambda db: db.execute("DELETE FROM entries"))
    made.close()


async def test_tables_are_made_step_by_step_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MIGRATIONS", MIGRATIONS[:1])
    (await opened(tmp_path)).close()
    monkeypatch.undo()
    made = await opened(tmp_path)
    assert await made.read(lambda db: db.execute("PRAGMA user_version").fetchone()[0]) == len(MIGRATIONS)
    made.close()
    monkeypatch.setattr(ledger, "MIGRATIONS", MIGRATIONS[:1])
    with pytest.raises(HoldfastError, match="newer"):
        await opened(tmp_path)


async def test_what_is_no_database_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "host.db").write_bytes(b"not a database, but long enough to be looked at" * 100)
    with pytest.raises(HoldfastError, match="ledger"):
        await opened(tmp_path)


async def test_entries_keep_their_order_and_the_head_is_kept_beside(tmp_path: Path) -> None:
    made = await opened(tmp_path)
    journal = journal_of(made, tmp_path)
    await journal.open()
    for n in range(130):
        journal.note("exec", session="ses_a", actor=ACTOR, count=n)
    await journal.written()
    assert journal.tip[0] == 130
    await journal.close()
    head = await journal.head()
    assert head is not None
    assert head["n"] == 130
    verdict = await journal.verify([])
    assert (verdict.ok, verdict.entries, verdict.heads) == (True, 130, 3)
    assert (tmp_path / "journal.head").exists()
    again = journal_of(made, tmp_path)
    await again.open()
    again.note("exec", session=None, actor=None)
    await again.written()
    assert (await again.verify([head])).ok
    await again.close()
    made.close()


async def test_spooled_entries_are_taken_once(tmp_path: Path) -> None:
    made = await opened(tmp_path)
    journal = journal_of(made, tmp_path)
    await journal.open()
    events = [{"n": n, "generation": 1, "kind": "take", "at": 1.0, "epoch": n} for n in (1, 2, 3)]
    await journal.ingest("ses_a", "web", events[:2])
    await journal.ingest("ses_a", "web", events)
    await journal.ingest("ses_a", "web", [{**events[0], "n": 4, "generation": 2}])
    assert (await journal.ingested("ses_a"), await journal.ingested("ses_b")) == (4, 0)
    assert (await journal.verify([])).entries == 4
    await journal.close()
    made.close()


async def test_a_flood_of_one_refusal_is_one_entry_and_a_count(tmp_path: Path) -> None:
    made = await opened(tmp_path)
    journal = journal_of(made, tmp_path)
    await journal.open()
    refusals = Refusals(journal)
    for _ in range(1000):
        refusals.note("stop", "no", actor=ACTOR, session=None)
    for n in range(1000):
        refusals.note(f"op{n}", "no", actor=ACTOR, session=None)
    refusals.flush()
    await journal.written()
    assert journal.tip[0] < 150
    await journal.close()
    made.close()


async def test_an_entry_that_comes_alone_is_on_its_way_before_the_loop_turns(tmp_path: Path) -> None:
    made = await opened(tmp_path)
    journal = journal_of(made, tmp_path)
    await journal.open()
    journal.note("exec", session=None, actor=None, alone=True)
    deadline = time.monotonic() + 30
    with contextlib.closing(sqlite3.connect(tmp_path / "host.db")) as other:
        while other.execute("SELECT count(*) FROM entries").fetchone() == (0,):
            assert time.monotonic() < deadline
            time.sleep(0.01)  # noqa: ASYNC251  (the loop is to stand still meanwhile)
    journal.note("send", session=None, actor=None)
    journal.note("exec", session=None, actor=None, alone=True)
    await journal.written()
    bodies = await made.read(lambda db: [json.loads(r[0]) for r in db.execute("SELECT body FROM entries ORDER BY n")])
    assert [(body["n"], body["kind"]) for body in bodies] == [(1, "exec"), (2, "send"), (3, "exec")]
    assert journal.tip[0] == 3
    await journal.close()
    made.close()
