"""Moving the work of a home from its SQLite file to a PostgreSQL server."""

from __future__ import annotations

import asyncio

from ..model import stores
from ..model.errors import invalid
from .sync import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]


def migrate(host: Host, url: str, tell: Callable[[str, int], None]) -> Json:
    """Copy all of it and check it; the file stays as it was. What was copied, table by table."""
    from ..store.copying import copy

    if not stores.is_server(url):
        raise invalid(f"{stores.without_password(url)!r} is no PostgreSQL server", "postgresql://USER@HOST/DATABASE")
    used = host.call("store_use")  # refused to whom it is not for, and while a lease is held
    if used["server"]:
        raise invalid("this home's work is on a server already", "hold status shows which")
    host.work.runs(limit=1)  # the host brings the file's schema up to date, and flushes what it has
    path = stores.file_of(used["store"])
    tables = asyncio.run(copy(path, url, tell))
    rows = sum(t["rows"] for t in tables)
    return {"from": path, "to": stores.without_password(url), "tables": tables, "rows": rows}
