"""What a recording needs beside the output: who acted in a session, from the journal, page by page."""

from __future__ import annotations

import json
from typing import Any

from .base import Base

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..identity import Caller

Json = dict[str, Any]

_PAGE_ENTRIES = 2000  # some 300 bytes each: well below one reply
_FACTS = ("n", "at", "kind", "operator", "operator_kind", "name", "epoch", "offset", "why", "note", "from", "to",
          "what", "signal", "generation", "via", "ask")  # fmt: skip


class Acts(Base):
    """acts."""

    async def op_acts(self, request: Json, caller: Caller) -> Json:
        """Entries of one session after a number, without the text of what was run or sent."""
        session = await self._find(request, caller)
        await self.journal.written()
        after = int(request.get("after") or 0)
        query = "SELECT body FROM entries WHERE session = ? AND n > ? ORDER BY n LIMIT ?"
        rows = await self.ledger.read(lambda db: db.execute(query, (session.id, after, _PAGE_ENTRIES)).fetchall())
        entries = [{k: v for k, v in json.loads(row[0]).items() if k in _FACTS} for row in rows]
        return {"entries": entries, "next": entries[-1]["n"] if len(entries) == _PAGE_ENTRIES else None}
