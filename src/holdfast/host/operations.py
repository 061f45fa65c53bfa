"""What clients may ask of the host: one method per operation, named as on the wire."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import time
from typing import Any

from ..model import ids, limits
from ..model.activity import Activity
from ..model.errors import HoldfastError, invalid
from ..system import kernel, tree
from ..wire import frames
from . import checks, ended, views
from .exec.quoting import quote
from .exec.run import Execs
from .link import dial
from .observe import net, proc
from .ops.work import WorkOps
from .policy import Policies
from .recording import recording
from .registry import follow_links
from .screens import Screens
from .server import Peer, Reply
from .session import Session
from .waits import Waits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .daemon import Daemon

Json = dict[str, Any]

_RIGHTS = ["view", "type", "resize", "signal", "stop"]
_DIAL_TRIES, _DIAL_PAUSE_S = 200, 0.01  # a keeper that closed its door has told us why within two seconds
_RESTORED_LINES = 500  # history drawn on attach: 18 ms of colour log, where all 2,000 lines would take 48
_STOP_EXTRA_S = 15.0  # past the grace time, for KILL to empty a large tree
_VIEWS_AT_ONCE = 32  # keepers asked in parallel by `ls`


class Operations(WorkOps):
    """Dispatch by name; everything is checked here before it reaches a keeper."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.registry = daemon.registry
        self.screens: Screens = daemon.screens
        self.policies: Policies = daemon.policies
        self.policies.observe = self._observe_fully
        self.execs = Execs(self._observe)
        self.waits = Waits(self._observe_fully, self.execs.done)

    def heard(self, session: Session, event: Json) -> None:
        self.execs.heard(session, event)

    async def handle(self, request: Json, peer: Peer) -> Reply:
        method = getattr(self, "op_" + str(request.get("op")), None)
        if method is None:
            raise HoldfastError(
                "usage", f"this host does not know {request.get('op')!r}", "upgrade: hold down, then again"
            )
        answer = await method(request, self._actor(request))
        return answer if isinstance(answer, Reply) else Reply({"ok": answer})

    def _actor(self, request: Json) -> Json:
        """Who acts. Until others are enrolled there is one operator: the OS user, a human."""
        me: Json = self.daemon.identity["operator"]
        wanted = request.get("operator")
        if wanted and wanted not in (me["name"], me["operator"]):
            raise HoldfastError(
                "not_allowed", f"no operator {str(wanted)[:60]!r} is enrolled here", "unset HOLDFAST_OPERATOR"
            )
        return me

    async def _observe(self, session: Session, quick: bool) -> tuple[Json, Activity]:
        return await views.observe(session, self.screens, quick=quick)

    async def _observe_fully(self, session: Session) -> tuple[Json, Activity]:
        return await views.observe(session, self.screens)

    async def _find(self, request: Json) -> Session:
        session = self.registry.find(str(request.get("session") or ""))
        await session.settled()
        return session

    async def _live(self, request: Json) -> Session:
        session = await self._find(request)
        if session.link is None and session.unresponsive:
            await self.registry.connect(session)
        if session.link is None:
            how = "does not answer" if session.unresponsive else f"is not running ({session.state})"
            raise HoldfastError("conflict", f"{session.name} {how}", f"hold status {session.name}")
        return session

    async def _view(self, session: Session, *, full: bool, members: list[int] | None = None) -> Json:
        await session.settled()
        return await views.view(session, self.daemon.identity["id"], self.screens, full=full, members=members)

    def _forest(self) -> dict[int, list[int]]:
        """The processes of every live session, by its keeper's pid, from one look at /proc."""
        keepers = [s.link.welcome.result()["keeper"] for s in self.registry.sessions.values() if s.link is not None]
        return tree.forest(keepers, kernel.registered(self.daemon.home.roles))

    # -- the host ----------------------------------------------------------------------------------------------

    async def op_ping(self, request: Json, actor: Json) -> Json:
        return {"host": self.daemon.about(), "operator": actor}

    async def op_down(self, request: Json, actor: Json) -> Json:
        if request.get("all"):
            every = [s.id for s in self.registry.sessions.values() if s.live or self._restarting(s)]
            stops = (self.op_stop({"session": one, "grace_s": request.get("grace_s")}, actor) for one in every)
            await asyncio.gather(*stops)
        asyncio.get_running_loop().call_soon(self.daemon.stopped.set)
        return {"host": self.daemon.about()}

    # -- looking -------------------------------------------------------------------------------------------------

    async def op_ls(self, request: Json, actor: Json) -> list[Json]:
        chosen = [
            s for s in self.registry.sessions.values() if request.get("all") or s.live or self._restarting(s)
        ]
        chosen.sort(key=lambda s: s.manifest["created_at"])
        gate = asyncio.Semaphore(_VIEWS_AT_ONCE)
        forest = self._forest()

        async def one(session: Session) -> Json:
            async with gate:
                keeper = session.link.welcome.result()["keeper"] if session.link is not None else 0
                view = await self._view(session, full=False, members=forest.get(keeper))
                if request.get("processes") and keeper in forest:
                    view["processes"] = proc.processes(forest[keeper])
                return view

        return list(await asyncio.gather(*(one(s) for s in chosen)))

    @staticmethod
    def _restarting(session: Session) -> bool:
        return bool(session.state_file.get("restart_at"))

    async def op_status(self, request: Json, actor: Json) -> Json:
        if request.get("session"):
            session = await self._find(request)
            if session.unresponsive and session.link is None:
                await self.registry.connect(session)
            return await self._view(session, full=True)
        return {"host": self.daemon.about(), "sessions": await self.op_ls({"all": True}, actor)}

    async def op_ports(self, request: Json, actor: Json) -> list[Json]:
        rows = []
        wanted = request.get("port")
        if wanted is not None and all(found[1] != wanted for found in net.listeners().values()):
            return []
        forest = self._forest()
        for session in list(self.registry.sessions.values()):
            if session.link is None:
                continue
            whose = {"session": session.id, "session_name": session.name}
            found = net.ports(forest.get(session.link.welcome.result()["keeper"], []))
            rows += [{**row, **whose} for row in found if wanted in (None, row["port"])]
        return rows

    async def op_screen(self, request: Json, actor: Json) -> Json:
        session = await self._find(request)
        if session.kind != "terminal":
            raise invalid(f"{session.name} runs on pipes, it has no screen", f"hold logs {session.name}")
        end = await self._end(session)
        emulator = await self.screens.at(session, end)
        with emulator.lock:
            screen = emulator.screen
            return {
                "session": session.id, "offset": end, "cols": screen.size[0], "rows": screen.size[1],
                "text": screen.text(), "cursor": {"x": screen.cursor[0], "y": screen.cursor[1],
                                                  "visible": screen.cursor_visible},
                "title": screen.title, "alternate": screen.alternate,
            }  # fmt: skip

    async def _end(self, session: Session) -> int:
        if session.link is None:
            return session.reader.bounds()[1]
        status = await session.link.act("status")
        session.learn(status)
        return int(status["output"]["end"])

    async def op_offset(self, request: Json, actor: Json) -> Json:
        """Where the output of a time began, and what there is."""
        session = await self._find(request)
        start, end = session.reader.bounds()
        at = session.reader.offset_at(int(float(request["since"]) * 1e6)) if request.get("since") else start
        return {
            "session": session.id, "name": session.name, "kind": session.kind,
            "start": start, "end": max(end, await self._end(session)), "at": at,
        }  # fmt: skip

    # -- channels ------------------------------------------------------------------------------------------------

    async def op_open(self, request: Json, actor: Json) -> Reply:
        """A channel to the session's output (and input): a descriptor to its keeper, or to its log on disk."""
        session = await self._find(request)
        if session.link is None and session.unresponsive:
            await self.registry.connect(session)
        about = {"session": session.id, "name": session.name, "state": session.state, "kind": session.kind}
        fd = await self._dial(session, request, actor, attach=False)
        if fd is None:
            return Reply({"ok": {**about, "state": session.state, "exit": session.exit}}, ended.serve(session))
        return Reply({"ok": about}, fd)

    async def _dial(self, session: Session, request: Json, actor: Json, *, attach: bool) -> int | None:
        """A channel to the keeper, or None when it has ended; it may be ending this very moment."""
        for _ in range(_DIAL_TRIES):
            if session.link is None:
                return None
            try:
                return self._channel(session, request, actor, attach=attach)
            except OSError:
                await asyncio.sleep(_DIAL_PAUSE_S)
        raise HoldfastError("failed", f"{session.name} does not answer", "try again")

    def _channel(self, session: Session, request: Json, actor: Json, *, attach: bool) -> int:
        rights = ["view"] if request.get("read_only") else _RIGHTS
        sock = dial(session.folder.keeper_socket)
        hello = {
            "v": frames.VERSION, "token": session.manifest["token"], "role": "operator", **actor, "rights": rights,
            "via": str(request.get("via") or "sdk"), "client": str(request.get("client") or ids.new("")),
            "attach": attach,
            "acks": not attach,  # a terminal shows its echo; an ACK would only wake its client twice
        }  # fmt: skip
        sock.sendall(frames.message(frames.HELLO, hello))
        return sock.detach()

    async def op_attach(self, request: Json, actor: Json) -> Reply:
        """What restores the screen, the offset it stands at, and the channel that goes on from there."""
        session = await (self._find(request) if request.get("ended") else self._live(request))
        if not request.get("read_only"):
            self._follow(session, request)
        fd = await self._dial(session, request, actor, attach=True)
        if fd is None:
            return self._too_late(session)
        try:
            end = await self._end(session)
            about: Json = {
                "session": session.id, "name": session.name, "kind": session.kind, "offset": end, "restore": "",
                "size": list(session.size), "controls": views.controls_view(session.controls), "me": actor,
            }  # fmt: skip
            if session.kind == "terminal":
                emulator = await self.screens.at(session, end)
                with emulator.lock:
                    about["offset"] = emulator.offset
                    about["restore"] = base64.b64encode(emulator.screen.restore(_RESTORED_LINES)).decode()
        except HoldfastError:
            os.close(fd)
            if session.live:
                raise
            return self._too_late(session)
        except BaseException:
            os.close(fd)
            raise
        return Reply({"ok": about}, fd)

    @staticmethod
    def _too_late(session: Session) -> Reply:
        """A program was quicker than the client that wants to see it: here is all that it said."""
        about = {"session": session.id, "name": session.name, "kind": session.kind, "offset": 0, "restore": ""}
        return Reply({"ok": about}, ended.serve(session))

    def _follow(self, session: Session, request: Json) -> None:
        """The latest controller's agent and display become the session's."""
        env = request.get("env") or {}
        follow_links(session.folder.links, env)
        display = env.get("DISPLAY")
        if display and not str(display).startswith(":") and session.state_file.get("display") != display:
            session.remember(display=display)

    # -- acting --------------------------------------------------------------------------------------------------

    async def op_run(self, request: Json, actor: Json) -> Json:
        session = await self.registry.start(request, actor)
        self.policies.watch(session)
        if request.get("brief"):
            return {"id": session.id, "name": session.name}
        return await self._view(session, full=True)

    async def op_send(self, request: Json, actor: Json) -> Json:
        session = await self._live(request)
        assert session.link is not None
        data = base64.b64decode(str(request.get("data") or ""))
        for at in range(0, len(data), limits.INPUT_BYTES_MAX):
            await session.link.input(data[at : at + limits.INPUT_BYTES_MAX], actor)
        if request.get("eof"):
            await session.link.act("end_input", **{"as": actor})
        return {"session": session.id, "sent": len(data), "offset": session.link.end}

    async def op_keys(self, request: Json, actor: Json) -> Json:
        """Whether the terminal wants application cursor keys, for clients that encode key names."""
        session = await self._live(request)
        if session.kind != "terminal":
            return {"app_cursor": False}
        emulator = await self.screens.at(session, await self._end(session))
        with emulator.lock:
            return {"app_cursor": bool(emulator.screen.modes().get("app_cursor"))}

    async def op_resize(self, request: Json, actor: Json) -> Json:
        session = await self._live(request)
        assert session.link is not None
        return await session.link.act("resize", size=request.get("size"), **{"as": actor})

    async def op_kill(self, request: Json, actor: Json) -> Json:
        session = await self._live(request)
        name = signal_name(str(request.get("signal") or "TERM"))
        assert session.link is not None
        done = await session.link.act("signal", signal=name, target=request.get("target"), **{"as": actor})
        return {"session": session.id, "signal": name, **done}

    async def op_stop(self, request: Json, actor: Json) -> Json:
        session = await self._find(request)
        self.policies.cancel_restart(session)
        session.remember(stopped=True)
        grace = _grace(request)
        if session.link is None and session.unresponsive:
            await self.registry.connect(session)
        if session.link is None:
            await self._stop_survivors(session, grace)
        else:
            await self._stop(session, actor, grace)
        return await self._view(session, full=False)

    async def _stop(self, session: Session, actor: Json, grace_s: float) -> None:
        session.remember(stopped=True)
        if session.link is None:
            return
        try:
            await session.link.act("stop", grace_s=grace_s, **{"as": actor})
        except HoldfastError:
            if session.live:
                raise  # else it ended by itself just now, which is what was wanted
        try:
            async with asyncio.timeout(grace_s + _STOP_EXTRA_S):
                while session.live:
                    await session.changed.wait()
        except TimeoutError:
            raise HoldfastError(
                "timeout", f"{session.name} did not end", f"hold ps {session.name} shows what is left"
            ) from None

    async def _stop_survivors(self, session: Session, grace_s: float) -> None:
        """A lost session's processes have no keeper to end them: the host does, by their mark."""
        deadline = time.monotonic() + grace_s
        left = views.survivors_of(session)
        for number in (signal.SIGTERM, signal.SIGKILL):
            for pid in left:
                try:
                    os.kill(pid, number)
                except (ProcessLookupError, PermissionError):
                    continue
            while (left := views.survivors_of(session)) and (
                number == signal.SIGKILL or time.monotonic() < deadline
            ):
                await asyncio.sleep(0.02)
                if time.monotonic() > deadline + _STOP_EXTRA_S:
                    return

    async def op_restart(self, request: Json, actor: Json) -> Json:
        session = await self._find(request)
        self.policies.cancel_restart(session)
        if session.live:
            session = await self._live(request)
            await self._stop(session, actor, _grace(request))
        elif session.state == "lost":
            await self._stop_survivors(session, limits.STOP_GRACE_S)
        await self.registry.restart(session, actor)
        session.remember(failures=0)
        self.policies.watch(session)
        return await self._view(session, full=False)

    async def op_rm(self, request: Json, actor: Json) -> Json:
        session = await self._find(request)
        self.policies.cancel_restart(session)
        self.screens.forget(session.id)
        self.registry.remove(session)
        return {"removed": session.id, "name": session.name}

    async def op_rename(self, request: Json, actor: Json) -> Json:
        session = await self._find(request)
        self.registry.rename(session, str(request.get("name") or ""))
        return {"id": session.id, "name": session.name}

    async def op_prune(self, request: Json, actor: Json) -> Json:
        """Remove ended sessions that are older than asked for."""
        older = float(request.get("older_than_s") or 0)
        removed = []
        for session in list(self.registry.sessions.values()):
            at = session.ended_at or (session.exit or {}).get("at") or session.manifest["started_at"]
            if session.live or self._restarting(session) or time.time() - at < older:
                continue
            if session.state == "lost" and views.survivors_of(session):
                continue
            self.screens.forget(session.id)
            self.registry.remove(session)
            removed.append({"id": session.id, "name": session.name})
        return {"removed": removed}

    async def op_take(self, request: Json, actor: Json) -> Json:
        session = await self._live(request)
        assert session.link is not None
        done = await session.link.act("take", force=True, **{"as": actor})
        return {**done, "controls": views.controls_view(done["controls"])}

    async def op_release(self, request: Json, actor: Json) -> Json:
        session = await self._live(request)
        assert session.link is not None
        done = await session.link.act("release", **{"as": actor})
        return {**done, "controls": views.controls_view(done["controls"])}

    async def op_recording(self, request: Json, actor: Json) -> Json:
        return recording(await self._find(request), request.get("from"))

    async def op_doctor(self, request: Json, actor: Json) -> list[Json]:
        return await checks.check(self.daemon, bool(request.get("deep")))

    # -- exec and wait -------------------------------------------------------------------------------------------

    async def op_exec(self, request: Json, actor: Json) -> Json:
        session = await self._live(request)
        words = request.get("words")
        if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
            raise invalid("no command to run", "hold exec SESSION -- COMMAND")
        encoded = [os.fsencode(w) for w in words]
        source = encoded[0] if len(encoded) == 1 else quote(encoded)
        timeout = request.get("timeout")
        command = await self.execs.start(session, source, actor, request.get("exec_id"))
        if request.get("start_only"):
            while command.record["start"] is None and command.running:
                await command.changed.wait()
            return self.execs.result(command)
        result = await self.execs.wait(command, None if timeout is None else float(timeout))
        return self._with_output(session, result)

    async def op_exec_result(self, request: Json, actor: Json) -> Json:
        session = await self._find(request)
        command = self.execs.find(session, str(request.get("exec_id") or ""))
        if request.get("wait"):
            timeout = request.get("timeout")
            await self.execs.wait(command, None if timeout is None else float(timeout))
        return self._with_output(session, self.execs.result(command))

    def _with_output(self, session: Session, result: Json) -> Json:
        """Small output comes along; large output is read by offset, past this process."""
        if result["start"] is not None and result["end"] - result["start"] <= limits.INLINE_OUTPUT_BYTES:
            pieces = list(session.reader.pieces(result["start"], result["end"]))
            data = b"".join(p.data for p in pieces if p.data is not None)
            result["raw"] = base64.b64encode(data).decode()
            result["gone"] = result["end"] - result["start"] - len(data)
        return result

    async def op_wait(self, request: Json, actor: Json) -> Json:
        session = await self._find(request)
        start, timeout = request.get("from"), request.get("timeout")
        return await self.waits.wait(
            session, str(request.get("for") or ""), None if start is None else int(start),
            None if timeout is None else float(timeout),
        )  # fmt: skip


def _grace(request: Json) -> float:
    asked = request.get("grace_s")
    return limits.STOP_GRACE_S if asked is None else max(0.0, float(asked))


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
