"""A store from its URL."""

from __future__ import annotations

from ..model.errors import invalid
from .base import Store

_FORMS = "sqlite:///FILE, sqlite:////ABSOLUTE/FILE or postgresql://USER@HOST/DATABASE"


async def open_store(url: str) -> Store:
    """Open it and bring its schema up to date."""
    scheme, found, rest = url.partition("://")
    if found and scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from .sqlite import SqliteStore

        return await SqliteStore.open(rest[1:])
    if found and is_server(url):
        from .postgres import PostgresStore

        return await PostgresStore.open(url)
    raise invalid(f"{without_password(url)!r} is no store", f"HOLDFAST_STORE is {_FORMS}")


def is_server(url: str) -> bool:
    """Whether each process writes this store itself; a file has one writer, the host."""
    return url.partition("://")[0] in ("postgresql", "postgres")


def without_password(url: str) -> str:
    """The URL as it may be shown."""
    scheme, found, rest = url.partition("?")[0].partition("://")  # options may hold a password, too
    account, at, place = rest.rpartition("@")
    user, colon, _ = account.partition(":")
    shown = f"{scheme}://{user}{':***' if colon else ''}@{place}" if found and at else url.partition("?")[0]
    return shown[:200]
