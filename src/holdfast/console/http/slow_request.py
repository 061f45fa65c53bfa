"""One HTTP connection: it is hung up on when the head of a request does not come whole in time.

Without that, anybody on this machine, token or not, could hold all the connections there may be by saying nothing.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from ...model.limits import WEB_HEAD_S


class TimelyProtocol(H11Protocol):
    """uvicorn's own, with a time for what comes before anybody is asked who they are."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._late = self.loop.call_later(WEB_HEAD_S, self._hang_up)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._in_time()
        elif self._late is None:  # the first bytes of the next request; more of them do not buy more time
            self._late = self.loop.call_later(WEB_HEAD_S, self._hang_up)

    def connection_lost(self, exc: Exception | None) -> None:
        self._in_time()
        super().connection_lost(exc)

    def _in_time(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None

    def _hang_up(self) -> None:
        self._late = None
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()
