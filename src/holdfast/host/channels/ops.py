"""Operations that hand out a channel: a descriptor to a session's keeper, or to its log on disk."""

from __future__ import annotations

import asyncio
import base64
import os
from typing import Any, NamedTuple

from ...api.channels import Attach, Open, Snapshot
from ...model import ids
from ...model.errors import HoldfastError
from ...wire import keeper_frames
from ..config import SettingsFile
from ..inbox.approval_requests import Approvals
from ..observe import look, session_view
from ..operators.caller import Caller
from ..screen.emulators import Screens
from ..server.connection import Reply
from ..sessions import find, manifest
from ..sessions.forwarded_paths import follow_links
from ..sessions.keeper_link import dial_soon
from ..sessions.registry import Registry
from ..sessions.session import Session
from . import log_channel

Json = dict[str, Any]

_ENDING_S = 2.0  # a keeper that closed its door has told us why within that
_RESTORED_LINES = 500  # history drawn on attach: 18 ms of colour log, where all 2,000 lines would take 48


class ChannelParts(NamedTuple):
    """What the handlers here use of the host."""

    registry: Registry
    screens: Screens
    approvals: Approvals
    settings: SettingsFile


@Open.answered
async def open_(parts: ChannelParts, caller: Caller, request: Open) -> Any:
    session = await find.found(parts.registry, request.session, caller)
    if session.unreachable:
        await parts.registry.connect(session)
    if not request.read_only:
        parts.approvals.check_typing(session, caller)
    about = {"session": session.id, "name": session.name, "state": session.state, "kind": session.kind}
    heard = not request.sure or await _answers(session)
    fd = await _dial(parts, session, request, caller) if heard else None
    if fd is None:
        more = {"state": session.state, "exit": session.exit, "current": not session.silent}
        return Reply({"ok": {**about, **more}}, log_channel.serve(session))
    return Reply({"ok": about}, fd)


async def _answers(session: Session) -> bool:
    """Whether its keeper answers now: on a line to one that is stopped a reader would wait with nothing to see."""
    if session.connected and not session.silent:
        try:
            await session.line.act("status")
        except HoldfastError:
            pass  # it did not answer, or is gone; a refusal would be an answer
    return session.connected and not session.silent


async def _dial(parts: ChannelParts, session: Session, request: Open | Attach, caller: Caller) -> int | None:
    """A channel to the keeper, or None when it has ended; it may be ending this very moment."""
    while session.connected:
        changed = session.changed
        try:
            return await _channel(parts, session, request, caller)
        except OSError:
            try:
                await asyncio.wait_for(changed.wait(), _ENDING_S)
            except TimeoutError:
                break
    if not session.connected:
        return None
    raise HoldfastError("failed", f"{session.name} does not answer", "try again")


async def _channel(parts: ChannelParts, session: Session, request: Open | Attach, caller: Caller) -> int:
    rights, grants, until = caller.rights(session)
    if request.read_only:
        rights = ["view"]
    elif "type" in rights:  # before it can: what is typed on a channel is not seen here
        session.touched_by(*(caller.everyone if caller.kind != "human" else caller.bound_by))
    sock = await dial_soon(session.folder.keeper_socket)
    hello = {
        "v": keeper_frames.VERSION,
        "token": session.manifest["token"],
        "role": "operator",
        **caller.acting(request),
        "rights": rights,
        "grants": grants,
        "until": until,
        "via": request.via or "sdk",
        "client": request.client or ids.new(""),
        "attach": isinstance(request, Attach),
        "process": caller.holding(request).get("process"),
        "takeover_max_s": parts.settings.current().takeover_s,
        # A terminal shows its echo, an ACK only wakes its client twice; one far away sends again what got lost.
        "acks": not isinstance(request, Attach) or request.acks,
    }
    sock.sendall(keeper_frames.message(keeper_frames.HELLO, hello))
    return sock.detach()


@Attach.answered
async def attach(parts: ChannelParts, caller: Caller, request: Attach) -> Any:
    session = await (find.found if request.ended else find.live)(parts.registry, request.session, caller)
    if not request.read_only:
        parts.approvals.check_typing(session, caller)
        if caller.may("type", session):  # who can only watch controls nothing
            _follow(session, request.env)
    fd = await _dial(parts, session, request, caller)
    if fd is None and not request.snapshot:
        return _too_late(session)
    try:
        shown = await _shown_now(parts.screens, session, caller)
        return Reply({"ok": shown}, log_channel.serve(session) if fd is None else fd)
    except HoldfastError:
        if fd is not None:
            os.close(fd)
        if fd is None or session.live:
            raise
        if request.snapshot:
            return Reply({"ok": await _shown_now(parts.screens, session, caller)}, log_channel.serve(session))
        return _too_late(session)
    except BaseException:
        if fd is not None:
            os.close(fd)
        raise


async def _shown_now(screens: Screens, session: Session, caller: Caller) -> Json:
    about = {"session": session.id, "name": session.name, "kind": session.kind, "me": caller.actor}
    screen = await _screen_now(screens, session)
    return {**about, **screen, "controls": session_view.controls_view(session.controls)}


async def _screen_now(screens: Screens, session: Session) -> Json:
    """What draws the screen as it is at `offset`, and its size; of a program on pipes there is none."""
    end = await look.end(session)
    if not session.terminal:
        return {"offset": end, "restore": "", "size": list(session.size)}
    emulator = await screens.at(session, end)
    with emulator.lock:
        drawn = base64.b64encode(emulator.screen.restore(_RESTORED_LINES)).decode()
        return {"offset": emulator.offset, "restore": drawn, "size": list(emulator.screen.size)}


@Snapshot.answered
async def snapshot(parts: ChannelParts, caller: Caller, request: Snapshot) -> Json:
    return await _screen_now(parts.screens, await find.found(parts.registry, request.session, caller))


def _too_late(session: Session) -> Reply:
    """A program was quicker than the client that wants to see it: here is all that it said."""
    about = {"session": session.id, "name": session.name, "kind": session.kind, "offset": 0, "restore": ""}
    return Reply({"ok": about}, log_channel.serve(session))


def _follow(session: Session, given: dict[str, str] | None) -> None:
    """The latest controller's agent and display become the session's."""
    env = manifest.check_env(given or {})
    follow_links(session.folder.links, env)
    display = env.get("DISPLAY")
    if display and not str(display).startswith(":") and session.notes.display != display:
        session.remember(display=display)
