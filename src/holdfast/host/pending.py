"""Requests under way, and their end when the grant they rest on is revoked or runs out."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable
from typing import Any

from ..model.names import refused
from .identity import Caller
from .session import Session


class _Request:
    __slots__ = ("caller", "ended", "session", "task", "verb")

    def __init__(self, caller: Caller, verb: str, session: Session | None, task: asyncio.Task[Any]) -> None:
        self.caller, self.verb, self.session, self.task = caller, verb, session, task
        self.ended = False


class Pending:
    """What runs now, and on whose behalf."""

    def __init__(self) -> None:
        self._requests: set[_Request] = set()

    async def run(self, caller: Caller, verb: str, session: Session | None, work: Awaitable[Any]) -> Any:
        """Await `work` for as long as the caller may."""
        task = asyncio.current_task()
        assert task is not None
        request = _Request(caller, verb, session, task)
        self._requests.add(request)
        timer = self._timer(request)
        try:
            return await work
        except asyncio.CancelledError:
            if not request.ended:
                raise
            task.uncancel()
            words = f"{caller.name} may not {verb or 'ask'} any more"
            raise refused(words, "the grant was revoked, or its time is over") from None
        finally:
            self._requests.discard(request)
            if timer is not None:
                timer.cancel()

    def _timer(self, request: _Request) -> asyncio.TimerHandle | None:
        until = request.caller.rights(request.session)[2] if request.session is not None else None
        if until is None:
            return None
        return asyncio.get_running_loop().call_later(max(0.0, until - time.time()) + 0.001, self._check, request)

    def recheck(self, gone: str = "") -> int:
        """End what may not go on; `gone` is an operator that was revoked altogether. How many were ended."""
        return sum(self._check(r, gone) for r in list(self._requests))

    @staticmethod
    def _check(request: _Request, gone: str = "") -> bool:
        caller = request.caller
        allowed = gone not in (caller.operator, *caller.bound_by)
        if allowed and request.verb:
            allowed = caller.may(request.verb, request.session)
        if not allowed and request.task is not asyncio.current_task():
            request.ended = True
            with contextlib.suppress(RuntimeError):
                request.task.cancel()
            return True
        return False
