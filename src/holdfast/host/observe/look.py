"""One look at sessions, with what it takes: the registry, their screens, and the host's own processes."""

from __future__ import annotations

from typing import Any, NamedTuple

from ...system import kernel, process_tree
from ..screen.emulators import Screens
from ..sessions.registry import Registry
from ..sessions.session import Session
from . import session_view

Json = dict[str, Any]


class Look(NamedTuple):
    """`roles` is the folder where the host's processes are registered."""

    registry: Registry
    screens: Screens
    host: str
    roles: str

    async def view(self, session: Session, *, full: bool, members: list[int] | None = None) -> Json:
        """The session object, as of now."""
        await session.settled()
        return await session_view.view(session, self.host, self.screens, full=full, members=members)

    def forest(self) -> dict[int, list[int]]:
        """The processes of every live session, by its keeper's pid, from one look at /proc."""
        keepers = [s.keeper for s in self.registry.sessions.values() if s.keeper is not None]
        return process_tree.forest(keepers, lambda: kernel.registered(self.roles))


async def end(session: Session) -> int:
    """Where its output ends."""
    if not session.connected:
        return session.end
    status = await session.line.act("status")
    return int(status["output"]["end"])


def restarting(session: Session) -> bool:
    """Whether it is started again soon, by its policy."""
    return session.notes.restart_at is not None
