"""Cells of a kernel session: how one reaches the recorder, what became of it, and whose turn it is.

The job is a file, and the line that names it is typed as any other: the keeper checks the controls and writes down who.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from ...model import limits
from ...model.errors import HoldfastError, invalid
from ...model.sessions.activity import Activity
from ...system.process_tree import inner_pid
from ..observe.wait import SAMPLE_FIRST_S, SAMPLE_MAX_S
from ..sessions.jupyter_kernel import STARTING
from ..sessions.session import Session
from .command import Command
from .marks import mark
from .results_file import Results
from .shells.dialect import Wrapped

Json = dict[str, Any]
Observe = Callable[[Session, bool], Awaitable[tuple[Json, Activity]]]

CELL = ".cell"
_NOTHING: Json = {"outputs": [], "error": None, "execution_count": None, "outputs_omitted": None}


def wrap(command: Command, source: bytes) -> Wrapped:
    """What the recorder reads, and the line that tells it to: C-u drops what somebody left on the line, and C-d hands
    it over without a newline that would be echoed."""
    try:
        code = source.decode()
    except UnicodeDecodeError:
        raise invalid("code for a kernel is UTF-8 text", "put other bytes into a file") from None
    token = str(command.record["token"])
    job = {
        "exec_id": command.id,
        "token": token,
        "code": code,
        "begin": mark("b", token).decode(),
        "end": mark("e", token).decode(),
        "record": command.path(".rec"),
        "cell": command.path(CELL),
    }
    return Wrapped(json.dumps(job).encode(), b"\x15holdfast-cell " + command.id.encode() + b"\x04")


def kept(session: Session, exec_id: str, state: str) -> Json:
    """A cell's outputs as data. Empty while it runs, and when they are too old to be kept."""
    found = _read(session, exec_id)
    if state == "shell_ended" and found["error"] is None:  # the recorder had no time to say so itself
        found["error"] = {"ename": "KernelEnded", "evalue": "the kernel ended before this cell did", "traceback": []}
    return found


def _read(session: Session, exec_id: str) -> Json:
    path = os.path.join(session.folder.execs, exec_id + CELL)
    try:
        if os.path.getsize(path) > limits.CELL_FILE_BYTES_MAX:
            return dict(_NOTHING)
        with open(path, "rb") as f:
            found = json.load(f)
    except (OSError, ValueError):
        return dict(_NOTHING)
    return {key: found.get(key) for key in _NOTHING}


def forget(folder: str, results: Results) -> None:
    """Outputs of cells that are not remembered any more. In batches, as their records go."""
    with contextlib.suppress(OSError):
        names = [name for name in os.listdir(folder) if name.endswith(CELL)]
        if len(names) > limits.EXECS_KEPT * 2:
            known = results.all()
            for name in names:
                if name.removesuffix(CELL) not in known:
                    os.unlink(os.path.join(folder, name))


async def idle(session: Session, observe: Observe, deadline: float | None) -> Json:
    """Until the kernel waits for its next cell; what a shell's prompt is to a command. A free one is always found."""
    began, delay = time.monotonic(), SAMPLE_FIRST_S
    while session.connected and session.exit is None:
        try:
            sample, activity = await observe(session, True)
        except HoldfastError:
            await asyncio.sleep(0)  # the line to its keeper broke while we asked: the next turn knows that
            if session.connected:
                raise
            break
        if activity.kind == "at_prompt":
            return {"shell": "kernel", "pid": inner_pid(sample["pid"]), "seen": None, "typed": 0, "touched": False}
        now = time.monotonic()
        if activity.evidence == STARTING and now - began > limits.KERNEL_START_S:
            raise HoldfastError(
                "busy", f"the kernel of {session.name} does not answer", f"hold logs {session.name} shows what it said"
            )
        if deadline is not None and now > deadline:
            raise not_begun(session)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay):
                await session.line.grown(sample["output"]["end"])
        delay = min(delay * 2, SAMPLE_MAX_S)
    raise HoldfastError(
        "conflict", f"the kernel of {session.name} has ended", f"hold restart {session.name} starts an empty one"
    )


def not_begun(session: Session) -> HoldfastError:
    before = session.busy_exec or ""
    hint = f"hold wait {session.name} --for done={before}, or " if before.startswith("exe_") else ""
    return HoldfastError(
        "busy", f"{session.name} was busy all that time; this has not begun", hint + "a longer timeout waits its turn"
    )


class Turns:
    """Executions of one kernel come one after the other, in the order in which they were asked for."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[asyncio.Lock, list[None]]] = {}

    @contextlib.asynccontextmanager
    async def turn(self, session: Session, deadline: float | None) -> AsyncIterator[None]:
        """Inside, it is the caller's turn."""
        lock, waiting = self._lines.setdefault(session.id, (asyncio.Lock(), []))
        if len(waiting) >= limits.CELLS_WAITING_MAX:
            raise HoldfastError(
                "busy", f"{len(waiting)} executions wait for {session.name} already", "wait for some of them first"
            )
        waiting.append(None)
        try:
            await in_time(lock.acquire(), session, deadline)
            try:
                yield
            finally:
                lock.release()
        finally:
            waiting.pop()
            if not waiting:
                self._lines.pop(session.id, None)


async def in_time(work: Awaitable[object], session: Session, deadline: float | None) -> None:
    try:
        async with asyncio.timeout(None if deadline is None else max(0.0, deadline - time.monotonic())):
            await work
    except TimeoutError:
        raise not_begun(session) from None
