"""Waiting for something to become true of a session: by events where the kernel has them, else by bounded samples.

Every wait can be resumed from the offset it returns, and ends when its caller goes away.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import re2

from ..model import limits
from ..model.errors import HoldfastError, invalid
from .observe import net
from .quiet import Silence
from .session import Session

Json = dict[str, Any]
Outcome = tuple[str, int, Json]
Checker = Callable[[Session, str], Awaitable[Outcome]]

SAMPLE_FIRST_S, SAMPLE_MAX_S = 0.025, 0.25  # invariant 11
_QUIET_DEFAULT_S = 2.0
_READ_BYTES = 1 << 20
WAITING = ("waiting_for_input", "waiting_for_secret", "menu", "at_prompt")


def parse(spec: str) -> tuple[str, str]:
    """`port=3000` -> ("port", "3000"), checked."""
    kind, _, value = spec.partition("=")
    if kind not in ("exit", "done", "input", "quiet", "port", "text"):
        raise invalid(
            f"cannot wait for {spec[:40]!r}", "exit, done=EXEC_ID, input, quiet[=S], port=N or text=REGEX"
        )
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


def pattern(text: str) -> Any:
    """A linear-time regular expression over bytes: none can run for ever."""
    if len(text) > limits.PATTERN_MAX:
        raise invalid(f"a pattern of {len(text)} characters", f"at most {limits.PATTERN_MAX}")
    options = re2.Options()
    options.max_mem = 8 << 20  # a pattern that needs more states than this is refused, not run
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1 if not text.isascii() else re2.Options.Encoding.UTF8
    try:
        return re2.compile(text.encode("utf-8", "surrogateescape"), options=options)
    except re2.error as e:
        raise invalid(
            f"{text[:80]!r} is not a regular expression: {e}", "RE2 syntax: no backreferences or lookaround"
        ) from None


class Waits:
    """One coroutine per kind; each returns (event, offset, detail)."""

    def __init__(self, observe: Callable[[Session], Awaitable[tuple[Json, Any]]], done: Checker) -> None:
        self._observe = observe
        self._checkers: dict[str, Checker] = {
            "exit": self._exit, "done": done, "quiet": self._quiet, "input": self._input, "port": self._port,
        }  # fmt: skip

    async def wait(self, session: Session, spec: str, start: int | None, timeout: float | None) -> Json:
        kind, value = parse(spec)
        compiled = pattern(value) if kind == "text" else None
        try:
            async with asyncio.timeout(timeout):
                while True:
                    while session.unresponsive:  # nobody can tell yet: it answers one day, or is found gone
                        await session.changed.wait()
                    link = session.link
                    try:
                        if compiled is not None:
                            event, offset, detail = await self._text(session, compiled, start)
                        else:
                            event, offset, detail = await self._checkers[kind](session, value)
                    except HoldfastError:
                        if session.link is link:
                            raise
                        continue  # the line to its keeper broke while that was asked: the next turn knows why
                    if event != "exit" or not session.unresponsive:
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
        while (link := session.link) is not None:
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
                detail = {"kind": activity.kind, "confidence": activity.confidence, "evidence": activity.evidence,
                          "prompt": activity.prompt}  # fmt: skip
                return "input", sample["output"]["end"], detail
        return _ended(session)

    async def samples(self, session: Session) -> AsyncIterator[tuple[Json, Any]]:
        """Look, then look again 25 to 250 ms later, sooner after output; ends with the session."""
        delay = SAMPLE_FIRST_S
        while session.link is not None:
            link = session.link
            try:
                sample, activity = await self._observe(session)
            except HoldfastError:
                if session.link is None:
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
        while session.link is not None:
            if any(found[1] == port for found in net.listeners().values()):
                status = await session.link.act("sample", quick=False)
                for row in net.ports(status["members"]):
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

    async def _text(self, session: Session, compiled: Any, start: int | None) -> Outcome:
        first, end = session.reader.bounds()
        at = first if start is None else start
        if at < 0:
            raise invalid(f"offset {at} is before the beginning", "offsets begin at 0")
        window, window_at = b"", at
        while True:
            for piece in session.reader.pieces(at, end):
                at = piece.end
                if piece.data is None:
                    window, window_at = b"", at
                    continue
                window += piece.data
                match = compiled.search(window)
                if match:
                    a, b = match.span()
                    text = window[a:b].decode("utf-8", "replace")
                    return (
                        "text",
                        window_at + b,
                        {"match": text, "start": window_at + a, "end": window_at + b},
                    )
                if len(window) > limits.TEXT_WINDOW_BYTES:
                    window_at += len(window) - limits.TEXT_WINDOW_BYTES
                    window = window[-limits.TEXT_WINDOW_BYTES :]
            if session.link is None:
                new_end = session.reader.bounds()[1]
                if new_end <= at:
                    return _ended(session)
                end = new_end
                continue
            grown = await session.link.grown(at)
            end = grown if grown >= 0 else session.reader.bounds()[1]


def _end(session: Session) -> int:
    return session.link.end if session.link is not None else session.reader.bounds()[1]


def _ended(session: Session) -> Outcome:
    from .views import exit_view

    return "exit", _end(session), {"state": session.state, "exit": exit_view(session.exit)}
