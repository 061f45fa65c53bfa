"""Requests under way, and their end when the grant they rest on is revoked or runs out."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable
from typing import Any

from ..model.limits import CLOCK_LOOK_S
from ..model.names import refused
from .admission import Admitted
from .operators.caller import Caller


class _Request:
    __slots__ = ("admitted", "caller", "ended", "task", "timer")

    def __init__(self, caller: Caller, admitted: Admitted, task: asyncio.Task[Any]) -> None:
        self.caller, self.admitted, self.task = caller, admitted, task
        self.ended = False
        self.timer: asyncio.TimerHandle | None = None


class Pending:
    """What runs now, and on whose behalf."""

    def __init__(self) -> None:
        self._requests: set[_Request] = set()

    async def run(self, caller: Caller, admitted: Admitted, work: Awaitable[Any]) -> Any:
        """Await `work` for as long as the caller may."""
        task = asyncio.current_task()
        assert task is not None
        request = _Request(caller, admitted, task)
        self._requests.add(request)
        self._arm(request)
        try:
            return await work
        except asyncio.CancelledError:
            if not request.ended:
                raise
            task.uncancel()
            words = f"{caller.name} may not {admitted.right or 'ask'} any more"
            raise refused(words, "the grant was revoked, or its time is over") from None
        finally:
            self._requests.discard(request)
            if request.timer is not None:
                request.timer.cancel()

    def _arm(self, request: _Request) -> None:
        """Look again when the next of the grants ends: another one may still allow it, until that ends too."""
        scope = request.admitted.scope
        until = request.caller.until(scope) if scope is not None else None
        if until is not None:
            delay = min(max(0.0, until - time.time()) + 0.001, CLOCK_LOOK_S)  # the clock may be set meanwhile
            request.timer = asyncio.get_running_loop().call_later(delay, self._due, request)

    def _due(self, request: _Request) -> None:
        if not self._check(request):
            self._arm(request)

    def recheck(self, gone: str = "") -> int:
        """End what may not go on; `gone` is an operator that was revoked altogether. How many were ended."""
        return sum(self._check(r, gone) for r in list(self._requests))

    @staticmethod
    def _check(request: _Request, gone: str = "") -> bool:
        allowed = gone not in request.caller.everyone and request.admitted.still()
        if not allowed and request.task is not asyncio.current_task():
            request.ended = True
            with contextlib.suppress(RuntimeError):
                request.task.cancel()
            return True
        return False
