"""Operations that act on what runs in a session: typing, sizing, signals, and the controls themselves."""

from __future__ import annotations

import asyncio
import signal
import time
from typing import Any

from ...model import ids, limits
from ...model.errors import HoldfastError, invalid
from ...model.names import refused
from .. import repeated_requests
from ..base import decoded, number, why_of
from ..inbox.approval_requests import Approving
from ..observe import session_view
from ..operators.caller import scope_of
from ..sessions.session import Session

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..operators.caller import Caller
    from ..sessions.keeper_link import KeeperLink

Json = dict[str, Any]


class Acting(Approving):
    """send, resize, kill, take and release."""

    async def op_send(self, request: Json, caller: Caller) -> Json:
        session = await self._find(request, caller)
        data = (decoded(request.get("data")) or b"") + (session.enter if request.get("enter") else b"")
        pieces = range(0, len(data), limits.INPUT_BYTES_MAX)
        last = "eof" if request.get("eof") else pieces[-1] if pieces else ""
        if not session.connected and await repeated_requests.carried_out(session, caller, request, last):
            return _sent(session, len(data), session.reader.bounds()[1], repeated=True)  # and it ended then
        session = await self._live(request, caller)
        link = session.line  # it may end by what is typed: then the line is gone, and this answer is still owed
        if not await repeated_requests.carried_out(session, caller, request, "" if pieces else last):
            await self._approve_send(session, data, request, caller)
        done = await self._type_all(session, link, data, pieces, request, caller) if pieces else {}
        repeated = bool(done.get("repeated"))
        if request.get("eof"):
            done |= await link.act("end_input", why=why_of(request), **_named(request, caller, "eof"))
            self._note_unless_kept("end_input", session, caller, request)
            repeated = repeated or bool(done.get("repeated"))
        await self.journal.written()
        return _sent(session, len(data), done.get("end", link.end), repeated=repeated)

    async def _type_all(
        self, session: Session, link: KeeperLink, data: bytes, pieces: range, request: Json, caller: Caller
    ) -> Json:
        """All of it, in order; what the keeper has had already it does not type again."""
        hidden = bool(request.get("secret"))
        done: Json = {}
        text: str | None = None
        at = 0
        # A text in several pieces is one act: who loses the controls between two of them types no more.
        hold = f"snd_{repeated_requests.name_of(request) or ids.new('')}" if len(pieces) > 1 else None
        try:
            for at in pieces:
                with session.touching(*caller.everyone):
                    piece = data[at : at + limits.INPUT_BYTES_MAX]
                    name = repeated_requests.name_of(request, at)
                    who = caller.holding(request)
                    done = await link.input(piece, who, hold, what="send", why=why_of(request), request=name)
                    # A program asked for a secret; a keeper that does not say so is taken to mean yes.
                    hidden = hidden or bool(done.get("echo_off", True))
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
            if done and not (done.get("repeated") and await self._sent_before(session, request)):
                self._note(
                    "send",
                    session,
                    caller,
                    request,
                    epoch=done.get("epoch"),
                    offset=done.get("end"),
                    text=text,
                    secret=hidden or None,
                    asked=request.get("request"),
                )
        return done

    async def _sent_before(self, session: Session, request: Json) -> bool:
        """Whether the host that died has written this send down."""
        query = "SELECT 1 FROM entries WHERE session = ? AND instr(body, ?)"
        mark = b'"asked":"%b"' % str(request.get("request")).encode()
        row = await self.ledger.read(lambda db: db.execute(query, (session.id, mark)).fetchone())
        return row is not None

    async def op_resize(self, request: Json, caller: Caller) -> Json:
        session = await self._live(request, caller)
        done = await session.line.act("resize", size=request.get("size"), **{"as": caller.acting(request)})
        self._note_unless_kept("resize", session, caller, request, size=request.get("size"))
        return done

    async def op_kill(self, request: Json, caller: Caller) -> Json:
        session = await self._find(request, caller)
        name = signal_name(str(request.get("signal") or "TERM"))
        told = {"session": session.id, "signal": name, "applied": True}
        if not session.connected and await repeated_requests.carried_out(session, caller, request):
            return {**told, "signalled": None, "target": request.get("target"), "repeated": True}  # it ended of it
        session = await self._live(request, caller)
        await repeated_requests.carried_out(session, caller, request)  # the keeper knows, or it cannot be known
        done = await session.line.act(
            "signal", signal=name, target=request.get("target"), why=why_of(request), **_named(request, caller)
        )
        self._note_unless_kept("signal", session, caller, request, signal=name, target=done.get("target"))
        await self.journal.written()
        return {**told, "repeated": False, **done}

    async def op_take(self, request: Json, caller: Caller) -> Json:
        """Take the controls: free ones, or an agent's. A human who holds them is asked first, by whoever it is; `force`
        is for a human who does not wait for that."""
        session = await self._live(request, caller)
        insist = request.get("force") is True
        if not insist:
            wait_s = number(request.get("timeout"), "a timeout") or limits.TAKE_ASK_S
            await self._ask_holder(session, caller, why_of(request), min(wait_s, limits.TAKE_ASK_S))
        about = {"takeover_max_s": self.desk.settings.current().takeover_s, "why": why_of(request)}
        try:
            await repeated_requests.carried_out(session, caller, request)
            done = await session.line.act("take", force=True, insist=insist, **about, **_named(request, caller))
        except HoldfastError as e:
            raise await self._or_request(session, caller, why_of(request), e) from None
        session.touched_by(*caller.everyone)
        epoch = done["controls"]["epoch"]
        self._note_unless_kept("take", session, caller, request, epoch=epoch, flushed=done.get("flushed"))
        await self._recorded(session)
        return {"applied": True, "repeated": False, **_controls(session, done)}

    async def op_release(self, request: Json, caller: Caller) -> Json:
        session = await self._live(request, caller)
        await repeated_requests.carried_out(session, caller, request)  # the keeper knows, or it cannot be known
        done = await session.line.act("release", why=why_of(request), **_named(request, caller))
        self._note_unless_kept("release", session, caller, request, epoch=done["controls"]["epoch"])
        await self._recorded(session)
        return _controls(session, done)

    async def op_hand(self, request: Json, caller: Caller) -> Json:
        """The holder gives the controls to someone who may have them, with a note: unless told otherwise, back to whom
        they were taken from."""
        session = await self._live(request, caller)
        note = str(request.get("note") or "")[: limits.WHY_MAX] or None
        whom = str(request.get("to") or (session.controls.get("from") or {}).get("operator") or "")
        if not whom and session.controls["holder"] == caller.operator:
            raise invalid("they were taken from nobody", f"say to whom, or: hold release {session.name}")
        if not whom:
            raise HoldfastError("conflict", f"{caller.name} does not hold the controls", f"hold who {session.name}")
        return await self._hand(session, whom, request, caller, note)

    async def _hand(self, session: Session, whom: str, request: Json, caller: Caller, note: str | None) -> Json:
        to = self.operators.find(whom)
        if not self.operators.allows(to.id, "type", scope_of(session), time.time()):
            raise refused(f"{to.name} may not type in {session.name}", "grant it first: hold operator grant")
        await repeated_requests.carried_out(session, caller, request)
        about = {"to": to.actor, "note": note, "why": why_of(request)}
        done = await session.line.act("hand", **about, **_named(request, caller))
        session.touched_by(to.id)
        self._note_unless_kept("hand", session, caller, request, to=to.actor, note=note)
        await self._recorded(session)
        return _controls(session, done)

    async def _recorded(self, session: Session) -> None:
        """A change of the controls is acknowledged when the journal has it, whoever writes it down."""
        if session.spools:
            await self.daemon.ingest.fetch(session)
        await self.journal.written()


def _named(request: Json, caller: Caller, part: object = "") -> Json:
    """For whom a keeper is to act, and which request it is: one that was carried out is not carried out again."""
    name = repeated_requests.name_of(request, part)
    return {"as": caller.holding(request)} | ({} if name is None else {"request": name})


def _controls(session: Session, done: Json) -> Json:
    """What a keeper answered, with the controls as they are now where it was a repeat."""
    now = session.controls if done.get("repeated") else done["controls"]
    return {**done, "controls": session_view.controls_view(now)}


def _sent(session: Session, size: int, offset: int, *, repeated: bool) -> Json:
    return {"session": session.id, "sent": size, "offset": offset, "applied": True, "repeated": repeated}


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
