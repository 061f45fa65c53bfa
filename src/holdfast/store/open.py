"""A store from its URL."""

from __future__ import annotations

from ..model.errors import invalid
from ..model.work.store_setting import FORMS, is_server, without_password
from .base import Store


async def open_store(url: str, host: str | None = None) -> Store:
    """Open it and bring its schema up to date; `host` is the one whose home's it is."""
    scheme, found, rest = url.partition("://")
    if found and scheme == "sqlite" and rest.startswith("/") and len(rest) > 1:
        from .sqlite import SqliteStore

        return await SqliteStore.open(rest[1:], host=host)
    if found and is_server(url):
        from .postgres import PostgresStore

        return await PostgresStore.open(url, host=host)
    raise invalid(f"{without_password(url)!r} is no store", f"a store is {FORMS}")
