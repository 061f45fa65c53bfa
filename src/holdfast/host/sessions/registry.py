"""All sessions of this host: started, adopted, restarted, removed. The only place that makes or drops one."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import logging
import os
import shutil
import time
from collections.abc import Callable, Coroutine
from typing import Any

from ...log.layout import end_on_disk
from ...model import ids, limits
from ...model.errors import HoldfastError, invalid
from ...model.home import Home
from ...model.names import refused
from ...system import cgroup, kernel
from ...system.atomic_files import read_json, sync_file, write_json
from ..isolation import sandbox
from . import handed, late_start
from . import manifest as recipe
from .forwarded_paths import follow_links
from .keeper_link import KeeperLink, dial_soon
from .session import Session, keeper_alive
from .zygote import Zygote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..isolation.session_socket import Doors

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

_LIMITS_DEFAULT = {"pids": limits.PIDS_MAX, "memory": 0}
# A lock has no event. A keeper that comes or goes does so within milliseconds, or seconds on a bad day; one that is
# stopped is seldom, and a look at it costs a connection.
_LOOKS_S, _LOOK_S = (0.001, 0.005, 0.02, 0.1, 0.5), 2.0
_CUT_JUMP = 1 << 32  # after a power loss the next offsets begin past anything that can have been seen


class Registry:
    """Sessions by id. `on_event(session, event)` hears of everything a keeper tells, and of its death; `note(id)` that
    something happened to one."""

    def __init__(
        self, home: Home, zygote: Zygote, on_event: Callable[[Session, Json], None], note: Callable[[str], None]
    ) -> None:
        self.home, self._zygote, self._on_event, self._note = home, zygote, on_event, note
        self.sessions: dict[str, Session] = {}
        self._by_request: dict[str, asyncio.Task[Session]] = {}
        self.begun = 0  # keepers that have answered so far
        self.operator: Json = {}
        self.doors: Doors | None = None  # set by the daemon
        self._waiting: set[asyncio.Task[None]] = set()  # kept: the loop itself would let go of them
        self._later = concurrent.futures.ThreadPoolExecutor(1, "cgroup")  # of its own: nobody's fsync waits behind it

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    def find(self, wanted: str, visible: Callable[[Session], bool]) -> Session:
        """By name, id or the beginning of an id; what may not be seen does not exist."""
        exact = self.sessions.get(wanted)
        if exact is not None and visible(exact):
            return exact
        return self.sessions[ids.resolve(wanted, {s.id: s.name for s in self.sessions.values() if visible(s)})]

    def names(self, *, live: bool = False) -> set[str]:
        return {s.name for s in self.sessions.values() if s.live or not live}

    def _hello(self, session: Session) -> Json:
        return {"v": 1, "token": session.manifest["token"], "role": "host", "via": "host", **self.operator}

    # -- adopting --------------------------------------------------------------------------------------------

    async def adopt_all(self) -> None:
        """Find every session on disk, connect to the living keepers, and be truthful about the dead."""
        os.makedirs(self.home.sessions, mode=0o700, exist_ok=True)
        names = [n for n in os.listdir(self.home.sessions) if n.startswith("ses_")]
        gate = asyncio.Semaphore(64)  # connections opened at a time: far below any descriptor limit

        async def one(name: str) -> None:
            async with gate:
                await self._adopt(name)

        await asyncio.gather(*(one(n) for n in names))

    async def _adopt(self, name: str) -> None:
        folder = self.home.session(name)
        manifest = read_json(folder.manifest)
        if manifest is None or not recipe.is_manifest(manifest, name):
            log.warning("%s has no readable manifest: left alone", folder.path)
            return
        session = Session(folder, manifest, self._note)
        self.sessions[session.id] = session
        # In this order: who takes a start has its lock before it looks like a keeper, and before it says it is one.
        awaited = handed.unseen(session) and handed.on_its_way(self.home.roles, self._zygote.pid)
        if keeper_alive(folder):
            await self.connect(session)
            return
        session.load_ending()
        if awaited:
            session.starting, session.exit = True, None  # nobody is told a state that is about to be false
            still = lambda: handed.on_its_way(self.home.roles, self._zygote.pid)  # noqa: E731
            self._background(late_start.arrive(self, session, still))

    async def connect(self, session: Session) -> None:
        """Get the line to its keeper, once however many ask. Without one it is over, or it is looked at again."""
        if session.link is not None or session.coming:
            return
        if session.reaching is None:
            session.reaching = asyncio.get_running_loop().create_task(self._reach(session))
        await asyncio.shield(session.reaching)

    async def _reach(self, session: Session) -> None:
        known = session.unresponsive
        try:
            sock = await dial_soon(session.folder.keeper_socket)
            self.linked(session, await KeeperLink.open(sock, self._hello(session)))
            session.touch()  # what it did while nobody listened: who waits for that looks now
        except (HoldfastError, OSError) as e:
            if session.over():
                session.unresponsive = False
                if known:
                    self.buried(session)  # others may have waited for it
                else:
                    session.load_ending()
                return
            if not known:
                log.warning("keeper of %s does not answer: %s", session.name, e)
            self._look_again(session)
        finally:
            session.reaching = None

    def linked(self, session: Session, link: KeeperLink) -> None:
        """Its keeper has answered on this line."""
        self.begun += 1
        session.link, session.unresponsive = link, False  # before anything is heard on it, its end for instance
        session.learn(link.welcome.result())
        link.on_status = session.learn
        session.spools = "spool" in link.welcome.result()
        session.applies_once = bool(link.welcome.result().get("applies_once"))
        self._on_event(session, {"event": "linked"})
        link.begin(lambda event: self._heard(session, event), lambda: self._gone(session, link))

    def _heard(self, session: Session, event: Json) -> None:
        session.hear(event)
        self._on_event(session, event)
        if event.get("event") == "ended":  # its last record is written: what it still does is only for slow readers
            session.link = None
            self.buried(session)

    def _gone(self, session: Session, link: KeeperLink) -> None:
        """The keeper closed its line: it finished and left its record, or it died and did not."""
        if session.link is not link:
            return  # told before, by its `ended`
        session.link = None
        if session.over():
            self.buried(session)
        else:
            self._look_again(session)

    def _look_again(self, session: Session) -> None:
        """A keeper lives and has no line to us: it is on its way in or out, it dropped us, or it is stopped. Whoever
        waits for its session must hear how that goes on, so it is looked at until it answers or is gone."""
        session.unresponsive = True
        if session.settling is None:
            session.settling = asyncio.get_running_loop().create_task(self._settle(session))

    async def _settle(self, session: Session) -> None:
        try:
            for delay in itertools.chain(_LOOKS_S, itertools.repeat(_LOOK_S)):
                await asyncio.sleep(delay)
                if not session.unresponsive:
                    return  # somebody else's question was answered
                if session.over():
                    session.unresponsive = False
                    self.buried(session)
                    return
                await self.connect(session)
        finally:
            session.settling = None

    def buried(self, session: Session) -> None:
        session.load_ending()
        if session.leaves:  # the keeper removes them, unless they were made while it was ending
            self._beside(cgroup.remove, session.leaves)
            session.leaves = []
        session.attached, session.busy_exec = [], None
        session.controls = {**session.controls, "holder": None, "kind": None, "name": None, "since": None}
        session.touch()
        self._on_event(session, {"event": "gone", "state": session.state})

    # -- starting --------------------------------------------------------------------------------------------

    async def start(
        self, request: Json, actor: Json, bound_by: tuple[str, ...] = (), begun: Callable[[Session], None] | None = None
    ) -> Session:
        """Start what is asked for, once per request id however often it is asked. What is started from a session that
        others had their hands on is theirs as well, in every generation. `begun` hears of it once its program runs,
        while the manifest is still on its way to the disk: the journal's entry goes there beside it."""
        wanted = str(request.get("request") or ids.new("req_"))
        for session in self.sessions.values():
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

    async def _start(
        self, request: Json, actor: Json, bound_by: tuple[str, ...], begun: Callable[[Session], None] | None
    ) -> Session:
        if sum(s.live for s in self.sessions.values()) >= limits.SESSIONS_MAX:
            raise HoldfastError("conflict", f"this host holds {limits.SESSIONS_MAX} live sessions", "stop some first")
        session_id = ids.new("ses_")
        folder = self.home.session(session_id)
        manifest = recipe.manifest(
            request, session_id, self.names(), folder.links, actor, self.home.path, kernel.boot_id(), time.time()
        )
        view = sandbox.view_of(request, str(manifest["cwd"]), self.home)
        manifest["isolation"] = view.as_dict() if view else None
        manifest["bound_by"] = list(bound_by)
        self._claim_name(str(manifest["name"]))
        os.mkdir(folder.path, 0o700)
        follow_links(folder.links, request.get("env") or {})
        session = Session(folder, manifest, self._note)
        self.sessions[session_id] = session
        try:
            await self._spawn(session, begun)
        except BaseException:
            if session.coming or not await late_start.keeper_gone(session):
                raise  # it is told as late, or could not be ended: ours to find
            self.sessions.pop(session_id, None)
            shutil.rmtree(folder.path, ignore_errors=True)
            raise
        return session

    def _claim_name(self, name: str) -> None:
        """A live session keeps its name; an ended one of that name makes way under its id."""
        for session in self.sessions.values():
            if session.name != name:
                continue
            if session.live:
                raise HoldfastError(
                    "conflict",
                    f"a session named {name!r} is running",
                    f"hold attach {name}, or choose another name",
                )
            self.rename(session, f"{name}.{session.id[4:10]}")

    async def _spawn(self, session: Session, begun: Callable[[Session], None] | None = None) -> None:
        session.starting = True
        loop = asyncio.get_running_loop()
        try:
            await self._last_keeper_gone(session)
            asked = session.manifest["limits"] != _LIMITS_DEFAULT
            leaves = await loop.run_in_executor(self._later, self._leaf, session) if asked else []
            session.manifest["cgroup"] = leaves
            session.manifest["unenforced"] = cgroup.unheld(leaves, session.manifest["limits"]) if asked else []
            if session.isolated:
                await sandbox.prepare(session, self.home)
                if self.doors is not None:
                    self.doors.open(session)
            write_json(session.folder.manifest, session.manifest, durable=False)
            # A crash of ours cannot lose the manifest any more; against a power cut it is synced while the keeper
            # starts; begun before, because without a thread for it nothing starts. The answer waits for both.
            synced = loop.run_in_executor(None, sync_file, session.folder.manifest)
            link = KeeperLink(await self._zygote.keeper(session.folder.path, session.kind))
            session.ended, session.exit, session.failure = False, None, None
            link.hail(self._hello(session))
            if await late_start.begins(self, link):
                self.linked(session, link)
            else:
                session.coming = session.unresponsive = True
                self._background(late_start.expect(self, session, link))
            try:
                if begun is not None:
                    begun(session)
                await synced
            except Exception:
                await late_start.take_back(session, link)
                raise
            self.place(session)
        except BaseException:
            if self.doors is not None:
                self.doors.shut(session)
            raise
        finally:
            session.starting = False
            session.touch()
        late_start.check(session)

    @staticmethod
    def _leaf(session: Session) -> list[str]:
        """On a thread: the kernel takes milliseconds over a cgroup."""
        bounds = session.manifest["limits"]
        session.leaves = cgroup.make_leaf(session.id, bounds.get("pids", 0), bounds.get("memory", 0))
        return session.leaves

    def place(self, session: Session) -> None:
        """The bound that everybody has comes a moment after the start: nobody waits for it, and no program runs out of
        processes that quickly. One that was asked for holds before exec, in the program's own set-up."""
        if session.manifest["limits"] == _LIMITS_DEFAULT and session.link is not None:
            self._beside(self._place, session, session.link.welcome.result()["pid"])

    def _beside(self, work: Callable[..., None], *args: object) -> None:
        """On a thread. Where none can be had it is left undone: nobody's start or end depends on a cgroup."""
        try:
            self._later.submit(work, *args)
        except RuntimeError as e:
            log.warning("%s is left undone: %s", work.__name__, e)

    def _place(self, session: Session, pid: int) -> None:
        cgroup.join_tree(self._leaf(session), pid)
        if not session.live:  # it was quicker still
            cgroup.remove(session.leaves)

    @staticmethod
    async def _last_keeper_gone(session: Session) -> None:
        """The former generation's keeper may still serve a slow reader, but not for long."""
        deadline = time.monotonic() + limits.LINGER_S + 1
        while keeper_alive(session.folder) and time.monotonic() < deadline:  # noqa: ASYNC110  (a lock has no event)
            await asyncio.sleep(0.005)

    async def restart(self, session: Session, actor: Json | None) -> None:
        """A new generation of the same session; its offsets go on. Without an `actor` a policy wants it."""
        if session.live:
            raise HoldfastError("conflict", f"{session.name} is still running", "stop it first")
        for other in self.sessions.values():
            if other is not session and other.live and other.name == session.name:
                raise HoldfastError("conflict", f"another session is running as {session.name!r}", "rename one of them")
        end = end_on_disk(session.folder.out)
        if not session.ended and session.manifest.get("boot") != kernel.boot_id():
            end = (end // _CUT_JUMP + 1) * _CUT_JUMP
        session.manifest["env"] = recipe.session_environment(
            session.manifest["env"], session.id, session.folder.links, session.kind, self.home.path
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
        try:
            await self._spawn(session)
        except HoldfastError:
            if not session.coming:
                session.load_ending()
            raise

    # -- names and removal -----------------------------------------------------------------------------------

    def rename(self, session: Session, name: str) -> None:
        self.check_rename(session, name)
        session.manifest["name"] = name
        write_json(session.folder.manifest, session.manifest)
        session.touch()
        self._on_event(session, {"event": "renamed"})

    def check_rename(self, session: Session, name: str) -> None:
        ids.check_name(name)
        if any(s.name == name and s is not session for s in self.sessions.values()):
            raise HoldfastError("conflict", f"there is a session named {name!r} already", "choose another name")

    @staticmethod
    def check_ended(session: Session) -> None:
        if session.live:
            raise invalid(f"{session.name} is running", f"hold stop {session.name} first")

    def remove(self, session: Session) -> None:
        self.check_ended(session)
        self.sessions.pop(session.id, None)
        shutil.rmtree(session.folder.path, ignore_errors=True)
        if session.state == "lost":  # no keeper saw its last process end
            self._beside(cgroup.remove, cgroup.possible_leaves(session.id))
        session.touch()
        self._on_event(session, {"event": "removed"})

    def close(self) -> None:
        self._later.shutdown()  # the bounds of sessions, and what is left of them, are seen to before the host leaves
