"""The OpenAI Agents SDK's `Session` on a Holdfast store: a conversation that outlives the process that holds it.

session = HoldfastSession.open("ticket-17", "sqlite:///work.db")   # or postgresql://…
result = await Runner.run(agent, "go on", session=session)
"""

from __future__ import annotations

import asyncio
from typing import Any

from ..model.errors import HoldfastError
from .store_thread import Conversations, StoreThread

try:
    from agents.memory import SessionABC, SessionSettings
except ImportError:
    raise HoldfastError(
        "failed", "the OpenAI Agents integration needs the package openai-agents", "pip install 'holdfast[openai]'"
    ) from None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

    from agents.items import TResponseInputItem


class HoldfastSession(SessionABC):
    """One conversation by its id. What was added is on disk when `add_items` returns."""

    def __init__(self, session_id: str, url: str, *, session_settings: SessionSettings | None = None) -> None:
        self.session_id = session_id
        self.session_settings = session_settings or SessionSettings()
        self._portal = StoreThread(url)

    @classmethod
    def open(cls, session_id: str, url: str, *, session_settings: SessionSettings | None = None) -> Self:
        return cls(session_id, url, session_settings=session_settings)

    async def __aenter__(self) -> Self:
        await self._conversations()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        self._portal.close()

    async def _conversations(self) -> Conversations:
        store = self._portal.store
        return Conversations(store if store is not None else await asyncio.to_thread(self._portal.start))

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The conversation in order; with a limit, its latest items."""
        most = limit if limit is not None else self.session_settings.limit if self.session_settings else None
        found: list[Any] = await self._portal.acall((await self._conversations()).last(self.session_id, most))
        return found

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._portal.acall((await self._conversations()).add(self.session_id, items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Take the latest item away."""
        item: TResponseInputItem | None = await self._portal.acall((await self._conversations()).pop(self.session_id))
        return item

    async def clear_session(self) -> None:
        await self._portal.acall((await self._conversations()).clear(self.session_id))
