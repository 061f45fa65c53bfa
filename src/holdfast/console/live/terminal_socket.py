"""A session's terminal in a browser: its screen restored, then live; typing, sizing and the controls the other way.

Bytes come from the keeper's own channel, which the host opens and has no further part in: a dead host does not stop
them. A browser that does not show what it gets is waited for, then skipped ahead; the session never notices.
"""

from __future__ import annotations

import asyncio
import base64
from typing import Any

from ...client import keeper_messages
from ...client._async.host import AsyncHost
from ...client._io.async_socket import AsyncKeeperChannel
from ...model import limits
from ...model.errors import HoldfastError, invalid
from ...model.times import rfc3339
from . import messages_in
from .browser_socket import AGAIN, DONE, NOT_ALLOWED, BrowserSocket, SocketClosed
from .flow_control import FilteredStream, SendWindow

Json = dict[str, Any]

_TAKE, _RELEASE, _SEEN = 1, 2, 3  # ids of what this client asks of the keeper
# That input was typed is said so much later: behind the echo, which a person waits for, and once for a fast hand.
_TYPED_LATER_S = 0.02


class AttachQuery:
    """What a browser asked for when it came."""

    def __init__(
        self, session: str, at: int | None, client: str, read_only: bool, size: tuple[int, int] | None
    ) -> None:
        self.session, self.at, self.client, self.read_only, self.size = session, at, client, read_only, size


class TerminalViewer:
    """One terminal in one browser."""

    def __init__(self, line: BrowserSocket, host: AsyncHost, wanted: AttachQuery) -> None:
        self._line, self._host, self._wanted = line, host, wanted
        self._session, self._me, self._terminal = wanted.session, "", True
        self._keeper: AsyncKeeperChannel | None = None
        self._stream, self._window = FilteredStream(0), SendWindow(limits.VIEW_UNACKED_BYTES)
        self._printed = bytearray()  # of this wake-up, not sent yet
        self._room = asyncio.Event()
        self._typed: asyncio.Queue[bytes] = asyncio.Queue(limits.VIEW_INPUTS_MAX)
        self._taken, self._confirming = 0, asyncio.Event()  # the last input that the keeper took; it is to be said
        self._controls: Json = {}
        self._acted = False  # typed or took from here: then the terminal has this window's size
        self._size = wanted.size
        self._told_exit = False
        self._asking: asyncio.Future[None] | None = None  # another person is asked for the controls

    async def run(self) -> None:
        about, fd = await self._host.call_fd(
            "attach",
            session=self._wanted.session,
            read_only=self._wanted.read_only,
            via="web",
            acks=True,
            client=self._wanted.client,
            ended=True,
            snapshot=True,
        )
        self._keeper = AsyncKeeperChannel(fd)
        try:
            await self._begin(about)
            await self._line.run(self._watch(), self._listen(), self._type(), self._confirm())
        finally:
            if self._asking is not None:
                self._asking.cancel()
            self._keeper.close()

    # -- out ---------------------------------------------------------------------------------------------------------

    async def _begin(self, about: Json) -> None:
        self._session, self._me = about["session"], str((about.get("me") or {}).get("operator") or "")
        self._terminal = about["kind"] != "pipes"
        cols, rows = about["size"]
        await self._line.tell(
            "attached",
            session=about["session"],
            name=about["name"],
            session_kind=about["kind"],
            me=about.get("me"),
            offset=about["offset"],
            cols=cols,
            rows=rows,
        )
        at = self._wanted.at
        if at is not None and 0 <= about["offset"] - at <= limits.VIEW_SKIP_BYTES:
            self._stream = FilteredStream(at)
        else:
            await self._draw(about)
        self._controls = about["controls"]
        await self._tell_controls(self._controls["since"])
        await self._ask(keeper_messages.read(self._stream.at))

    async def _draw(self, about: Json) -> None:
        """The screen as it is at an offset; of a program on pipes the end of what it printed follows."""
        cols, rows = about["size"]
        at = about["offset"] if self._terminal else max(0, about["offset"] - limits.VIEW_BACK_BYTES)
        drawn = self._stream.begin(base64.b64decode(about["restore"]), at)
        facts = {"offset": at, "cols": cols, "rows": rows, "reset": True}
        await self._show(drawn, ("restore", facts))

    async def _show(self, data: bytes, first: tuple[str, Json] | None = None) -> None:
        after = self._stream.settled
        self._window.sent(after, len(data))
        await self._line.show(after, data, first)

    async def _watch(self) -> None:
        """The keeper's frames, as fast as the browser shows them."""
        assert self._keeper is not None
        hearing = keeper_messages.KeeperDecoder()
        while data := await self._keeper.receive():
            for message in hearing.feed(data):
                if isinstance(message, keeper_messages.Output):
                    self._printed += self._stream.feed(message.offset, message.data)
                else:
                    await self._flush()
                    await self._told(message)
            await self._flush()
            if self._window.full:
                await self._wait_for_room()
        raise SocketClosed(AGAIN, "the line to the session is gone")

    async def _flush(self) -> None:
        """What one wake-up brought goes out as one message."""
        if self._printed:
            data, self._printed = bytes(self._printed), bytearray()
            await self._show(data)

    async def _told(self, message: keeper_messages.Message) -> None:
        if isinstance(message, keeper_messages.Gap):
            if self._stream.gap(message.start, message.end):
                await self._line.tell("gap", **{"from": message.start, "to": message.end})
        elif isinstance(message, keeper_messages.Typed):
            self._taken = message.seq
            self._confirming.set()
        elif isinstance(message, keeper_messages.Answer):
            await self._answered(message.facts)
        elif isinstance(message, keeper_messages.Event):
            await self._event(message.facts)
        elif isinstance(message, keeper_messages.End):
            await self._ended()

    async def _confirm(self) -> None:
        """Up to which number input was typed; what is not confirmed is sent again on the next connection."""
        while True:
            await self._confirming.wait()
            await asyncio.sleep(_TYPED_LATER_S)
            await self._tell_taken()

    async def _tell_taken(self) -> None:
        if self._confirming.is_set():
            self._confirming.clear()
            await self._line.tell("typed", seq=self._taken)

    async def _wait_for_room(self) -> None:
        """The browser is behind. Once it has caught up, it goes on, or gets the screen as it is now."""
        while not self._window.roomy:
            self._room.clear()
            await self._room.wait()
        try:
            end = (await self._host.call("offset", session=self._session))["end"]
            if end - self._stream.at <= limits.VIEW_SKIP_BYTES or not self._terminal:
                return
            await self._draw(await self._host.call("snapshot", session=self._session))
        except HoldfastError as e:
            if e.code == "not_allowed":
                raise
            return  # the host is away: what the keeper sends is right all the same
        await self._ask(keeper_messages.read(self._stream.at))

    async def _answered(self, result: Json) -> None:
        error = result.get("error")
        if error is not None and result.get("id") != _SEEN:
            seq = result.get("seq")
            about = {key: error.get(key, "") for key in ("code", "message", "hint")}
            await self._line.tell("refused", **({} if seq is None else {"seq": seq}), error=about)

    async def _event(self, event: Json) -> None:
        kind = event.get("event")
        if kind in ("exit", "ended"):
            await self._tell_exit(event.get("exit"))
        elif kind == "resize":
            cols, rows = event["size"]
            await self._line.tell("size", cols=cols, rows=rows)
        elif kind == "controls":
            await self._moved(event)
        elif kind == "closed":
            raise SocketClosed(NOT_ALLOWED, f"the right to see this has ended: {event.get('reason')}")

    async def _moved(self, event: Json) -> None:
        """The controls have changed hands, or are free."""
        before, now = self._controls.get("holder"), event["controls"]
        giver = event.get("from") or {}
        self._controls = now
        await self._tell_controls(rfc3339(now["since"]))
        if now["holder"] != self._me:
            self._acted = False
        if before == self._me and now["holder"] not in (None, self._me) and giver.get("operator") != self._me:
            by = {"operator": now["holder"], "kind": now["kind"], "name": now["name"]}
            await self._line.tell("taken", by=by, note=event.get("note") or None)
        elif now["holder"] == self._me and giver:
            await self._line.tell("handed", by=giver, note=event.get("note") or None)
        if self._acted:
            await self._resize()

    async def _tell_controls(self, since: str | None) -> None:
        c = self._controls
        await self._line.tell(
            "controls",
            holder=c["holder"],
            holder_kind=c["kind"],
            name=c["name"],
            epoch=c["epoch"],
            since=since,
            mine=bool(c["holder"]) and c["holder"] == self._me,
            **{"from": c.get("from")},
        )

    async def _tell_exit(self, exit: Json | None) -> None:
        if not self._told_exit:
            self._told_exit = True
            shown = None if exit is None else {**exit, "at": _time(exit.get("at"))}
            await self._line.tell("exit", exit=shown)

    async def _ended(self) -> None:
        await self._tell_taken()
        if not self._told_exit:
            status = await self._host.call("status", session=self._session)
            await self._tell_exit(status["exit"])
        raise SocketClosed(DONE, "the session has ended")

    # -- in ----------------------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        while True:
            message = await self._line.listen()
            if isinstance(message, messages_in.Ack):
                self._window.acked(message.offset)
                self._room.set()
            elif isinstance(message, messages_in.Input):
                await self._input(message)
            elif isinstance(message, messages_in.Resize):
                self._size = (message.cols, message.rows)
                if self._acted and self._controls.get("holder") == self._me:
                    await self._resize()
            elif isinstance(message, messages_in.Take):
                self._acted = True
                await self._take(message)
            elif isinstance(message, messages_in.Release):
                await self._ask(keeper_messages.act(_RELEASE, "release", why=message.why or ""))
            elif isinstance(message, messages_in.Seen):
                await self._ask(keeper_messages.act(_SEEN, "seen", epoch=message.epoch))
            elif isinstance(message, messages_in.Ping):
                await self._line.tell("pong")

    async def _take(self, message: messages_in.Take) -> None:
        """From here, so that it is this client's. Another person is asked first, and the page goes on meanwhile."""
        held = self._controls
        if held.get("kind") == "human" and held["holder"] != self._me and not message.force:
            self._asking = self._asking or asyncio.ensure_future(self._ask_person(message))
            return
        take = keeper_messages.act(_TAKE, "take", force=True, insist=message.force, why=message.why or "")
        await self._ask(take)

    async def _ask_person(self, message: messages_in.Take) -> None:
        try:
            await self._host.call("take", session=self._session, why=message.why)
            await self._ask(keeper_messages.act(_TAKE, "take", force=True, why=message.why or ""))
        except HoldfastError as e:
            await self._line.tell("refused", error=e.as_dict())
        finally:
            self._asking = None

    async def _input(self, message: messages_in.Input) -> None:
        if len(message.data) > limits.INPUT_BYTES_MAX:
            error = invalid(f"an input of more than {limits.INPUT_BYTES_MAX} bytes", "send it in pieces")
            await self._line.tell("refused", seq=message.seq, error=error.as_dict())
            return
        self._acted = True
        await self._ask(keeper_messages.type_(message.seq, message.data), message.seq)

    async def _resize(self) -> None:
        if self._size is not None and self._terminal:
            await self._ask(keeper_messages.resize(*self._size))

    async def _ask(self, frame: bytes, seq: int | None = None) -> None:
        """In line for the keeper, which does not listen while its program does not read."""
        try:
            self._typed.put_nowait(frame)
        except asyncio.QueueFull:
            error = HoldfastError("busy", "the program does not read what was typed", "wait, or stop it")
            await self._line.tell("refused", **({} if seq is None else {"seq": seq}), error=error.as_dict())

    async def _type(self) -> None:
        assert self._keeper is not None
        try:
            while True:
                await self._keeper.send(await self._typed.get())
        except ConnectionError:
            await asyncio.Event().wait()  # whoever reads from the keeper hears why


def _time(at: object) -> object:
    return rfc3339(at) if isinstance(at, int | float) else at
