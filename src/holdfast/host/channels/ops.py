"""Operations that hand out a channel: a descriptor to a session's keeper, or to its log on disk."""

from __future__ import annotations

import asyncio
import base64
import os
from typing import Any

from ...model import ids
from ...model.errors import HoldfastError
from ...wire import keeper_frames
from ..inbox.approval_requests import Approving
from ..observe import session_view
from ..observe.look import end as end_of
from ..server.connection import Reply
from ..sessions import manifest
from ..sessions.forwarded_paths import follow_links
from ..sessions.keeper_link import dial
from ..sessions.session import Session
from . import log_channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..operators.caller import Caller

Json = dict[str, Any]

_DIAL_TRIES, _DIAL_PAUSE_S = 200, 0.01  # a keeper that closed its door has told us why within two seconds
_RESTORED_LINES = 500  # history drawn on attach: 18 ms of colour log, where all 2,000 lines would take 48


class Channels(Approving):
    """open and attach."""

    async def op_open(self, request: Json, caller: Caller) -> Reply:
        """A channel to the session's output (and input): a descriptor to its keeper, or to its log on disk."""
        session = await self._find(request, caller)
        if session.link is None and session.unresponsive:
            await self.registry.connect(session)
        if not request.get("read_only"):
            self._check_typing(session, caller)
        about = {"session": session.id, "name": session.name, "state": session.state, "kind": session.kind}
        heard = not request.get("sure") or await self._answers(session)
        fd = await self._dial(session, request, caller, attach=False) if heard else None
        if fd is None:
            more = {"state": session.state, "exit": session.exit, "current": not session.silent}
            return Reply({"ok": {**about, **more}}, log_channel.serve(session))
        return Reply({"ok": about}, fd)

    @staticmethod
    async def _answers(session: Session) -> bool:
        """Whether its keeper answers now: on a line to one that is stopped a reader would wait with nothing to see."""
        if session.link is not None and not session.link.silent:
            try:
                await session.link.act("status")
            except HoldfastError:
                pass  # it did not answer, or is gone; a refusal would be an answer
        return session.link is not None and not session.silent

    async def _dial(self, session: Session, request: Json, caller: Caller, *, attach: bool) -> int | None:
        """A channel to the keeper, or None when it has ended; it may be ending this very moment."""
        for _ in range(_DIAL_TRIES):
            if session.link is None:
                return None
            try:
                return self._channel(session, request, caller, attach=attach)
            except OSError:
                await asyncio.sleep(_DIAL_PAUSE_S)
        raise HoldfastError("failed", f"{session.name} does not answer", "try again")

    def _channel(self, session: Session, request: Json, caller: Caller, *, attach: bool) -> int:
        rights, grants, until = caller.rights(session)
        if request.get("read_only"):
            rights = ["view"]
        elif "type" in rights:  # before it can: nobody sees what is typed on a channel
            session.touched_by(*(caller.everyone if caller.kind != "human" else caller.bound_by))
        sock = dial(session.folder.keeper_socket)
        hello = {
            "v": keeper_frames.VERSION,
            "token": session.manifest["token"],
            "role": "operator",
            **caller.actor,
            "rights": rights,
            "grants": grants,
            "until": until,
            "via": str(request.get("via") or "sdk"),
            "client": str(request.get("client") or ids.new("")),
            "attach": attach,
            "process": caller.holding(request).get("process"),
            "takeover_max_s": self.desk.settings.current().takeover_s,
            # A terminal shows its echo, an ACK only wakes its client twice; one far away sends again what got lost.
            "acks": not attach or bool(request.get("acks")),
        }
        sock.sendall(keeper_frames.message(keeper_frames.HELLO, hello))
        return sock.detach()

    async def op_attach(self, request: Json, caller: Caller) -> Reply:
        """What restores the screen, the offset it stands at, and the channel that goes on from there."""
        session = await (self._find(request, caller) if request.get("ended") else self._live(request, caller))
        if not request.get("read_only"):
            self._check_typing(session, caller)
            if caller.may("type", session):  # who can only watch is nobody's controller
                self._follow(session, request)
        fd = await self._dial(session, request, caller, attach=True)
        if fd is None and not request.get("snapshot"):
            return self._too_late(session)
        try:
            return Reply(
                {"ok": await self._shown_now(session, caller)}, log_channel.serve(session) if fd is None else fd
            )
        except HoldfastError:
            if fd is not None:
                os.close(fd)
            if fd is None or session.live:
                raise
            if request.get("snapshot"):
                return Reply({"ok": await self._shown_now(session, caller)}, log_channel.serve(session))
            return self._too_late(session)
        except BaseException:
            if fd is not None:
                os.close(fd)
            raise

    async def _shown_now(self, session: Session, caller: Caller) -> Json:
        about = {"session": session.id, "name": session.name, "kind": session.kind, "me": caller.actor}
        screen = await self._screen_now(session)
        return {**about, **screen, "controls": session_view.controls_view(session.controls)}

    async def _screen_now(self, session: Session) -> Json:
        """What draws the screen as it is at `offset`, and its size; of a program on pipes there is none."""
        end = await end_of(session)
        if not session.terminal:
            return {"offset": end, "restore": "", "size": list(session.size)}
        emulator = await self.screens.at(session, end)
        with emulator.lock:
            drawn = base64.b64encode(emulator.screen.restore(_RESTORED_LINES)).decode()
            return {"offset": emulator.offset, "restore": drawn, "size": list(emulator.screen.size)}

    async def op_snapshot(self, request: Json, caller: Caller) -> Json:
        """The same for a client that has its channel already, and fell behind on it."""
        return await self._screen_now(await self._find(request, caller))

    @staticmethod
    def _too_late(session: Session) -> Reply:
        """A program was quicker than the client that wants to see it: here is all that it said."""
        about = {"session": session.id, "name": session.name, "kind": session.kind, "offset": 0, "restore": ""}
        return Reply({"ok": about}, log_channel.serve(session))

    def _follow(self, session: Session, request: Json) -> None:
        """The latest controller's agent and display become the session's."""
        env = manifest.check_env(request.get("env") or {})
        follow_links(session.folder.links, env)
        display = env.get("DISPLAY")
        if display and not str(display).startswith(":") and session.state_file.get("display") != display:
            session.remember(display=display)
