"""Operations that act on what runs in a session: typing, sizing, signals, and the controls themselves."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Any

from ...model import ids, limits
from ...model.errors import HoldfastError, invalid
from ...model.names import refused
from .. import views
from ..identity import scope_of
from ..session import Session
from .approving import Approving
from .base import decoded, why_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..identity import Caller

Json = dict[str, Any]


class Acting(Approving):
    """send, resize, kill, take and release."""

    async def op_send(self, request: Json, caller: Caller) -> Json:
        session = await self._live(request, caller)
        link = session.link  # it may end by what is typed: then the line is gone, and this answer is still owed
        assert link is not None
        data = (decoded(request.get("data")) or b"") + (session.enter if request.get("enter") else b"")
        await self._approve_send(session, data, request, caller)
        hidden = bool(request.get("secret")) or await self._silent(session)
        done: Json = {}
        text: str | None = None
        at = 0
        # A text in several pieces is one act: who loses the controls between two of them types no more.
        hold = ids.new("snd_") if len(data) > limits.INPUT_BYTES_MAX else None
        try:
            for at in range(0, len(data), limits.INPUT_BYTES_MAX):
                with session.touching(*caller.everyone):
                    piece = data[at : at + limits.INPUT_BYTES_MAX]
                    done = await link.input(piece, caller.actor, hold, what="send", why=why_of(request))
            try:
                hidden = hidden or await self._silent(session)  # the program may have asked for a secret meanwhile
            except HoldfastError:
                hidden = True  # it ended meanwhile, and what it asked for cannot be known any more
            text = None if hidden else data[: limits.JOURNAL_TEXT_MAX].decode("utf-8", "replace")
        except HoldfastError as e:
            if not at:
                raise
            raise HoldfastError(e.code, f"the first {at} bytes were sent, then: {e.message}", e.hint) from None
        except asyncio.CancelledError:  # who leaves without waiting leaves an entry all the same
            done = done or {"end": link.end}
            raise
        finally:
            if hold is not None and not link.lost:
                link.tell("drop", hold=hold)
            if data and done:
                self._note("send", session, caller, request, epoch=done.get("epoch"), offset=done.get("end"), text=text,
                           secret=hidden or None)  # fmt: skip
        if request.get("eof"):
            await link.act("end_input", why=why_of(request), **{"as": caller.actor})
            self._note_unless_kept("end_input", session, caller, request)
        await self.journal.written()
        return {"session": session.id, "sent": len(data), "offset": done.get("end", link.end)}

    @staticmethod
    async def _silent(session: Session) -> bool:
        """Whether the terminal reads lines without echoing them, which is how programs ask for secrets."""
        if session.link is None or not session.terminal:
            return False
        sample = await session.link.act("sample", quick=True)
        tty = (sample.get("facts") or {}).get("tty") or {}
        return bool(tty.get("canonical")) and not tty.get("echo", True)

    async def op_resize(self, request: Json, caller: Caller) -> Json:
        session = await self._live(request, caller)
        assert session.link is not None
        done = await session.link.act("resize", size=request.get("size"), **{"as": caller.actor})
        self._note_unless_kept("resize", session, caller, request, size=request.get("size"))
        return done

    async def op_kill(self, request: Json, caller: Caller) -> Json:
        session = await self._live(request, caller)
        name = signal_name(str(request.get("signal") or "TERM"))
        assert session.link is not None
        done = await session.link.act(
            "signal", signal=name, target=request.get("target"), why=why_of(request), **{"as": caller.actor}
        )
        self._note_unless_kept("signal", session, caller, request, signal=name, target=done.get("target"))
        await self.journal.written()
        return {"session": session.id, "signal": name, **done}

    async def op_take(self, request: Json, caller: Caller) -> Json:
        session = await self._live(request, caller)
        assert session.link is not None
        try:
            done = await session.link.act("take", force=True, why=why_of(request), **{"as": caller.actor})
        except HoldfastError as e:
            raise await self._or_request(session, caller, why_of(request), e) from None
        session.touched_by(*caller.everyone)
        epoch = done["controls"]["epoch"]
        self._note_unless_kept("take", session, caller, request, epoch=epoch, flushed=done.get("flushed"))
        await self._recorded(session)
        return {**done, "controls": views.controls_view(done["controls"])}

    async def op_release(self, request: Json, caller: Caller) -> Json:
        session = await self._live(request, caller)
        assert session.link is not None
        done = await session.link.act("release", why=why_of(request), **{"as": caller.actor})
        self._note_unless_kept("release", session, caller, request, epoch=done["controls"]["epoch"])
        await self._recorded(session)
        return {**done, "controls": views.controls_view(done["controls"])}

    async def op_hand(self, request: Json, caller: Caller) -> Json:
        """The holder gives the controls to someone who may have them, with a note."""
        session = await self._live(request, caller)
        note = str(request.get("note") or "")[: limits.WHY_MAX] or None
        return await self._hand(session, str(request.get("to") or ""), request, caller, note)

    async def _hand(self, session: Session, whom: str, request: Json, caller: Caller, note: str | None) -> Json:
        assert session.link is not None
        to = self.operators.find(whom)
        if not self.operators.allows(to.id, "type", scope_of(session), time.time()):
            raise refused(f"{to.name} may not type in {session.name}", "grant it first: hold operator grant")
        done = await session.link.act("hand", to=to.actor, note=note, why=why_of(request), **{"as": caller.actor})
        session.touched_by(to.id)
        self._note_unless_kept("hand", session, caller, request, to=to.actor, note=note)
        await self._recorded(session)
        return {**done, "controls": views.controls_view(done["controls"])}

    async def _recorded(self, session: Session) -> None:
        """A change of the controls is acknowledged when the journal has it, whoever writes it down."""
        if session.spools:
            await self.daemon.ingest.fetch(session)
        await self.journal.written()


def signal_name(text: str) -> str:
    """`KILL`, `SIGKILL`, `kill` or `9` -> `SIGKILL`."""
    if text.isdigit():
        try:
            return signal.Signals(int(text)).name
        except ValueError:
            raise invalid(f"there is no signal {text[:10]}", "kill -l lists them") from None
    name = text.upper() if text.upper().startswith("SIG") else "SIG" + text.upper()
    if name not in signal.Signals.__members__:
        raise invalid(f"there is no signal {text[:20]!r}", "kill -l lists them")
    return name
