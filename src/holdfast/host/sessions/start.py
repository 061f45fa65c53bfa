"""Starting a session, and starting it again: the manifest on disk, then its keeper, once per request."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Callable
from typing import Any

from ...log.layout import end_on_disk
from ...model import ids, limits
from ...model.errors import HoldfastError
from ...model.names import refused
from ...system import cgroup, kernel
from ...system.atomic_files import sync_file, write_json
from ..isolation import sandbox
from . import late_start
from . import manifest as recipe
from .connect import LIMITS_DEFAULT, Lines
from .forwarded_paths import follow_links
from .keeper_link import KeeperLink
from .session import Session, ended_how, keeper_gone
from .state import Effect, Event, State
from .zygote import Zygote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .registry import Registry

Json = dict[str, Any]
Begun = Callable[[Session], None] | None

_CUT_JUMP = 1 << 32  # after a power loss the next offsets begin past anything that can have been seen


class Starts:
    """Starts of this host's sessions, under way or done."""

    def __init__(self, registry: Registry, lines: Lines, zygote: Zygote) -> None:
        self._registry, self._lines, self._zygote = registry, lines, zygote
        self._by_request: dict[str, asyncio.Task[Session]] = {}

    async def start(self, request: Json, actor: Json, bound_by: tuple[str, ...] = (), begun: Begun = None) -> Session:
        """Start what is asked for, once per request id however often it is asked. What is started from a session that
        others had their hands on is theirs as well, in every generation. `begun` hears of it once its program runs,
        while the manifest is still on its way to the disk: the journal's entry goes there beside it."""
        wanted = str(request.get("request") or ids.new("req_"))
        for session in self._registry.sessions.values():
            if session.manifest.get("request") == wanted:
                if session.manifest["started_by"] != actor["operator"]:
                    raise refused("that request was another operator's", "make one of your own")
                late_start.check(session)
                return session
        key = f"{actor['operator']} {wanted}"
        running = self._by_request.get(key)
        if running is None:
            running = asyncio.get_running_loop().create_task(
                self._start({**request, "request": wanted}, actor, bound_by, begun)
            )
            self._by_request[key] = running
            running.add_done_callback(lambda _: self._by_request.pop(key, None))
        return await asyncio.shield(running)

    async def _start(self, request: Json, actor: Json, bound_by: tuple[str, ...], begun: Begun) -> Session:
        registry, home = self._registry, self._registry.home
        if sum(s.live for s in registry.sessions.values()) >= limits.SESSIONS_MAX:
            raise HoldfastError("conflict", f"this host holds {limits.SESSIONS_MAX} live sessions", "stop some first")
        session_id = ids.new("ses_")
        folder = home.session(session_id)
        manifest = recipe.manifest(
            request, session_id, registry.names(), folder.links, actor, home.path, kernel.boot_id(), time.time()
        )
        view = sandbox.view_of(request, str(manifest["cwd"]), home)
        manifest["isolation"] = view.as_dict() if view else None
        manifest["bound_by"] = list(bound_by)
        registry.claim_name(str(manifest["name"]))
        os.mkdir(folder.path, 0o700)
        follow_links(folder.links, request.get("env") or {})
        session = registry.add(folder, manifest)
        try:
            await self._spawn(session, begun)
        except BaseException:
            if session.life is State.START_LATE or not await keeper_gone(session.folder, late_start.CALLED_OFF_S):
                raise  # it is told as late, or could not be ended: ours to find
            if session.live:
                self._lines.happened(session, ended_how(session))
            self._lines.happened(session, Event.REMOVE_ASKED)
            registry.sessions.pop(session_id, None)
            shutil.rmtree(folder.path, ignore_errors=True)
            raise
        return session

    async def _spawn(self, session: Session, begun: Begun = None) -> None:
        if Effect.ASK_ZYGOTE not in self._lines.happened(session, Event.START_ASKED):
            raise HoldfastError("conflict", f"{session.name} cannot be started now", f"hold status {session.id}")
        session.exit, session.failure = None, None
        try:
            # The former generation's keeper may still serve a slow reader, but not for long.
            await keeper_gone(session.folder, limits.LINGER_S + 1)
            await self._prepare(session)
            write_json(session.folder.manifest, session.manifest, durable=False)
            # A crash of ours cannot lose the manifest any more; against a power cut it is synced while the keeper
            # starts; begun before, because without a thread for it nothing starts. The answer waits for both.
            synced = asyncio.get_running_loop().run_in_executor(None, sync_file, session.folder.manifest)
            link, welcomed = await self._keeper(session)
            if welcomed:
                self._lines.happened(session, Event.WELCOMED, link)
            elif Effect.AWAIT_WELCOME in self._lines.happened(session, Event.DEADLINE):
                self._lines.background(late_start.expect(self._lines, session, link))
            try:
                if begun is not None:
                    begun(session)
                await synced
            except Exception:
                await late_start.take_back(session, link)
                raise
        except BaseException:
            if self._registry.doors is not None:
                self._registry.doors.shut(session)
            if session.life is State.STARTING:
                self._lines.happened(session, ended_how(session))
            raise
        finally:
            self._lines.happened(session, Event.START_ANSWERED)
            session.touch()
        late_start.check(session)

    async def _keeper(self, session: Session) -> tuple[KeeperLink, bool]:
        """Its keeper's first line, and whether it answered in time. A zygote that was killed takes requests that it has
        not read with it: then no keeper took the lock, and another zygote is asked."""
        link = KeeperLink(await self._zygote.keeper(session.folder.path, session.kind))
        link.hail(self._lines.hello(session))
        try:
            return link, await late_start.begins(self._lines, link)
        except HoldfastError:
            if self._zygote.pid is not None or _taken(session):
                raise
        link = KeeperLink(await self._zygote.keeper(session.folder.path, session.kind))
        link.hail(self._lines.hello(session))
        return link, await late_start.begins(self._lines, link)

    async def _prepare(self, session: Session) -> None:
        """What must be there before its program: the bounds that were asked for, and an isolated one's mounts."""
        asked = session.manifest["limits"] != LIMITS_DEFAULT
        leaves = await self._lines.leaf(session) if asked else []
        session.manifest["cgroup"] = leaves
        session.manifest["unenforced"] = cgroup.unheld(leaves, session.manifest["limits"]) if asked else []
        if session.isolated:
            await sandbox.prepare(session, self._registry.home)
            if self._registry.doors is not None:
                self._registry.doors.open(session)

    async def restart(self, session: Session, actor: Json | None) -> None:
        """A new generation of the same session; its offsets go on. Without an `actor` a policy wants it."""
        if session.live:
            raise HoldfastError("conflict", f"{session.name} is still running", "stop it first")
        for other in self._registry.sessions.values():
            if other is not session and other.live and other.name == session.name:
                raise HoldfastError("conflict", f"another session is running as {session.name!r}", "rename one of them")
        end = end_on_disk(session.folder.out)
        if session.life is not State.ENDED and session.manifest.get("boot") != kernel.boot_id():
            end = (end // _CUT_JUMP + 1) * _CUT_JUMP
        home = self._registry.home.path
        session.manifest["env"] = recipe.session_environment(
            session.manifest["env"], session.id, session.folder.links, session.kind, home
        )  # the home may have moved since
        if session.kind == "kernel":  # this installation's, which may have moved too
            session.manifest["command"] = recipe.recorder(session.manifest["kernel"]["spec"])
            session.manifest["main_env"] = recipe.recorder_environment(session.manifest["env"], os.environ)
        session.manifest.update(
            generation=session.manifest["generation"] + 1,
            offset=end,
            started_at=time.time(),
            boot=kernel.boot_id(),
            size=list(session.size),
            restarted_by=actor["operator"] if actor else None,
        )
        session.remember(reaped=False, stopped=False)
        await self._spawn(session)


def _taken(session: Session) -> bool:
    """Whether a keeper took this session: its lock comes before its program."""
    return os.path.exists(session.folder.keeper_lock)
