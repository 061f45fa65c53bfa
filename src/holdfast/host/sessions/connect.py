"""The host's lines to its keepers, and what their news does to a session: the one place that moves a session on."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from ...model import limits
from ...model.home import Home
from ...system import cgroup
from . import late_start, state
from .keeper_link import KeeperLink
from .reach import Reach
from .session import Session, found
from .state import Effect, Event, State
from .zygote import Zygote

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

LIMITS_DEFAULT = {"pids": limits.PIDS_MAX, "memory": 0}


class Lines:
    """`on_event(session, event)` hears what keepers tell, and `linked` and `gone`."""

    def __init__(self, home: Home, zygote: Zygote, on_event: Callable[[Session, Json], None]) -> None:
        self._home, self._zygote, self.on_event = home, zygote, on_event
        self.begun = 0  # keepers that have answered so far
        self.welcomed = asyncio.Event()  # set, and made anew, when one does
        self.operator: Json = {}
        self._waiting: set[asyncio.Task[None]] = set()  # kept: the loop itself would let go of them
        self._later = concurrent.futures.ThreadPoolExecutor(1, "cgroup")  # of its own: no fsync waits behind it
        self.effects: dict[Effect, Callable[[Session], None]] = {
            Effect.CONNECT: self._begin_connect,
            Effect.AWAIT_KEEPER: self._await_keeper,
            Effect.LISTEN: self._listen,
            Effect.PLACE: self._place,
            Effect.STOP_IF_UNWANTED: _stop_if_unwanted,
            Effect.LOAD_ENDING: Session.load_ending,
            Effect.BURY: self._bury,
            Effect.WAKE: Session.touch,
        }

    def happened(self, session: Session, event: Event, link: KeeperLink | None = None) -> tuple[Effect, ...]:
        """Enter the state that follows and do what belongs to it. The effects that are left to the reporter are
        returned; none where the state excludes the event."""
        step = state.step(session.life, event)
        if step.bug:
            log.error("%s (%s) cannot be %s now: that is a defect of the host", session.name, session.life, event)
            return ()
        session.move_to(step.next, link)
        for effect in step.effects:
            if effect in self.effects:
                self.effects[effect](session)
        return tuple(effect for effect in step.effects if effect in state.REPORTERS)

    def background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    def hello(self, session: Session) -> Json:
        return {"v": 1, "token": session.manifest["token"], "role": "host", "via": "host", **self.operator}

    # -- getting a line --------------------------------------------------------------------------------------

    async def connect(self, session: Session) -> None:
        """Try to get the line to its keeper, once however many ask; returns when that is tried."""
        if session.life is State.DISCONNECTED:
            self._begin_connect(session)
        if session.reach is not None:
            await session.reach.tried()

    def _begin_connect(self, session: Session) -> None:
        if session.reach is None:
            session.reach = Reach(self, session)

    def _await_keeper(self, session: Session) -> None:
        waiting = lambda: late_start.on_its_way(self._home.roles, self._zygote.pid)  # noqa: E731
        self.background(late_start.arrive(self, session, waiting))

    # -- on a line -------------------------------------------------------------------------------------------

    def _listen(self, session: Session) -> None:
        link = session.line
        welcome = link.welcome.result()
        self.begun += 1
        session.learn(welcome)
        link.on_status = session.learn
        session.spools = "spool" in welcome
        session.applies_once = bool(welcome.get("applies_once"))
        self.welcomed.set()
        self.welcomed = asyncio.Event()
        self.on_event(session, {"event": "linked"})

        def answers(yes: bool) -> None:
            if session.link is link and yes == (session.life is State.UNANSWERED):
                self.happened(session, Event.HEARD if yes else Event.REQUEST_TIMED_OUT)

        link.on_answering = answers
        link.begin(lambda event: self._heard(session, link, event), lambda: self._closed(session, link))

    def _heard(self, session: Session, link: KeeperLink, event: Json) -> None:
        current = session.link is link  # else it is what a keeper still does for slow readers, after its `ended`
        if current:
            session.hear(event)
        self.on_event(session, event)
        if current and event.get("event") == "ended":
            self.happened(session, Event.FINAL_RECORD)

    def _closed(self, session: Session, link: KeeperLink) -> None:
        """The keeper closed its line: it finished and left its record, or it died and did not, or it dropped us."""
        if session.link is link:
            self.happened(session, found(session, Event.LINK_CLOSED))

    def _bury(self, session: Session) -> None:
        session.load_ending()
        if session.leaves:  # the keeper removes them, unless they were made while it was ending
            self.beside(cgroup.remove, session.leaves)
            session.leaves = []
        session.attached, session.busy_exec = [], None
        session.controls = {**session.controls, "holder": None, "kind": None, "name": None, "since": None}
        session.touch()
        self.on_event(session, {"event": "gone", "state": session.state})

    # -- cgroups ---------------------------------------------------------------------------------------------

    async def leaf(self, session: Session) -> list[str]:
        return await asyncio.get_running_loop().run_in_executor(self._later, _leaf, session)

    def _place(self, session: Session) -> None:
        """The bound that every session has comes a moment after the start: no one waits for it, and no program runs out
        of processes that quickly. One that was asked for holds before exec, in the program's own set-up."""
        if session.manifest["limits"] == LIMITS_DEFAULT and session.link is not None:
            self.beside(_join, session, session.link.welcome.result()["pid"])

    def beside(self, work: Callable[..., None], *args: object) -> None:
        """On a thread. Where none can be had it is left undone: no start or end depends on a cgroup."""
        try:
            self._later.submit(work, *args)
        except RuntimeError as e:
            log.warning("%s is left undone: %s", work.__name__, e)

    def close(self) -> None:
        self._later.shutdown()  # the bounds of sessions, and what is left of them, are seen to before the host leaves


def _stop_if_unwanted(session: Session) -> None:
    """A stop was asked for while there was no line to send it on; what the keeper has begun goes on as it was asked."""
    if session.notes.stopped and session.link is not None and not session.link.welcome.result().get("stopping"):
        session.link.tell("stop", grace_s=0.0)


def _leaf(session: Session) -> list[str]:
    """On a thread: the kernel takes milliseconds over a cgroup."""
    bounds = session.manifest["limits"]
    session.leaves = cgroup.make_leaf(session.id, bounds.get("pids", 0), bounds.get("memory", 0))
    return session.leaves


def _join(session: Session, pid: int) -> None:
    cgroup.join_tree(_leaf(session), pid)
    if not session.live:  # it was quicker still
        cgroup.remove(session.leaves)
