"""A backend's session as its runner needs it: how it stands, when it ends, what it said last."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Any

from ...client._async.host import AsyncHost, AsyncSession, plain_text
from ...model.errors import HoldfastError
from ...model.limits import STOP_GRACE_S, STORE_WAIT_S

Json = dict[str, Any]
_PAUSE_S = 0.25  # between two tries of a host that is being restarted
_LOOK_S = 1.0  # while waiting, a look at our own lease: no call, the heartbeat knows it
_TAIL_BYTES = 64 << 10  # of the output, for the classification: the session's log has all of it


async def patiently(call: Callable[[], Awaitable[Any]]) -> Any:
    """A call that bears repetition, while the host is away; as long as a store is waited for."""
    deadline = time.monotonic() + STORE_WAIT_S
    while True:
        try:
            return await call()
        except HoldfastError as e:
            if e.code != "host_gone" or time.monotonic() >= deadline:
                raise
        await asyncio.sleep(_PAUSE_S)


class BackendSession:
    """One session. It depends on nobody here."""

    def __init__(self, host: AsyncHost, id: str, name: str) -> None:
        self.host, self.id, self.name = host, id, name
        self._session = AsyncSession(host, id, name)

    async def status(self) -> Json | None:
        """As it is now; None if it was removed."""
        try:
            found: Json = await patiently(partial(self.host.call, "status", session=self.id))
            return found
        except HoldfastError as e:
            if e.code != "not_found":
                raise
            return None

    async def ended(self, left_s: float, leaving: asyncio.Event, still: Callable[[], None]) -> str:
        """`exited`, or `time_up` after so many seconds; `still` raises when it is no longer ours to wait."""
        waiting = asyncio.create_task(self._session.wait(exit=True, timeout=left_s))
        asked = asyncio.create_task(leaving.wait())
        try:
            while not waiting.done():
                await asyncio.wait({waiting, asked}, timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                if not waiting.done():
                    still()
            return "time_up" if waiting.result().event == "timeout" else "exited"
        except HoldfastError as e:
            if e.code != "not_found":
                raise
            return "exited"  # removed: nobody will ever know how it ended
        finally:
            for one in (waiting, asked):
                one.cancel()
            await asyncio.gather(waiting, asked, return_exceptions=True)

    async def end(self, why: str) -> Json:
        """End its whole tree, if there is any of it."""
        try:
            await patiently(partial(self._session.stop, STOP_GRACE_S, why=why))
        except HoldfastError as e:
            if e.code not in ("conflict", "not_found"):
                raise
        return {"session": self.id}

    async def tail(self, status: Json) -> str:
        end = int(status["output"]["end"])
        start = max(int(status["output"]["start"]), end - _TAIL_BYTES)

        async def read() -> bytes:
            return b"".join([chunk.data async for chunk in self._session.output(start, end=end)])

        return plain_text(await patiently(read))


async def started(host: AsyncHost, request: str, like: Json | None = None) -> list[Json]:
    """The sessions that this request started, or one derived from it: by what asked for them, never by a name, which
    may be somebody else's by now. `same` says whether one was started just like another request asks."""
    found: list[Json] = await patiently(partial(host.call, "started", started=request, like=like))
    return [one for one in found if not one["hidden"]]


async def unseen(host: AsyncHost, request: str, task: str, name: str) -> str | None:
    """What to do where this operator may not see the session that a request of a task started; None where it may, or
    where there is none."""
    if not any(one["hidden"] for one in await patiently(partial(host.call, "started", started=request))):
        return None
    me = (await patiently(host.whoami))["name"]
    return (
        f"its session was started by another operator, and {me} may not see it: a runner of theirs goes on with it, or"
        f" hold operator grant {me} --grant view,stop --session {name}; then hold task unblock {task}"
    )


async def find(host: AsyncHost, request: str) -> BackendSession | None:
    """The session that exactly this request started."""
    for one in await started(host, request):
        if one["request"] == request:
            return BackendSession(host, one["id"], one["name"])
    return None


async def end_all(host: AsyncHost, request: str, why: str) -> None:
    """End whatever still lives of what this request, or one derived from it, started."""
    for one in await started(host, request):
        if one["live"]:
            await BackendSession(host, one["id"], one["name"]).end(why)


def seconds(rfc3339: str) -> float:
    return datetime.fromisoformat(rfc3339).timestamp()
