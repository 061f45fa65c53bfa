"""Operations that act on what runs in a session: typing, sizing, signals, and the controls themselves."""

from __future__ import annotations

import asyncio
import signal
from typing import Any, NamedTuple

from ...api.controls import Hand, Kill, Release, Resize, Send, Take
from ...model import ids, limits
from ...model.errors import HoldfastError, invalid
from .. import repeated_requests
from ..config import SettingsFile
from ..inbox.approval_requests import Approvals
from ..journal.journal import Journal
from ..journal.ledger import Ledger
from ..journal.session_entries import note, note_unless_kept, why_of
from ..operators.caller import Caller
from ..sessions import find
from ..sessions.keeper_link import KeeperLink
from ..sessions.registry import Registry
from ..sessions.session import Session
from ..typed_bytes import decoded
from .hand_over import HandOver, named, with_controls

Json = dict[str, Any]


class ControlParts(NamedTuple):
    """What the handlers here use of the host."""

    registry: Registry
    approvals: Approvals
    hand_over: HandOver
    settings: SettingsFile
    journal: Journal
    ledger: Ledger


@Send.answered
async def send(parts: ControlParts, caller: Caller, request: Send) -> Json:
    session = await find.found(parts.registry, request.session, caller)
    data = decoded(request.data) + (session.enter if request.enter else b"")
    pieces = range(0, len(data), limits.INPUT_BYTES_MAX)
    last = "eof" if request.eof else pieces[-1] if pieces else ""
    if not session.connected and await repeated_requests.carried_out(session, caller, request, last):
        return _sent(session, len(data), session.reader.bounds()[1], repeated=True)  # and it ended then
    session = await find.live(parts.registry, request.session, caller)
    link = session.line  # it may end by what is typed: then the line is gone, and this answer is still owed
    if not await repeated_requests.carried_out(session, caller, request, "" if pieces else last):
        shown = data + (b"\x04" if request.eof else b"")
        await parts.approvals.to_send(session, shown, request, caller, secret=request.secret)
    done = await _type_all(parts, session, link, data, pieces, request, caller) if pieces else {}
    repeated = bool(done.get("repeated"))
    if request.eof:
        done |= await link.act("end_input", why=why_of(request), **named(request, caller, "eof"))
        note_unless_kept(parts.journal, "end_input", session, caller, request)
        repeated = repeated or bool(done.get("repeated"))
    await parts.journal.written()
    return _sent(session, len(data), done.get("end", link.end), repeated=repeated)


async def _type_all(
    parts: ControlParts, session: Session, link: KeeperLink, data: bytes, pieces: range, request: Send, caller: Caller
) -> Json:
    """All of it, in order; what the keeper has had already it does not type again."""
    hidden = request.secret
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
        if done and not (done.get("repeated") and await _sent_before(parts.ledger, session, request)):
            note(
                parts.journal,
                "send",
                session,
                caller,
                request,
                epoch=done.get("epoch"),
                offset=done.get("end"),
                text=text,
                secret=hidden or None,
                asked=request.request,
            )
    return done


async def _sent_before(ledger: Ledger, session: Session, request: Send) -> bool:
    """Whether the host that died has written this send down."""
    query = "SELECT 1 FROM entries WHERE session = ? AND instr(body, ?)"
    mark = b'"asked":"%b"' % str(request.request).encode()
    row = await ledger.read(lambda db: db.execute(query, (session.id, mark)).fetchone())
    return row is not None


@Resize.answered
async def resize(parts: ControlParts, caller: Caller, request: Resize) -> Json:
    session = await find.live(parts.registry, request.session, caller)
    done = await session.line.act("resize", size=request.size, **{"as": caller.acting(request)})
    note_unless_kept(parts.journal, "resize", session, caller, request, size=request.size)
    return done


@Kill.answered
async def kill(parts: ControlParts, caller: Caller, request: Kill) -> Json:
    session = await find.found(parts.registry, request.session, caller)
    name = signal_name(request.signal or "TERM")
    told = {"session": session.id, "signal": name, "applied": True}
    if not session.connected and await repeated_requests.carried_out(session, caller, request):
        return {**told, "signalled": None, "target": request.target, "repeated": True}  # it ended of it
    session = await find.live(parts.registry, request.session, caller)
    await repeated_requests.carried_out(session, caller, request)  # the keeper knows, or it cannot be known
    about = {"signal": name, "target": request.target, "why": why_of(request)}
    done = await session.line.act("signal", **about, **named(request, caller))
    note_unless_kept(parts.journal, "signal", session, caller, request, signal=name, target=done.get("target"))
    await parts.journal.written()
    return {**told, "repeated": False, **done}


@Take.answered
async def take(parts: ControlParts, caller: Caller, request: Take) -> Json:
    """Take the controls: free ones, or an agent's. A human who holds them is asked first; `force` is for
    a human who does not wait for that."""
    session = await find.live(parts.registry, request.session, caller)
    why = why_of(request)
    if not request.force:
        wait_s = request.timeout or limits.TAKE_ASK_S
        await parts.approvals.ask_holder(session, caller, why, min(wait_s, limits.TAKE_ASK_S))
    about = {"takeover_max_s": parts.settings.current().takeover_s, "why": why}
    try:
        await repeated_requests.carried_out(session, caller, request)
        done = await session.line.act("take", force=True, insist=request.force, **about, **named(request, caller))
    except HoldfastError as e:
        raise await parts.approvals.or_request(session, caller, why, e) from None
    session.touched_by(*caller.everyone)
    epoch = done["controls"]["epoch"]
    facts = {"epoch": epoch, "flushed": done.get("flushed")}
    note_unless_kept(parts.journal, "take", session, caller, request, **facts)
    await parts.hand_over.recorded(session)
    return {"applied": True, "repeated": False, **with_controls(session, done)}


@Release.answered
async def release(parts: ControlParts, caller: Caller, request: Release) -> Json:
    session = await find.live(parts.registry, request.session, caller)
    await repeated_requests.carried_out(session, caller, request)  # the keeper knows, or it cannot be known
    done = await session.line.act("release", why=why_of(request), **named(request, caller))
    note_unless_kept(parts.journal, "release", session, caller, request, epoch=done["controls"]["epoch"])
    await parts.hand_over.recorded(session)
    return with_controls(session, done)


@Hand.answered
async def hand(parts: ControlParts, caller: Caller, request: Hand) -> Json:
    session = await find.live(parts.registry, request.session, caller)
    noted = (request.note or "")[: limits.WHY_MAX] or None
    whom = request.to or str((session.controls.get("from") or {}).get("operator") or "")
    if not whom and session.controls["holder"] == caller.operator:
        raise invalid("they were free when they were taken", f"say to whom, or: hold release {session.name}")
    if not whom:
        raise HoldfastError("conflict", f"{caller.name} does not hold the controls", f"hold who {session.name}")
    return await parts.hand_over.hand(session, whom, request, caller, noted)


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
