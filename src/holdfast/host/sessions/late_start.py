"""Starts that take longer than anybody waits for them: found when they happen after all, or known not to.

A folder on a server that does not answer, a spare that is stopped: what was handed over may begin in a minute or in a
day, and nothing that can be done from outside makes sure that it will not. So it stays a session, with its name and its
request: nobody starts it twice, and it can be stopped.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import Callable

from ...model.errors import HoldfastError
from ...model.limits import KEEPER_ANSWER_S
from ...system import kernel, process_tree
from ...system.atomic_files import read_json
from ...system.peer_identity import credentials
from ..kernel_events import KernelEvents
from .keeper_link import KeeperLink, dial
from .session import Session, ended_how, keeper_alive, keeper_gone
from .state import Event, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .connect import Lines

log = logging.getLogger("holdfast.host")

_ARRIVAL_S = 15.0  # a start that another host asked for takes milliseconds; on a bad day seconds
_TURN_S = 60.0  # a start among hundreds is waited for so long at most
_LATE_LOOK_S = 60.0  # the kernel tells of one that is later; this is for a descriptor that it refused
CALLED_OFF_S = 5.0  # a keeper whose child was killed ends at once, unless the kernel keeps that child in a call
_WAITING = ("hold-spare", "hold-zygote")  # who takes a start, and who forks such a one; a keeper has its lock already


def check(session: Session) -> None:
    """Refuse to call that a start which has not happened yet."""
    if session.life is State.START_LATE:
        raise HoldfastError(
            "timeout",
            f"{session.name} did not start within {KEEPER_ANSWER_S:.0f} s: its folder or its program hangs",
            f"it may still start, as {session.id}: hold status {session.id} tells, hold stop {session.id} ends it",
        )


async def begins(lines: Lines, link: KeeperLink) -> bool:
    """Whether a start that was handed over begins in time. Those before it take theirs: it is late when none of them
    begins either."""
    deadline, seen = time.monotonic() + _TURN_S, -1
    while seen != lines.begun and time.monotonic() < deadline:
        seen = lines.begun
        if await link.welcomed():
            return True
    return False


async def expect(lines: Lines, session: Session, link: KeeperLink) -> None:
    """Our own zygote was handed this start, and its keeper has not answered: the line tells how that ends."""
    try:
        await asyncio.shield(link.welcome)
    except HoldfastError as e:
        link.close()
        log.warning("%s did not start: %s", session.name, e.line())
        lines.happened(session, ended_how(session))
        return
    lines.happened(session, Event.WELCOMED, link)


async def take_back(session: Session, link: KeeperLink) -> None:
    """A start that went well over there failed on our side (its entry, its manifest): whoever asked is told that there
    is no session, so nothing of it may go on."""
    if session.life is State.START_LATE:
        session.remember(stopped=True)  # it is ended in the moment it begins
        return
    link.tell("stop", grace_s=0.0)
    await keeper_gone(session.folder, CALLED_OFF_S)


async def arrive(lines: Lines, session: Session, waiting: Callable[[], list[tuple[int, int]]]) -> None:
    """The last host was killed with this start on its way: it happens, or no process is left to do it. `waiting` names
    those that may."""
    deadline = time.monotonic() + _ARRIVAL_S
    with KernelEvents() as events:
        events.folder(session.folder.path)  # the keeper that takes it writes its name into its lock
        while not keeper_alive(session.folder) and events.ends_of(waiting()):
            late = session.life is State.START_LATE
            if not late and time.monotonic() > deadline:
                log.warning("%s was handed to a zygote that neither starts it nor ends", session.name)
                lines.happened(session, Event.DEADLINE)
            await events.wait(_LATE_LOOK_S if late else max(0.0, deadline - time.monotonic()))
    lines.happened(session, Event.KEEPER_FOUND if keeper_alive(session.folder) else ended_how(session))


async def call_off(session: Session) -> None:
    """End a start that hangs. Its child is killed: whatever it waits for, it never becomes the program."""
    found = setting_up(session)
    if found is not None:
        for pid in (found[1], found[0]):  # the keeper itself only where the child's end does not get through to it
            if setting_up(session) == found:
                os.kill(pid, signal.SIGKILL)
            if await _gone(session):
                return
    if session.live:
        raise HoldfastError(
            "timeout", f"{session.name} has not begun to start", "it will be ended in the moment it does"
        )


async def _gone(session: Session) -> bool:
    try:
        async with asyncio.timeout(CALLED_OFF_S):
            while session.live:
                await session.changed.wait()
    except TimeoutError:
        pass
    return not session.live


# -- processes that may still do it ----------------------------------------------------------------------


def unseen(session: Session) -> bool:
    """Whether no keeper has taken this generation up: the one that does writes it beside its lock."""
    facts = read_json(session.folder.keeper_lock) or {}
    return not session.ending().get("ended") and facts.get("generation") != session.manifest["generation"]


def on_its_way(roles: str, zygote: int | None) -> list[tuple[int, int]]:
    """(pid, start time) of spares and zygotes of an earlier host: they end with it, after what it had asked of them."""
    found = []
    for pid, started in kernel.registered(roles):
        stat = process_tree.read_stat(pid)
        if stat is None or stat.started != started or stat.state == "Z" or zygote in (pid, stat.ppid):
            continue
        if stat.comm in _WAITING:
            found.append((pid, started))
    return found


def setting_up(session: Session) -> tuple[int, int] | None:
    """The keeper that has taken this start, and its child that is on the way to becoming the program; None where nobody
    has, or it runs already. Who listens at a keeper's address is its keeper, by the kernel's word."""
    try:
        with dial(session.folder.keeper_socket) as sock:
            keeper, _ = credentials(sock)
    except OSError:
        return None
    for pid in process_tree.children(keeper):
        stat = process_tree.read_stat(pid)
        if stat is not None and stat.ppid == keeper and stat.comm in _WAITING and keeper_alive(session.folder):
            return keeper, pid
    return None
