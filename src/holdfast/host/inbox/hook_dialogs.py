"""Dialogs that a hook reports: each lives as long as the agent that asked, and until the agent goes on without it.

The asker is the nearest ancestor of the hook that is no shell. The kernel tells of its end (a pidfd, opened for exactly
this process by its start time), also of one that is killed, and also after a restart of the host: the pair is kept with
the item.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from ...model.inbox import item as asks
from ...model.sessions.activity import SHELLS
from ...system import peer_identity
from ...system.kernel import start_time

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")


def nearest(sock: socket.socket) -> Json | None:
    """The process that asks, behind the command that speaks for it; None where it cannot be told."""
    try:
        line = peer_identity.ancestry(sock)[1:]
    except peer_identity.Unknown:
        return None
    found = next((one for one in line if one.comm not in SHELLS), None)
    return None if found is None else {"pid": found.pid, "started": found.started}


def alive(process: Json | None) -> bool:
    """Whether it is there; also where that is not known."""
    return process is None or start_time(process["pid"]) == process["started"]


def explained(item: Json) -> Json:
    """An item whose hook was ended: by its agent, which had its answer, or together with it."""
    if item.get("reason") != asks.LEFT:
        return item
    return {**item, "reason": asks.DECIDED if alive(item.get("process")) else asks.ASKER_ENDED}


class Askers:
    """`gone(ask)` is called once the process of an open item has ended."""

    def __init__(self, gone: Callable[[str], Awaitable[None]]) -> None:
        self._gone = gone
        self._handles: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def changed(self, item: Json) -> None:
        """An item is new, or over."""
        if item["state"] != "open":
            self._forget(item["id"])
        elif item.get("process") and item["id"] not in self._handles:
            self._watch(item["id"], item["process"])

    def _watch(self, ask: str, process: Json) -> None:
        try:
            handle = os.pidfd_open(process["pid"])
        except ProcessLookupError:
            self._end(ask)
            return
        except OSError as e:  # no descriptor is left: whoever answers is told, and the hook's own time ends it
            log.warning("the end of process %d is not heard: %s", process["pid"], e)
            return
        if start_time(process["pid"]) != process["started"]:  # the number is another's by now
            os.close(handle)
            self._end(ask)
            return
        self._handles[ask] = handle
        asyncio.get_running_loop().add_reader(handle, self._end, ask)

    def _end(self, ask: str) -> None:
        self._forget(ask)
        task = asyncio.ensure_future(self._gone(ask))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _forget(self, ask: str) -> None:
        handle = self._handles.pop(ask, -1)
        if handle >= 0:
            asyncio.get_running_loop().remove_reader(handle)
            os.close(handle)

    def close(self) -> None:
        for ask in list(self._handles):
            self._forget(ask)
        for task in self._tasks:
            task.cancel()


def left(item: Json, sample: Json) -> bool:
    """Whether the program has closed the dialog that the item is about: it said that it was blocked while the item was
    open (`blocked_at`), and says something else now."""
    says = asks.blocking(sample)
    return item.get("blocked_at") is not None and says != item["blocked_at"]
