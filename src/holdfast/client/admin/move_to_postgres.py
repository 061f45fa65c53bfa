"""Moving the work of a home from its SQLite file to a PostgreSQL server."""

from __future__ import annotations

import asyncio

from ...model.errors import invalid
from ...model.work import store_setting
from .._sync.host import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]


def migrate(host: Host, url: str, tell: Callable[[str, int], None]) -> Json:
    """Copy all of it and check it; the file stays as it was. What was copied, table by table."""
    from ...store.copy_to_postgres import copy

    if not store_setting.is_server(url):
        raise invalid(
            f"{store_setting.without_password(url)!r} is no PostgreSQL server", "postgresql://USER@HOST/DATABASE"
        )
    used = host.call("store_use")  # refused to whom it is not for, and while a lease is held
    if used["server"]:
        raise invalid("this home's work is on a server already", "hold status shows which")
    host.work.runs(limit=1)  # the host brings the file's schema up to date, and flushes what it has
    path = store_setting.file_of(used["store"])
    tables = asyncio.run(copy(path, url, tell))
    rows = sum(t["rows"] for t in tables)
    return {"from": path, "to": store_setting.without_password(url), "tables": tables, "rows": rows}
