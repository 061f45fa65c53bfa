"""A terminal emulator per session that needs one: it restores screens, answers queries, and follows at its leisure.

The emulator reads the log, not the wire. While a program floods, it lags and catches up in strides on a thread
of the lowest priority; whoever needs the screen now catches it up at once. Queries are answered only for
output that is new: never for what was there when this host began to follow.
"""

from __future__ import annotations

import asyncio
import base64
import concurrent.futures
import logging
import os
import re
import struct
import threading
import time
from typing import Any

from ...log.reader import LogReader
from ...log.text_stretches import plain_before
from ...model import limits
from ...model.errors import HoldfastError
from ...model.sessions.activity import Look
from ...system.atomic_files import write_bytes
from ...term.screen import Screen
from ..observe.quiet import output_age_s
from ..sessions.session import Session

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

_KEYFRAME_EVERY_BYTES = 4 << 20  # a restart replays at most this much, plus what came since
_ADDRESSING = re.compile(rb"\x1b\[\d+;\d+[Hf]")
_UPWARD = re.compile(rb"\x1b\[\d*[AF]")
# Offset, sizes seen there, and how it was drawn: `addressed_at`, `moved_at`, `_front`. An hf1 has the first two.
_KEYFRAME_HEADS = {b"hf1\n": struct.Struct(">QI"), b"hf2\n": struct.Struct(">QIQQqQQ")}
_KEYFRAME_MAGIC = b"hf2\n"
_CALM_S = 0.1  # a pause in the output; the emulator uses it to catch up
_LAG_BYTES_MAX = 32 << 20  # some 200 ms of emulation
_PASSED_BYTES_MIN = 1 << 20  # emulated in some 3 ms: less is not worth a look
_SCROLLBACK_LINES = 2000  # lines a restored terminal can scroll back; the log has the rest


class Emulator:
    """A screen and the offset up to which it has seen the output."""

    def __init__(self, session: Session) -> None:
        self.lock = threading.Lock()
        self.reader = LogReader(session.folder.out)
        self.keyframe_path = session.folder.keyframe
        self.addressed_at = 0  # the newest output that placed the main screen's cursor by row and column
        self.moved_at = 0  # and the newest that moved it up
        self._front = (0, 0, 0)  # foreground group, the offset before it came, the offset last looked at
        self.resizes_seen = 0  # changes of size at exactly `offset` that were applied already
        self.screen, self.offset = self._load(session)
        self.kept_at = self.offset
        self.live_from: int | None = None  # queries before this offset are history
        self._plain = (0, 0)  # a stretch of text that need not be emulated
        self._searched = 0  # up to where such a one was looked for

    def _load(self, session: Session) -> tuple[Screen, int]:
        first, end = self.reader.bounds()
        try:
            with open(self.keyframe_path, "rb") as f:
                data = f.read()
            head = _KEYFRAME_HEADS[data[:4]]
            offset, resizes, *drawn = head.unpack_from(data, 4)
            if first <= offset <= end:
                screen = Screen.from_keyframe(data[4 + head.size :])
                self.resizes_seen = resizes
                if drawn:
                    self.addressed_at, self.moved_at, self._front = drawn[0], drawn[1], tuple(drawn[2:])
                return screen, offset
        except (OSError, KeyError, ValueError, struct.error):
            pass
        return Screen(*session.size, scrollback_lines=_SCROLLBACK_LINES), first

    def look(self, group: int, end: int) -> tuple[Look, str]:
        """What the screen shows of the foreground job `group`, and the cursor's line. What was printed before the last
        look at another job is not its own."""
        with self.lock:
            known, began, looked = self._front
            if group != known:
                began = looked
            self._front = (group, began, end)
            screen = self.screen
            line, below = screen.around_cursor()
            # Behind a prompt there is text before the cursor and none below it: a line editor, also a moving one.
            inside = self.moved_at > began and (below or not line.strip())
            painted = inside or not screen.cursor_visible
            return Look(screen.alternate, self.addressed_at > began, painted, screen.pastes), line

    def advance(self, to: int, budget: int = 1 << 62) -> bytes:
        """Emulate up to `to`, or `budget` bytes of it; the replies due to live queries."""
        replies = b""
        with self.lock:
            began, live = self.offset, self.live_from
            if live is not None and self.offset < live < to:  # a piece of the log may hold both: history is cut off
                self._catch_up(live, budget)
            if (left := budget - (self.offset - began)) > 0:
                replies = self._catch_up(to, left)
            if self.offset - self.kept_at >= _KEYFRAME_EVERY_BYTES:
                self.keep()
        return replies

    def _catch_up(self, to: int, budget: int) -> bytes:
        """The same within its lock; text that what follows scrolls away is passed over, as most of a flood can be."""
        if to - max(self.offset, self._searched) > _PASSED_BYTES_MIN:
            lines = _SCROLLBACK_LINES + self.screen.size[1]
            self._plain, self._searched = plain_before(self.reader.folder, self.offset, to, lines), to
        begin, cut = self._plain
        if not self.offset < cut <= to:
            return self._emulate(to, budget)
        replies, before = b"", self.offset
        if begin > self.offset:
            replies = self._emulate(begin, budget)
        if self.offset == begin and self.screen.forgets:
            self.offset, self.resizes_seen = cut, 0
            return replies + self._emulate(to, budget)  # of which there is little more
        left = budget - (self.offset - before)
        return replies + self._emulate(to, left) if left > 0 else replies

    def _emulate(self, to: int, budget: int) -> bytes:
        """All of it before the live offset, or all of it from there on."""
        replies, known = b"", self.resizes_seen
        for piece in self.reader.pieces(self.offset, to, resizes=True):
            live = self.live_from is not None and piece.offset >= self.live_from
            if piece.size is not None:
                if known > 0:
                    known -= 1
                    continue
                self.resizes_seen += 1
                if piece.size != self.screen.size:
                    report = self.screen.resize(*piece.size)  # where the program asked to be told in-band
                    replies += report if live else b""
                continue
            known = self.resizes_seen = 0
            if piece.data is not None:
                answer = self.screen.feed(piece.data)
                if not self.screen.alternate:  # what an editor drew there says nothing of what came after it
                    self.addressed_at = piece.end if _ADDRESSING.search(piece.data) else self.addressed_at
                    self.moved_at = piece.end if _UPWARD.search(piece.data) else self.moved_at
                replies += answer if live else b""
            self.offset = piece.end
            budget -= piece.end - piece.offset
            if budget <= 0:
                break
        return replies

    def keep(self) -> None:
        """Write a keyframe, so that the next host begins here."""
        self.kept_at = self.offset
        try:
            place = (self.offset, self.resizes_seen, self.addressed_at, self.moved_at, *self._front)
            head = _KEYFRAME_MAGIC + _KEYFRAME_HEADS[_KEYFRAME_MAGIC].pack(*place)
            write_bytes(self.keyframe_path, head + self.screen.keyframe())
        except (OSError, ValueError, struct.error) as e:
            log.warning("no keyframe at %s: %s", self.keyframe_path, e)

    def close(self) -> None:
        with self.lock:
            self.screen.close()


class Screens:
    """The emulators that are warm; the least recently used ones make room."""

    def __init__(self) -> None:
        self._emulators: dict[str, Emulator] = {}
        self._followers: dict[str, asyncio.Task[None]] = {}
        self._now = concurrent.futures.ThreadPoolExecutor(2, "screen")
        self._later = concurrent.futures.ThreadPoolExecutor(1, "screen-later", initializer=_lowest_priority)

    def heard(self, session: Session, event: Json) -> None:
        if event.get("event") == "linked" and session.terminal:
            self._start_following(session)
        elif event.get("event") == "query":
            task = asyncio.get_running_loop().create_task(self._answer(session, event))
            task.add_done_callback(_log_failure)
        elif event.get("event") == "gone":
            self._unfollow(session.id)

    async def _answer(self, session: Session, event: Json) -> None:
        emulator = self._emulator(session, live_from=int(event["offset"]))
        await self._advance(session, emulator, int(event["end"]))

    def _emulator(self, session: Session, live_from: int | None = None) -> Emulator:
        emulator = self._emulators.pop(session.id, None)
        if emulator is None:
            emulator = Emulator(session)
            while len(self._emulators) >= limits.EMULATORS_MAX:
                self._evict(next(iter(self._emulators)))
        self._emulators[session.id] = emulator  # newest last
        if emulator.live_from is None and session.connected:
            emulator.live_from = session.end if live_from is None else live_from
        self._start_following(session)
        return emulator

    def _start_following(self, session: Session) -> None:
        running = self._followers.get(session.id)  # one that lost its line has ended, and there may be another line
        if session.connected and (running is None or running.done()):
            task = asyncio.get_running_loop().create_task(self._follow(session))
            task.add_done_callback(_log_failure)
            self._followers[session.id] = task

    async def _advance(self, session: Session, emulator: Emulator, to: int) -> None:
        loop = asyncio.get_running_loop()
        if to - emulator.offset < 4096 and not emulator.lock.locked():
            replies = emulator.advance(to)  # a few lines: quicker here than on a thread
        else:
            replies = await loop.run_in_executor(self._now, emulator.advance, to)
        await self._reply(session, replies)

    async def _reply(self, session: Session, replies: bytes) -> None:
        if replies and session.connected:
            try:
                await session.line.act("reply", data=base64.b64encode(replies).decode())
            except HoldfastError as e:
                log.info("no reply to %s: %s", session.name, e)

    async def _follow(self, session: Session) -> None:
        """Keep the lag small while output flows, on the spare time of the machine. A quiet session needs none."""
        loop = asyncio.get_running_loop()
        while session.connected:
            emulator = self._emulators.get(session.id)
            seen = emulator.offset if emulator is not None else session.reader.bounds()[0]
            end = await session.line.grown(seen + limits.EMULATOR_STRIDE_BYTES)
            if end < 0:
                return
            emulator = self._emulator(session)
            end = await self._calm(session, emulator)
            while emulator.offset + limits.EMULATOR_STRIDE_BYTES < end:
                before = emulator.offset
                replies = await loop.run_in_executor(self._later, emulator.advance, end, limits.EMULATOR_STRIDE_BYTES)
                await self._reply(session, replies)
                if emulator.offset == before:
                    break

    async def _calm(self, session: Session, emulator: Emulator) -> int:
        """Until a flood pauses, or the lag is as much as an attach can catch up with; the log's end then.

        Emulating costs a processor as much as the flood itself: nobody needs it while nobody looks.
        """
        while session.connected:
            try:
                status = await session.line.act("status")
            except HoldfastError:
                break
            end = int(status["output"]["end"])
            if output_age_s(status, time.time()) > _CALM_S or end - emulator.offset > _LAG_BYTES_MAX:
                return end
            await asyncio.sleep(_CALM_S)
        return emulator.offset

    async def at(self, session: Session, end: int) -> Emulator:
        """The emulator, having seen everything up to `end`."""
        emulator = self._emulator(session)
        await self._advance(session, emulator, end)
        return emulator

    async def near(self, session: Session, end: int) -> Emulator:
        """The emulator at `end` if that is close; else as it is: whoever floods is not waiting for a person."""
        emulator = self._emulator(session)
        if end - emulator.offset <= limits.EMULATOR_STRIDE_BYTES:
            await self._advance(session, emulator, end)
        return emulator

    def _unfollow(self, session_id: str) -> None:
        task = self._followers.pop(session_id, None)
        if task is not None:
            task.cancel()

    def _evict(self, session_id: str) -> None:
        emulator = self._emulators.pop(session_id, None)
        if emulator is not None:
            with emulator.lock:
                emulator.keep()
            emulator.close()

    def forget(self, session_id: str) -> None:
        self._unfollow(session_id)
        emulator = self._emulators.pop(session_id, None)
        if emulator is not None:
            emulator.close()

    def close(self) -> None:
        for session_id in list(self._followers):
            self._unfollow(session_id)
        for session_id in list(self._emulators):
            self._evict(session_id)
        self._now.shutdown(wait=False, cancel_futures=True)
        self._later.shutdown(wait=False, cancel_futures=True)


def _lowest_priority() -> None:
    """This thread only gets what nobody else wants of the processor (Linux: niceness is per thread)."""
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 19)
    except OSError:
        pass


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("screen: %r", task.exception())
