"""One session as the host knows it: its manifest, its state, its line to the keeper, and how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

from ...log.reader import LogReader
from ...model.errors import HoldfastError
from ...model.home import SessionFolder
from ...system.atomic_files import read_json, write_json
from ...system.kernel import lock_held
from ..kernel_events import KernelEvents
from . import notes, state
from .keeper_link import KeeperLink
from .state import Event, State

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .reach import Reach

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

_UNTOLD_S, _UNNAMED_S = 1.0, 0.05  # between two looks at a lock whose holder is known, and is not

UNKNOWN_EXIT: Json = {"code": None, "signal": None, "known": False, "at": None, "by": None}


def keeper_alive(folder: SessionFolder) -> bool:
    """Whether there is one. Where that cannot be looked at (no descriptor is left) nobody is called dead."""
    try:
        return lock_held(folder.keeper_lock)
    except OSError:
        return True


def keeper_named(folder: SessionFolder) -> list[tuple[int, int]]:
    """(pid, start time) of the keeper that wrote into its lock; none where that is not written yet."""
    facts = read_json(folder.keeper_lock) or {}
    pid, started = facts.get("pid"), facts.get("started")
    return [(pid, started)] if isinstance(pid, int) and isinstance(started, int) else []


async def keeper_gone(folder: SessionFolder, within_s: float) -> bool:
    """Whether its keeper ends in time: told by its pidfd, or by its folder while it has not named itself."""
    deadline = time.monotonic() + within_s
    with KernelEvents() as events:
        events.folder(folder.path)
        while True:
            named = events.ends_of(keeper_named(folder))
            if not keeper_alive(folder):
                return True
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            # A descriptor can have been refused, and a lock can be inherited for a moment by what a keeper forks.
            await events.wait(min(left, _UNTOLD_S if named else _UNNAMED_S))


class Session:
    """What lies in its folder, its state, and the link in states that have one. `changed` is set anew on every change.

    Only `Lines.happened` (connect.py) enters a state: what may follow what is in the table of state.py."""

    def __init__(
        self, folder: SessionFolder, manifest: Json, on_change: Callable[[str], None] = lambda session_id: None
    ) -> None:
        self.folder, self.manifest, self._on_change = folder, manifest, on_change
        self.life = State.NEW
        self.link: KeeperLink | None = None
        self.reader = LogReader(folder.out)
        self.changed = asyncio.Event()
        self.exit: Json | None = None
        self.ended_at: float | None = None
        self.controls: Json = {"holder": None, "kind": None, "name": None, "epoch": 0, "since": None}
        self.attached: list[Json] = []
        self.notes = notes.from_json(read_json(folder.host_state) or {})
        self.size: tuple[int, int] = tuple(manifest["size"])
        self.busy_exec: str | None = None
        self.reach: Reach | None = None  # the try to get a line
        self.failure: str | None = None  # why this generation never began
        self.spools = False  # its keeper records what is done to it; the host notes that itself where it does not
        self.applies_once = False  # its keeper knows a request that it has carried out
        self.wakers: set[asyncio.Future[None]] = set()  # of those who wait for more than this session's changes
        self.prompt: Json | None = None  # the shell's, as the last exec saw it
        self.typed_by_exec = 0  # the keeper's count of inputs after the last of ours
        self.leaves: list[str] = []  # cgroups that this host made for its program
        self._last_word: Json = {}  # of a keeper that ended in our hearing

    async def settled(self) -> None:
        """Until a start under way has succeeded or failed: nobody is told a state that is about to be false."""
        while self.life in state.SETTLING:
            await self.changed.wait()

    def move_to(self, life: State, link: KeeperLink | None = None) -> None:
        """Be in that state, on that line where it is new; a state without one lets go of it."""
        self.life = life
        self.link = (link or self.link) if life in state.HAS_LINE else None

    @property
    def id(self) -> str:
        return str(self.manifest["id"])

    @property
    def name(self) -> str:
        return str(self.manifest["name"])

    @property
    def kind(self) -> str:
        return str(self.manifest["kind"])

    @property
    def terminal(self) -> bool:
        """Whether it has a terminal: all but those on pipes."""
        return self.kind != "pipes"

    @property
    def enter(self) -> bytes:
        """What the Return key sends: a terminal turns it into the line's end, and on a pipe nothing does."""
        return b"\r" if self.terminal else b"\n"

    @property
    def command(self) -> list[str]:
        """What was asked for: of a kernel its kernelspec's command, which the recorder runs."""
        words: list[str] = (self.manifest.get("kernel") or self.manifest).get("argv") or self.manifest["command"]
        return words

    @property
    def isolated(self) -> bool:
        return self.manifest.get("isolation") is not None

    @property
    def hands(self) -> list[str]:
        """Operators other than the one it acts as who could type into this generation, or who had a hand in what it
        runs: it acts no wider than they."""
        kept = self.notes.hands or {}
        typed = kept.get("operators", []) if kept.get("generation") == self.manifest["generation"] else []
        return list(dict.fromkeys([*self.manifest.get("bound_by", []), *typed]))

    def touched_by(self, *operators: str) -> None:
        before = self.hands
        new = [o for o in dict.fromkeys(operators) if o != self.manifest["acts_as"] and o not in before]
        if new:
            self._keep(hands={"generation": self.manifest["generation"], "operators": [*before, *new]})

    @contextlib.contextmanager
    def touching(self, *operators: str) -> Iterator[None]:
        """Marked before it types, because the program may act on it at once; not marked where it was refused."""
        before = self.hands
        self.touched_by(*operators)
        try:
            yield
        except HoldfastError:
            new = {o for o in operators if o not in before}
            if new:
                left = [o for o in self.hands if o not in new]
                self._keep(hands={"generation": self.manifest["generation"], "operators": left})
            raise

    @property
    def live(self) -> bool:
        return self.life in state.LIVE

    @property
    def connected(self) -> bool:
        """Whether there is a line to its keeper; a keeper that is stopped does not answer on it."""
        return self.life in state.HAS_LINE

    @property
    def unreachable(self) -> bool:
        """Whether it lives, or its start may still happen, and there is no line to its keeper."""
        return self.life in state.UNREACHABLE

    @property
    def line(self) -> KeeperLink:
        """The line to its keeper, for callers that saw one a moment ago: a session can end between two steps."""
        if self.link is None:
            how = "does not answer" if self.unreachable else "has ended"
            raise HoldfastError("conflict", f"{self.name} {how}", f"hold status {self.name}")
        return self.link

    @property
    def end(self) -> int:
        """The end of its output as far as it is known here, without asking the keeper."""
        return self.link.end if self.link is not None else self.reader.bounds()[1]

    @property
    def keeper(self) -> int | None:
        """The pid of its keeper, which it told on its line."""
        return None if self.link is None else int(self.link.welcome.result()["keeper"])

    @property
    def silent(self) -> bool:
        """Whether it lives and its keeper does not answer: what is on disk is known of it, and not that this is all."""
        return self.life in state.SILENT

    @property
    def state(self) -> str:
        return state.public(self.life, self.notes.reaped)

    def load_ending(self) -> None:
        """How this generation ended, from its own record; without one the status is unknown, never 0."""
        record = self.ending()
        self.exit = record.get("exit") or dict(UNKNOWN_EXIT)
        self.failure = record.get("failure")
        self.ended_at = record.get("ended_at")

    def ending(self) -> Json:
        """This generation's record of its end, as far as there is one."""
        record = read_json(self.folder.exit) or {}
        if record.get("generation") != self.manifest["generation"] or not record.get("ended"):
            # On a full disk it is with the lock; where not even that could be written, the keeper's last word is left.
            kept = (read_json(self.folder.keeper_lock) or {}).get("ending") or {}
            found = [r for r in (self._last_word, kept, record) if r.get("generation") == self.manifest["generation"]]
            record = next((r for r in found if r.get("ended")), found[-1] if found else {})
        return record

    def hear(self, event: Json) -> None:
        kind = event.get("event")
        if kind in ("exit", "ended"):
            self.exit = event["exit"]
            if kind == "ended":
                self._last_word = {"exit": self.exit, "ended": True, "generation": self.manifest["generation"]}
        elif kind == "controls":
            self.controls = event["controls"]
        elif kind == "channels":
            self.attached = event["attached"]
        elif kind == "resize":
            cols, rows = event["size"]
            self.size = (cols, rows)
        self.touch()

    def learn(self, status: Json) -> None:
        """Take over what the keeper says of itself, when it is said: an event right behind it is newer."""
        if self.link is None:
            return  # it has ended since, and that is known better
        self.exit = status["exit"]
        self.controls, self.attached = status["controls"], status["attached"]
        self.size = tuple(status["size"])
        self.link.end = max(self.link.end, status["output"]["end"])

    def touch(self) -> None:
        """Wake whoever waits for a change of this session."""
        self.changed.set()
        self.changed = asyncio.Event()
        for waker in self.wakers:
            if not waker.done():
                waker.set_result(None)
        self._on_change(self.id)

    def remember(self, **facts: object) -> None:
        """Keep notes (stopped, reaped, restarts) beside the session; in memory where the disk takes nothing, so that a
        full disk keeps no one from stopping a program."""
        try:
            self._keep(**facts)
        except OSError as e:
            log.warning("what is known of %s is not on disk: %s", self.name, e.strerror)

    def _keep(self, **facts: object) -> None:
        self.notes = dataclasses.replace(self.notes, **facts)  # type: ignore[arg-type]
        self._on_change(self.id)
        write_json(self.folder.host_state, notes.to_json(self.notes), durable=False)


def ended_how(session: Session) -> Event:
    """For a keeper that is gone, or about to be: whether it left its final record."""
    return Event.FINAL_RECORD if session.ending().get("ended") else Event.KEEPER_GONE


def found(session: Session, alive: Event) -> Event:
    """What a look at its folder says: `alive` while its keeper holds its lock and has not written its final record;
    after that record a keeper serves only slow readers."""
    holds = keeper_alive(session.folder)  # before the record is read: it writes that while it holds the lock
    how = ended_how(session)
    return alive if holds and how is Event.KEEPER_GONE else how
