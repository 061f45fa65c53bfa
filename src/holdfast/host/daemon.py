"""The daemon's life: one per home, adopt, serve, leave. Killing it at any point costs nothing but answers."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import os
import resource
import signal
import socket
import threading
import time
from typing import Any

from ..model import ids
from ..model.errors import HoldfastError
from ..model.home import Home
from ..model.times import rfc3339
from ..system import kernel, owner_trust, source_build
from ..system.atomic_files import read_json, write_json
from ..system.disk_reserve import Reserve
from ..version import VERSION
from .change_feed.feed import News
from .dispatch import Dispatch
from .events import SessionEvents
from .inbox.inbox_host import Desk
from .isolation.session_socket import Doors
from .journal.journal import Journal
from .journal.ledger import Ledger
from .journal.missed_entries import Recovery
from .journal.refusals import Refusals
from .journal.spool_ingest import Ingest
from .observe.look import Look
from .operators.browser_logins import Logins
from .operators.caller import Identities
from .operators.operators import Operators, os_user
from .operators.tokens import Tokens
from .screen.emulators import Screens
from .server.connection import Peer, Server, listen
from .server.read_budget import Reading
from .server.step_threads import Lanes
from .sessions.registry import Registry
from .sessions.restart_policy import Policies
from .sessions.zygote import Zygote
from .web.web_process import Web
from .work import store_setting

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

_LEAVING_S = 15.0  # a daemon without a socket is on its way in or out: either takes milliseconds, or this on a bad day
_LEAVING_PAUSE_S = 0.01


def take_lock(home: Home) -> int:
    """The lock of the home, held for the daemon's life; -1 when another daemon has it."""
    fd = os.open(home.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        return -1
    return fd


def take_turn(home: Home) -> int:
    """The lock, also when a daemon that is just leaving still has it; -1 when the one that has it serves, or will."""
    deadline = time.monotonic() + _LEAVING_S
    while (lock := take_lock(home)) < 0 and not os.path.exists(home.socket) and time.monotonic() < deadline:
        time.sleep(_LEAVING_PAUSE_S)
    return lock


class Daemon:
    """Everything the host is made of, wired together."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.started_at = time.time()
        self.source = source_build.folders()  # as it was loaded, or nearly: what comes later is another build
        threading.Thread(
            target=source_build.build_id, name="build", daemon=True
        ).start()  # 10 ms that no request waits for
        self.identity = self._identity()
        self.zygote = Zygote(home.roles)
        self.news = News()
        self.events = SessionEvents()
        self.registry = Registry(home, self.zygote, self.events.tell, self.news.note)
        self.registry.lines.operator = self.identity["operator"]
        self.reserve = Reserve(home.reserve)
        self.ledger = Ledger(home.ledger, self.reserve)
        self.operators = Operators(self.ledger, self.identity["id"], home.keys)
        signing = (self.operators.sign, self.operators.signed)
        self.journal = Journal(self.ledger, self.identity["id"], home.journal_head, *signing)
        self.refusals = Refusals(self.journal)
        self.ingest = Ingest(self.journal)
        self.identities = Identities(home, self.registry, self.operators, lambda: self.zygote.pid)
        self.tokens = Tokens(self.ledger, self.operators)
        self.logins = Logins(self.ledger, self.operators)
        self.web = Web(home)
        self.stores = store_setting.StoreSetting(home)
        self.screens = Screens()
        self.look = Look(self.registry, self.screens, self.identity["id"], home.roles)
        self.policies = Policies(self.registry, self.identity["operator"], self.journal)
        self.desk = Desk(self)
        self.dispatch = Dispatch(self)
        self.reading = Reading()
        self.doors = Doors(self.registry, self.identities, self.refusals, self.dispatch.dispatch, self.reading)
        self.registry.doors = self.doors
        self.events.listen(
            screens=self.screens.heard,
            commands=self.dispatch.rooms.heard,
            inbox=self.desk.heard,
            journal=self.ingest.heard,
            policies=self.policies.heard,
            session_sockets=self.doors.heard,
            feed=lambda session, event: self.news.heard(event.get("event")),
        )
        self.stopped = asyncio.Event()

    def _identity(self) -> Json:
        """The host's id and its first human, the OS user, made on first use and kept."""
        kept = read_json(self.home.host_file)
        if kept and "id" in kept and "operator" in kept:
            return kept
        made: Json = {
            "id": ids.new("hst_"),
            "operator": {"operator": ids.new("op_"), "kind": "human", "name": os_user()},
        }
        write_json(self.home.host_file, made)
        return made

    @property
    def confirmed(self) -> bool:
        """Whether all that its settings run may run: false in a home that was restored, until a person has looked."""
        return not os.path.lexists(self.home.restored)

    def about(self) -> Json:
        return {
            "id": self.identity["id"],
            "pid": os.getpid(),
            "version": VERSION,
            "build": source_build.build_id(),
            "started_at": rfc3339(self.started_at),
            "zygote_pid": self.zygote.pid,
            "home": self.home.path,
            "web": self.web.about(),
            **self.stores.about(),
            "confirmed": self.confirmed,
        }

    async def _know(self) -> None:
        """Operators and journal before sessions: what a keeper tells first is written down already."""
        await self.ledger.open()
        await self.operators.open(self.identity["operator"])
        await self.tokens.open()
        await self.logins.open()
        await self.journal.open()
        await self.registry.adopt_all()
        owed = Recovery(self.ledger, self.journal, self.operators, self.ingest)
        await owed.settle(list(self.registry.sessions.values()))
        for session in self.registry.sessions.values():
            if not session.live:  # it may have ended while no host was there to write it down
                self.ingest.later(session)

    def _foreign(self, peer: Peer) -> None:
        self.refusals.note("connect", "a peer of another uid", actor=None, session=None, pid=peer.pid, uid=peer.uid)

    async def run(self, ready_fd: int) -> None:
        clean_roles(self.home.roles)
        registration = kernel.register(self.home.roles)
        warming = self.zygote.warm_up()
        await self._know()
        await self.desk.begin()
        await self.dispatch.rooms.standing.standing.begin()
        lanes = Lanes(self.dispatch.rooms.work.lane_takes, self.dispatch.rooms.work.lane_answer)
        server = Server(
            listen(self.home.socket), self.dispatch.handle, self._foreign, reading=self.reading, lanes=lanes
        )
        with contextlib.suppress(HoldfastError):  # of a full disk: it is tried again before anything is done
            self.reserve.keep()
        try:
            about = {**self.about(), "root": source_build.ROOT, "folders": self.source}
            write_json(self.home.running_file, about, durable=False)
        except OSError as e:
            log.warning("%s is not written: %s", self.home.running_file, e.strerror)
        serving = asyncio.create_task(server.serve())
        self.policies.begin()
        self.web.begin()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told_to_stop, number)
        if ready_fd >= 0:
            os.write(ready_fd, b"ready")
            os.close(ready_fd)
            null = os.open(os.devnull, os.O_RDWR)
            os.dup2(null, 2)  # the starter read our complaints until now
            os.close(null)
        _tell_manager()
        log.info("host %s ready, %d sessions", self.identity["id"], len(self.registry.sessions))
        await self.stopped.wait()
        await asyncio.sleep(0)  # lets the answer to `down` go out first
        os.unlink(self.home.socket)
        await self.web.stop()
        server.close()
        serving.cancel()
        warming.cancel()
        self.doors.close()
        await self.dispatch.rooms.work.close()
        self.policies.close()
        self.dispatch.rooms.standing.standing.close()
        self.desk.close()
        self.screens.close()
        self.refusals.flush()
        await self.ingest.settled()
        await self.journal.close()
        self.ledger.close()
        self.zygote.stop()
        self.registry.close()
        for path in (registration, self.home.running_file):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)

    def _told_to_stop(self, number: int) -> None:
        if not self.stopped.is_set():  # who sent it the kernel does not tell
            with contextlib.suppress(HoldfastError):
                self.journal.note("down", session=None, actor=None, signal=signal.Signals(number).name)
        self.stopped.set()


def clean_roles(folder: str) -> None:
    """Registrations of the dead go. The last host's zygote may be taking its own away in this very moment."""
    for pid, started in kernel.registered(folder):
        if kernel.start_time(pid) != started:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, f"{pid}.{started}"))


def _tell_manager() -> None:
    """Tell the service manager that started us, where one did, that we serve."""
    address = os.environ.pop("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):  # its way to write an abstract address
        address = "\0" + address[1:]
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"READY=1", address)


def main(home: Home, ready_fd: int) -> int:
    """Run until told to stop. 0 also when a daemon was there already: the caller gets what it wanted."""
    try:
        os.makedirs(home.path, mode=0o700, exist_ok=True)
        owner_trust.check_home(home.path)
        lock = take_turn(home)
    except OSError as e:
        raise HoldfastError(
            "failed", f"cannot use {home.path}: {e.strerror}", "set HOLDFAST_HOME to a folder you may write"
        ) from None
    if lock < 0:
        if ready_fd >= 0:
            os.write(ready_fd, b"there")
        _tell_manager()
        return 0
    store_setting.begin(home, os.environ)
    logging.basicConfig(filename=home.log, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    os.chmod(home.log, 0o600)
    kernel.set_name("hold-host")
    # What is typed passes through this process and its keepers: no core of theirs. Programs get their starter's limit.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    # A line to each keeper, and one to each client: all that may be had, not the default that shells are given.
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)

    async def run() -> None:
        await Daemon(home).run(ready_fd)

    asyncio.run(run())
    logging.shutdown()
    return 0
