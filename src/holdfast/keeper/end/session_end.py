"""The end of a session: the last bytes, the records, and a moment for those who still read."""

from __future__ import annotations

import json
import os
import time

from ...model import limits, signals
from ...system import cgroup
from ...system.atomic_files import read_json, write_json
from ..controls import controls

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]

    from ...model.home import SessionFolder
    from ..keeper import Keeper
    from ..start.program import StartFailed

_FAILED_CODES = {"no_program": 127}  # as a shell would have it; 126 where it is there and cannot run


def main_ended(keeper: Keeper, status: int) -> None:
    """The main program is over: what it still printed is taken, and how it ended is on disk before it is told."""
    code = keeper.main.ending(os.waitstatus_to_exitcode(status))
    keeper.drain()
    keeper.exit = {
        "code": code if code >= 0 else None,
        "signal": signals.name(-code) if code < 0 else None,
        "known": True,
        "at": time.time(),
        "by": keeper.blame,
    }
    _keep(keeper.folder, {"exit": keeper.exit, "generation": keeper.manifest["generation"], "ended": False})
    keeper.tell({"event": "exit", "exit": keeper.exit, "end": keeper.log.end})


def not_started(folder: SessionFolder, failed: StartFailed) -> None:
    """The same of a program that never began, before it is told: whoever asked may not be there any more."""
    manifest = read_json(folder.manifest)
    if manifest is None:
        return  # whoever asked has taken it back
    now = time.time()
    ended = {"code": _FAILED_CODES.get(failed.code, 126), "signal": None, "known": True, "at": now, "by": None}
    about = {"generation": manifest["generation"], "ended": True, "ended_at": now, "failure": str(failed)}
    try:
        write_json(folder.exit, {"exit": ended, **about}, durable=False)
    except OSError:
        pass  # it is told as lost


def _keep(folder: SessionFolder, record: Json) -> None:
    """On disk, whatever the disk is like: where there is no room for a file, into the block that the lock's own has."""
    try:
        write_json(folder.exit, record)
        return
    except OSError:
        pass
    facts = read_json(folder.keeper_lock) or {}
    try:
        fd = os.open(folder.keeper_lock, os.O_WRONLY | os.O_CLOEXEC)
        try:
            # Longer than what is there, so nothing is cut off: a block that is given back may not be had again.
            os.pwrite(fd, json.dumps({**facts, "ending": record}).encode(), 0)
            os.fdatasync(fd)
        finally:
            os.close(fd)
    except OSError:
        pass  # a disk that takes nothing: a host that is there hears of it, and one that is not finds it lost


def finish(keeper: Keeper) -> None:
    """Everything is on disk before anybody is told; then the keeper is gone."""
    keeper.drain()
    # Nobody is let in any more: a line that is never answered would keep a new host waiting for it.
    keeper.poll.unregister(keeper.listener.fileno())
    keeper.listener.close()
    controls.note(keeper, "ended", None, "", {"exit": keeper.exit})
    keeper.ended = True
    keeper.log.close()
    _keep(
        keeper.folder,
        {
            "exit": keeper.exit,
            "generation": keeper.manifest["generation"],
            "ended": True,
            "ended_at": time.time(),
            "end": keeper.log.end,
            "requests": keeper.applied.last(),
        },
    )
    # A program can be over before its starter said HELLO: that line is answered first.
    _serve_while(keeper, lambda: any(c.actor is None for c in keeper.channels.values()))
    keeper.tell({"event": "ended", "exit": keeper.exit, "end": keeper.log.end, "untaken": keeper.input.untaken})
    _linger(keeper)
    cgroup.remove(cgroup.possible_leaves(keeper.session))
    try:
        os.unlink(keeper.folder.keeper_socket)
    except FileNotFoundError:
        pass


def _linger(keeper: Keeper) -> None:
    """Let readers have the rest; whoever is slower than this reads on from the log on disk."""
    for channel in list(keeper.channels.values()):
        channel.to = min(channel.to, keeper.log.end)
        if channel.at >= 0 or channel.outbox:
            keeper.guarded(channel, channel.pump, keeper.reader, keeper.log.end)
    _serve_while(keeper, lambda: any(c.at >= 0 or c.outbox for c in keeper.channels.values()))


def _serve_while(keeper: Keeper, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + limits.LINGER_S
    while condition() and time.monotonic() < deadline:
        for fd, events in keeper.poll.poll(max(0.0, deadline - time.monotonic())):
            if fd in keeper.channels:
                keeper.serve(keeper.channels[fd], events)
            elif fd in (keeper.wake_read, keeper.sync_read):
                os.read(fd, 512)
