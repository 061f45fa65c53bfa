"""What a store cannot do is told in one line with its code, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.model.errors import HoldfastError
from holdfast.model.work.store_setting import without_password
from holdfast.store.migrations import all_migrations, outstanding, statements
from holdfast.store.open import open_store
from holdfast.store.postgres import PostgresStore, translate
from holdfast.store.sqlite import SqliteStore
from holdfast.testing.store import get, names, opened, put, refused
from tests.support.postgres import Server


@pytest.mark.parametrize("url", ["", "work.db", "sqlite://", "sqlite:///", "mysql://u:secret@h/d", "postgresql:/h"])
async def test_a_url_that_is_no_store_is_refused(url: str) -> None:
    with refused("invalid") as seen:
        await open_store(url)
    assert "secret" not in seen[0].line()


async def test_a_wrong_password_a_wrong_port_and_a_missing_database_are_told_apart(postgres: Server) -> None:
    with refused("store_denied") as seen:
        await open_store(postgres.url(password="wrong-one"))
    assert "wrong-one" not in seen[0].line()
    with refused("store_unreachable") as seen:
        await open_store("postgresql://postgres:hidden@127.0.0.1:1/none")
    assert "hidden" not in seen[0].line()
    with refused("store_unreachable") as seen:
        await open_store(postgres.url().rpartition("/")[0] + "/no_such_database")
    assert "no_such_database" in seen[0].message


def test_a_password_is_never_shown() -> None:
    assert without_password("postgresql://me:p@ss@host/db?password=p@ss") == "postgresql://me:***@host/db"


async def test_a_file_that_is_no_database_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    path.write_text("my notes, not yours\n" * 100)
    with refused("store_damaged"):
        await open_store(f"sqlite:///{path}")
    assert path.read_text() == "my notes, not yours\n" * 100


async def test_a_folder_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with refused("store_readonly") as seen:
        await open_store(f"sqlite:///{tmp_path}/none/work.db")
    assert "No such file" in seen[0].message


async def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "work.db"
    async with opened(f"sqlite:///{path}") as store:
        await store.write(lambda: put("a"))
        modes = {name: oct(os.stat(tmp_path / name).st_mode & 0o777) for name in os.listdir(tmp_path)}
    assert modes == {"work.db": "0o600", "work.db-wal": "0o600", "work.db-shm": "0o600"}


# In a mount namespace of its own: a file system of 1 MB, and one that is read-only.
CONFINED = """
import asyncio, os, subprocess, sys
from holdfast.store.open import open_store
from holdfast.model.errors import HoldfastError
from holdfast.testing.store import put, names

async def main(folder):
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", folder], check=True)
    store, kept = await open_store(f"sqlite:///{folder}/work.db"), []
    try:
        for n in range(1000):
            await store.write(lambda: put(f"n{n:04}", "x" * 8000))
            kept.append(f"n{n:04}")
    except HoldfastError as e:
        print(e.code, flush=True)
    assert await store.read(names) == kept and len(kept) > 10
    await store.close()
    subprocess.run(["mount", "-o", "remount,bind,ro", folder], check=True)
    try:
        await open_store(f"sqlite:///{folder}/work.db")
    except HoldfastError as e:
        print(e.code, flush=True)

asyncio.run(main(sys.argv[1]))
"""


def test_a_full_disk_and_a_read_only_one_are_told_and_what_was_acknowledged_is_kept(tmp_path: Path) -> None:
    confined = ["unshare", "-rm"] if os.getuid() else ["unshare", "-m"]
    assert shutil.which("unshare")
    done = subprocess.run(
        [*confined, sys.executable, "-c", CONFINED, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert (done.stdout.split(), done.stderr) == (["store_full", "store_readonly"], "")


# -- migrations ------------------------------------------------------------------------------------------------------

TWO = [(1, "CREATE TABLE thing (a {int}){strict};"), (2, "ALTER TABLE thing ADD COLUMN b TEXT; -- why; not\n")]


async def test_a_database_of_every_earlier_version_is_brought_forward(tmp_path: Path, postgres: Server) -> None:
    known = all_migrations()
    for upto in range(1, len(known) + 1):
        path, url = str(tmp_path / f"{upto}.db"), postgres.url()
        await (await SqliteStore.open(path, known[:upto])).close()
        await (await PostgresStore.open(url, known[:upto])).close()
        for store in (await SqliteStore.open(path), await PostgresStore.open(url)):
            await store.write(lambda: put("a", "text"))
            assert await store.read(lambda: get("a")) == (1, "text")
            await store.close()


async def test_a_migration_that_fails_leaves_the_version_before_it(tmp_path: Path) -> None:
    path = str(tmp_path / "work.db")
    await (await SqliteStore.open(path, TWO[:1])).close()
    with pytest.raises(HoldfastError):
        await SqliteStore.open(path, [*TWO[:1], (2, "CREATE TABLE other (a {int}); SELECT nonsense FROM nowhere;")])
    database = sqlite3.connect(path)
    tables = [n for (n,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    database.close()
    assert sorted(tables) == ["schema_version", "thing"]
    await (await SqliteStore.open(path, TWO)).close()


def test_only_what_is_missing_runs_and_comments_are_no_statements() -> None:
    assert [n for n, _ in outstanding(1, TWO, "x")] == [2]
    assert outstanding(2, TWO, "x") == []
    words = {"int": "INTEGER", "strict": " STRICT"}
    assert statements(TWO[0][1], words) == ["CREATE TABLE thing (a INTEGER) STRICT"]
    assert statements(TWO[1][1], words) == ["ALTER TABLE thing ADD COLUMN b TEXT"]


def test_placeholders_are_numbered_for_postgres() -> None:
    assert translate("SELECT a FROM t WHERE b = ? AND c = ? {for_update}") == (
        "SELECT a FROM t WHERE b = $1 AND c = $2 FOR UPDATE"
    )


async def test_another_program_may_read_the_file_meanwhile(tmp_path: Path) -> None:
    async with opened(f"sqlite:///{tmp_path}/work.db") as store:
        await store.write(lambda: put("a"))
        reader = sqlite3.connect(tmp_path / "work.db")
        reader.execute("BEGIN")
        assert reader.execute("SELECT COUNT(*) FROM attempt").fetchone() == (1,)
        await store.write(lambda: put("b"))
        assert reader.execute("SELECT COUNT(*) FROM attempt").fetchone() == (1,)
        reader.close()
        assert await store.read(names) == ["a", "b"]
