"""Getting a line to a keeper that lives: one connection at a time, until it answers or is gone."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time

from ...model.errors import HoldfastError
from ...model.limits import KEEPER_ANSWER_S
from ..kernel_events import KernelEvents
from .keeper_link import KeeperLink, dial_soon
from .session import Session, found, keeper_named
from .state import Event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .connect import Lines

log = logging.getLogger("holdfast.host")

# After a connection was refused: a keeper that comes or goes does so within milliseconds, and its folder tells of most
# of that. Its listening socket has no event.
_PAUSES_S, _PAUSE_S = (0.001, 0.005, 0.02, 0.1, 0.5), 2.0
_LOOK_S = 60.0  # on a keeper that is stopped: its answer and its end are told, this is for what was not


class Reach:
    """Reports WELCOMED, or how the session ended; CONNECT_FAILED once where it takes longer than callers wait."""

    def __init__(self, lines: Lines, session: Session) -> None:
        self._lines, self._session = lines, session
        loop = asyncio.get_running_loop()
        self._tried: asyncio.Future[None] = loop.create_future()  # the first try is over
        self._again: asyncio.Future[None] = loop.create_future()  # a caller asks: try now
        self._pausing = self._told = False
        self._task = loop.create_task(self._run())

    async def tried(self) -> None:
        """Until there is a line, or the try of this moment has failed or taken as long as callers wait."""
        if self._pausing:
            self._pausing = False
            self._tried = asyncio.get_running_loop().create_future()
            self._again.set_result(None)
        under_way = {self._task} if self._tried.done() else {self._task, self._tried}
        await asyncio.wait(under_way, timeout=KEEPER_ANSWER_S, return_when="FIRST_COMPLETED")

    async def _run(self) -> None:
        try:
            event, link = await self._outcome()
        finally:
            self._session.reach = None  # also after a defect: the next caller that asks begins anew
        self._lines.happened(self._session, event, link)

    async def _outcome(self) -> tuple[Event, KeeperLink | None]:
        session = self._session
        with KernelEvents() as events:
            events.folder(session.folder.path)
            for pause in itertools.chain(_PAUSES_S, itertools.repeat(_PAUSE_S)):
                events.ends_of(keeper_named(session.folder))
                if (event := found(session, Event.CONNECT_FAILED)) is not Event.CONNECT_FAILED:
                    return event, None
                try:
                    link = KeeperLink(await dial_soon(session.folder.keeper_socket))
                    if await self._welcomed(link, events):
                        return Event.WELCOMED, link
                    why = "it closed the line"
                except (HoldfastError, OSError) as e:
                    why = str(e)
                self._failed(why)
                self._again = asyncio.get_running_loop().create_future()
                self._pausing = True
                await events.wait(pause, self._again)
                self._pausing = False
        raise AssertionError("unreachable")

    async def _welcomed(self, link: KeeperLink, events: KernelEvents) -> bool:
        """Whether the keeper answers on this line, however long that takes; not where it is over."""
        asked = time.monotonic()
        try:
            link.hail(self._lines.hello(self._session))
            while not link.welcome.done():
                events.ends_of(keeper_named(self._session.folder))
                if found(self._session, Event.CONNECT_FAILED) is not Event.CONNECT_FAILED:
                    break
                left = asked + KEEPER_ANSWER_S - time.monotonic()
                if left <= 0:
                    self._failed(f"nothing in {KEEPER_ANSWER_S:.0f} s")
                await events.wait(left if left > 0 else _LOOK_S, link.welcome)
            if link.welcome.done():
                link.welcome.result()
                return True
        except BaseException:
            link.close()
            raise
        link.close()
        return False

    def _failed(self, why: str) -> None:
        if not self._told:
            self._told = True
            log.warning("keeper of %s does not answer: %s", self._session.name, why)
            self._lines.happened(self._session, Event.CONNECT_FAILED)
        if not self._tried.done():
            self._tried.set_result(None)
