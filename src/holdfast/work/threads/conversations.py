"""Conversations: items in order, appended, read from the end, popped. For frameworks that keep their history so."""

from __future__ import annotations

from typing import Any

import msgspec

from ...delta.encode import squeeze, unsqueeze
from ...model import ids
from ...model.errors import invalid
from ...model.limits import VALUE_BYTES_MAX
from ...model.work.effects import check_word
from ...store.base import Query, Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...store.base import Store


def _lock(conversation: str) -> Transaction[None]:
    """One writer at a time, also before the first item."""
    yield Query("INSERT INTO conversation (id) VALUES (?) ON CONFLICT (id) DO NOTHING", (conversation,))
    yield Query("SELECT id FROM conversation WHERE id = ? {for_update}", (conversation,))


def _add(conversation: str, items: list[bytes], request: str) -> Transaction[None]:
    yield from _lock(conversation)
    done = yield Query(
        "SELECT 1 FROM conversation_item WHERE conversation = ? AND request = ? LIMIT 1", (conversation, request)
    )
    if done:
        return
    rows = yield Query("SELECT COALESCE(MAX(seq), 0) FROM conversation_item WHERE conversation = ?", (conversation,))
    first = int(rows[0][0]) + 1
    for n, data in enumerate(items, first):
        yield Query(
            "INSERT INTO conversation_item (conversation, seq, request, data) VALUES (?, ?, ?, ?)",
            (conversation, n, request, data),
        )


def _last(conversation: str, limit: int) -> Transaction[list[bytes]]:
    rows = yield Query(
        "SELECT data FROM conversation_item WHERE conversation = ? ORDER BY seq DESC LIMIT ?", (conversation, limit)
    )
    return [bytes(row[0]) for row in reversed(rows)]


def _pop(conversation: str, taken: list[tuple[int, bytes]]) -> Transaction[bytes | None]:
    """`taken` outlives a repetition: what was removed by a commit whose answer was lost is not followed by another."""
    yield from _lock(conversation)
    rows = yield Query(
        "SELECT seq, data FROM conversation_item WHERE conversation = ? ORDER BY seq DESC LIMIT 1", (conversation,)
    )
    if taken and (not rows or rows[0][0] < taken[0][0]):
        return taken[0][1]
    if not rows:
        return None
    taken[:] = [(rows[0][0], bytes(rows[0][1]))]
    yield Query("DELETE FROM conversation_item WHERE conversation = ? AND seq = ?", (conversation, rows[0][0]))
    return taken[0][1]


def _clear(conversation: str) -> Transaction[None]:
    yield Query("DELETE FROM conversation_item WHERE conversation = ?", (conversation,))


def _encode(item: Any) -> bytes:
    try:
        data = msgspec.json.encode(item)
    except UnicodeEncodeError:
        raise invalid("an item holds text that is not valid UTF-8", "decode it with errors='replace' first") from None
    except (TypeError, ValueError, RecursionError) as e:
        raise invalid(f"an item cannot be written as JSON: {e}", "texts, numbers, lists and objects only") from None
    if len(data) > VALUE_BYTES_MAX:
        raise invalid(f"an item has {len(data):,} bytes, the most is {VALUE_BYTES_MAX:,}", "keep it as an artifact")
    return squeeze(data)


class Conversations:
    def __init__(self, store: Store) -> None:
        self._store = store

    async def add(self, conversation: str, items: Sequence[Any]) -> None:
        """All of them, or none; on disk when this returns."""
        check_word("a conversation's id", conversation)
        encoded = [_encode(item) for item in items]
        if encoded:
            request = ids.new("req_")
            await self._store.write(lambda: _add(conversation, encoded, request))

    async def last(self, conversation: str, limit: int | None = None) -> list[Any]:
        """The latest items in order; all of them without a limit."""
        wanted = (1 << 62) if limit is None else max(0, limit)
        found = await self._store.read(lambda: _last(conversation, wanted))
        return [msgspec.json.decode(unsqueeze(data)) for data in found]

    async def pop(self, conversation: str) -> Any:
        """Take the latest item away; None when there is none."""
        check_word("a conversation's id", conversation)
        taken: list[tuple[int, bytes]] = []
        data = await self._store.write(lambda: _pop(conversation, taken))
        return None if data is None else msgspec.json.decode(unsqueeze(data))

    async def clear(self, conversation: str) -> None:
        await self._store.write(lambda: _clear(conversation))
