"""Moving the work of a home from its SQLite file to a PostgreSQL server."""

from __future__ import annotations

import asyncio
import os

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
    from ..store.open import is_server, without_password

    if not is_server(url):
        raise invalid(f"{without_password(url)!r} is no PostgreSQL server", "postgresql://USER@HOST/DATABASE")
    work = host.work
    if work.store and is_server(work.store):
        raise invalid("HOLDFAST_STORE names a server already", "unset it: what is moved is the home's file")
    work.runs(limit=1)  # the host brings the file's schema up to date, and flushes what it has
    path = work.store[len("sqlite:///") :] if work.store else host.home.work_db
    tables = asyncio.run(copy(os.path.abspath(path), url, tell))
    return {"from": path, "to": without_password(url), "tables": tables, "rows": sum(t["rows"] for t in tables)}
