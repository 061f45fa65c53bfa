"""Waiting for something to become true of a session: by events where the kernel has them, else by bounded samples.

Every wait can be resumed from the offset it returns, and ends when its caller goes away.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from ...model.errors import HoldfastError, invalid
from ...model.patterns import Pattern, pattern
from ..sessions.session import Session
from . import ports
from .pattern_thread import Matching
from .quiet import Silence

Json = dict[str, Any]
Outcome = tuple[str, int, Json]
Checker = Callable[[Session, str], Awaitable[Outcome]]

SAMPLE_FIRST_S, SAMPLE_MAX_S = 0.025, 0.25  # invariant 11
_QUIET_DEFAULT_S = 2.0
WAITING = ("waiting_for_input", "waiting_for_secret", "menu", "at_prompt")


def parse(spec: str) -> tuple[str, str]:
    """`port=3000` -> ("port", "3000"), checked."""
    kind, _, value = spec.partition("=")
    if kind not in ("exit", "done", "input", "quiet", "port", "text"):
        raise invalid(f"cannot wait for {spec[:40]!r}", "exit, done=EXEC_ID, input, quiet[=S], port=N or text=REGEX")
    if kind in ("done", "port", "text") and not value:
        raise invalid(f"{kind} needs a value", f"--for {kind}=…")
    if kind == "port" and not (value.isdigit() and 0 < int(value) < 65536):
        raise invalid(f"{value[:40]!r} is not a port", "1 to 65535")
    if kind == "quiet" and value:
        try:
            if not 0 < float(value) < 1e6:
                raise ValueError
        except ValueError:
            raise invalid(f"{value[:40]!r} is not a number of seconds", "--for quiet=2") from None
    return kind, value


class Waits:
    """One coroutine per kind; each returns (event, offset, detail)."""

    def __init__(self, observe: Callable[[Session], Awaitable[tuple[Json, Any]]], done: Checker) -> None:
        self._observe = observe
        self._matching = Matching()
        self._checkers: dict[str, Checker] = {
            "exit": self._exit,
            "done": done,
            "quiet": self._quiet,
            "input": self._input,
            "port": self._port,
        }

    async def wait(
        self, session: Session, spec: str, start: int | None, timeout: float | None, operator: str = ""
    ) -> Json:
        """`operator` is who waits: searches for a text are shared out among them."""
        kind, value = parse(spec)
        compiled = pattern(value) if kind == "text" else None
        try:
            async with asyncio.timeout(timeout):
                while True:
                    while session.unreachable:  # not known yet: its keeper answers one day, or is found gone
                        await session.changed.wait()
                    link = session.link
                    try:
                        if compiled is not None:
                            event, offset, detail = await self._text(session, compiled, start, operator)
                        else:
                            event, offset, detail = await self._checkers[kind](session, value)
                    except HoldfastError:
                        if session.link is link:
                            raise
                        continue  # the line to its keeper broke while that was asked: the next turn knows why
                    if event != "exit" or not session.unreachable:
                        break  # else only the line to its keeper has ended
        except TimeoutError:
            event, offset, detail = "timeout", _end(session), {"waited_for": spec}
        return {"event": event, "offset": offset, "detail": detail}

    async def _exit(self, session: Session, _: str) -> Outcome:
        while session.exit is None and session.live:
            await session.changed.wait()
        return _ended(session)

    async def _quiet(self, session: Session, value: str) -> Outcome:
        wanted, silence = float(value or _QUIET_DEFAULT_S), Silence()
        while session.connected:
            link = session.line
            status = await link.act("status")
            link.end = max(link.end, status["output"]["end"])
            left = wanted - silence.seen(status, time.monotonic())
            if left <= 0:
                return "quiet", status["output"]["end"], {"seconds": wanted}
            try:
                async with asyncio.timeout(left):
                    await link.grown(link.end)
            except TimeoutError:
                continue
        return _ended(session)

    async def _input(self, session: Session, _: str) -> Outcome:
        async for sample, activity in self.samples(session):
            if activity.kind in WAITING:
                detail = {
                    "kind": activity.kind,
                    "confidence": activity.confidence,
                    "evidence": activity.evidence,
                    "prompt": activity.prompt,
                }
                return "input", sample["output"]["end"], detail
        return _ended(session)

    async def samples(self, session: Session) -> AsyncIterator[tuple[Json, Any]]:
        """Look, then look again 25 to 250 ms later, sooner after output; ends with the session."""
        delay = SAMPLE_FIRST_S
        while session.connected:
            link = session.line
            try:
                sample, activity = await self._observe(session)
            except HoldfastError:
                if not session.connected:
                    return
                raise
            yield sample, activity
            try:
                async with asyncio.timeout(delay):
                    await link.grown(sample["output"]["end"])
                delay = SAMPLE_FIRST_S
                await asyncio.sleep(0.005)  # the reader blocks a moment after it wrote its prompt
            except TimeoutError:
                delay = min(delay * 2, SAMPLE_MAX_S)

    async def _port(self, session: Session, value: str) -> Outcome:
        port, delay = int(value), SAMPLE_FIRST_S
        while session.connected:
            if any(found[1] == port for found in ports.listeners().values()):
                status = await session.line.act("sample", quick=False)
                for row in ports.ports(status["members"]):
                    if row["port"] == port:
                        return "port", status["output"]["end"], row
            if session.exit is not None and not session.live:
                break
            woken = session.changed
            try:
                async with asyncio.timeout(delay):
                    await woken.wait()
            except TimeoutError:
                delay = min(delay * 2, SAMPLE_MAX_S)
        return _ended(session)

    async def _text(self, session: Session, wanted: Pattern, start: int | None, operator: str) -> Outcome:
        """The first match from `start` on: each byte is searched once, and the end of a window with the next."""
        at, end = session.reader.bounds()
        at = at if start is None else start
        if at < 0:
            raise invalid(f"offset {at} is before the beginning", "offsets begin at 0")
        before = b""  # what a match may have begun in
        while True:
            if at >= end:
                grown = await session.line.grown(at) if session.connected else -1
                end = grown if grown >= 0 else session.reader.bounds()[1]
                if end <= at and not session.connected:
                    return _ended(session)
                continue
            async with self._matching.turn(operator):
                fresh, after, gap = _read(session, at, end, wanted.window_bytes - len(before))
                window, window_at = before + fresh, at - len(before)
                found, took_s = await self._matching.search(wanted, window) if fresh else (None, SAMPLE_FIRST_S)
            if found:
                a, b = found
                text = window[a:b].decode("utf-8", "replace")
                return "text", window_at + b, {"match": text, "start": window_at + a, "end": window_at + b}
            before, at = b"" if gap else window[-wanted.span_bytes :], after
            await asyncio.sleep(took_s)  # as long again: what is printed meanwhile is searched together


def _read(session: Session, at: int, end: int, most: int) -> tuple[bytes, int, bool]:
    """Up to `most` bytes of output from `at`, the offset to go on from, and whether that is behind a gap."""
    parts: list[bytes] = []
    for piece in session.reader.pieces(at, min(end, at + most)):
        at = piece.end
        if piece.data is None:
            return b"".join(parts), at, True
        parts.append(piece.data)
    return b"".join(parts), at, False


def _end(session: Session) -> int:
    return session.end


def _ended(session: Session) -> Outcome:
    from .session_view import exit_view

    return "exit", _end(session), {"state": session.state, "exit": exit_view(session.exit)}
