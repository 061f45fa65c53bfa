"""The schema, as numbered steps forward: `0001_….sql`, `0002_….sql` and so on, for both databases."""

from __future__ import annotations

import os

from ...model.errors import HoldfastError

# Every database has this table before its first migration.
VERSIONS = "CREATE TABLE IF NOT EXISTS schema_version (version {int} PRIMARY KEY, at {int} NOT NULL){strict}"


def all_migrations(folder: str | None = None) -> list[tuple[int, str]]:
    """(number, SQL) in order, without a hole; the folder is the list."""
    folder = folder or os.path.dirname(__file__)
    found = []
    for name in sorted(os.listdir(folder)):
        if name.endswith(".sql"):
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                found.append((int(name[:4]), file.read()))
    if [number for number, _ in found] != list(range(1, len(found) + 1)):
        raise HoldfastError("internal", "the store's migrations are not numbered 1, 2, 3 …", "reinstall holdfast")
    return found


def outstanding(version: int, known: list[tuple[int, str]], where: str) -> list[tuple[int, str]]:
    """What a database of this version still needs; a newer one is left alone."""
    newest = known[-1][0]
    if version > newest:
        raise HoldfastError(
            "store_newer",
            f"{where} has schema {version} and this version of holdfast knows {newest}",
            "upgrade holdfast here, or use the version that wrote it",
        )
    return [(number, sql) for number, sql in known if number > version]


def statements(sql: str, words: dict[str, str]) -> list[str]:
    """The single statements of a migration, in a database's own words (for `int`, `bytes` and `strict`).

    One that begins with `server` is for those who have a word for it.
    """
    text = "\n".join(line.partition("--")[0].rstrip() for line in sql.splitlines())
    for mark, word in words.items():
        text = text.replace("{" + mark + "}", word)
    found = (statement.strip() for statement in text.split(";"))
    return [statement for statement in found if statement and not statement.startswith("{server}")]
