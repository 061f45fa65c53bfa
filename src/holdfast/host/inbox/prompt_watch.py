"""Which sessions wait for somebody: looked at while a person wants to know, and never otherwise.

The kernel has no event for a blocked read, so it is sampled about every two seconds, and only while a notification is
configured or a client follows the inbox. A session that was found blocked is left alone until bytes move. `look`
answers on the spot for everybody else.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from ...model import limits
from ...model.errors import HoldfastError
from ...model.inbox import item as asks
from ...model.sessions.activity import FRESH_S, Activity
from ..observe.quiet import output_age_s
from ..sessions.session import Session
from . import hook_dialogs
from .items import Inbox

Json = dict[str, Any]
Observe = Callable[[Session, list[int] | None], Awaitable[tuple[Json, Activity]]]
Read = Callable[[Session, int], Awaitable[str]]
log = logging.getLogger("holdfast.host")

KINDS = {"waiting_for_input": "input", "waiting_for_secret": "secret", "menu": "menu"}
_BLOCKED = (*KINDS, "at_prompt", "exited")  # nothing changes until bytes move
_AT_ONCE = 32  # keepers asked in parallel, as by `ls`
# A hook's answer is with the agent this soon, and its dialog closed: it is not shown as a menu once more.
_ANSWERED_S = 5.0
_STIRS_S = 3.0  # a loop that draws at a key and waits again counts as waiting after some 1.3 s; one look more


class Watch:
    """`live()` gives the sessions with a keeper, `forest()` their processes from one walk of /proc, `read` a session's
    screen up to an offset."""

    def __init__(
        self,
        inbox: Inbox,
        live: Callable[[], list[Session]],
        forest: Callable[[], dict[int, list[int]]],
        observe: Observe,
        read: Read,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._inbox, self._live, self._forest, self._observe = inbox, live, forest, observe
        self._read, self._clock = read, clock
        self._answered: dict[str, float] = {}  # sessions whose dialog was answered through a hook, and when
        self._shown: dict[str, float] = {}  # when menus were last seen, by their items
        self._followers = 0
        self._configured = False
        self._task: asyncio.Task[None] | None = None
        self._parked: dict[str, asyncio.Task[None]] = {}
        self._due = asyncio.Event()
        self._settling = asyncio.Lock()  # two who look at the same moment make one item, not two

    # -- who wants to know

    def configured(self, wanted: bool) -> None:
        """Whether new items are to be told to somebody who is not connected."""
        self._configured = wanted
        self._start_or_stop()

    @contextlib.contextmanager
    def followed(self) -> Any:
        """While a client follows the inbox."""
        self._followers += 1
        self._start_or_stop()
        try:
            yield
        finally:
            self._followers -= 1
            # A follower asks again right after each answer: stopping in between would only cost a walk.
            asyncio.get_running_loop().call_later(limits.INBOX_SAMPLE_S, self._start_or_stop)

    @property
    def _wanted(self) -> bool:
        return self._configured or self._followers > 0

    def _start_or_stop(self) -> None:
        if self._wanted and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())
            self._task.add_done_callback(_log_failure)
        elif not self._wanted and self._task is not None:
            self.close()

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        for task in self._parked.values():
            task.cancel()
        self._parked.clear()

    # -- looking

    def heard(self, session: Session, event: Json) -> None:
        """Something happened in a session: it is worth another look."""
        if self._task is not None:
            self._unpark(session.id)

    def _unpark(self, session_id: str) -> None:
        task = self._parked.pop(session_id, None)
        if task is not None:
            task.cancel()
        self._due.set()

    async def _run(self) -> None:
        while True:
            self._due.clear()
            await self.look([s for s in self._live() if s.id not in self._parked], park=True)
            if all(s.id in self._parked for s in self._live()):
                await self._due.wait()
            await asyncio.sleep(limits.INBOX_SAMPLE_S)

    async def look(self, sessions: list[Session], *, park: bool = False) -> None:
        """Look at these sessions now: new items for those that wait, and an end for items that no longer hold."""
        if not sessions:
            return
        forest = self._forest()
        gate = asyncio.Semaphore(_AT_ONCE)

        async def one(session: Session) -> None:
            async with gate:
                await self._look_at(session, forest, park)

        await asyncio.gather(*(one(s) for s in sessions))

    async def _look_at(self, session: Session, forest: dict[int, list[int]], park: bool) -> None:
        if not session.connected:
            return
        try:
            sample, activity = await self._observe(session, forest.get(session.keeper or 0))
        except HoldfastError:
            return  # it ended, or does not answer: neither waits for a person
        async with self._settling:
            settled = await self._settle(session, sample, activity)
        if park and settled and self._task is not None and activity.kind in _BLOCKED and session.connected:
            moved = asyncio.get_running_loop().create_task(self._until_moved(session, sample["output"]["end"]))
            self._parked[session.id] = moved

    async def _until_moved(self, session: Session, end: int) -> None:
        if session.connected:
            await session.line.grown(end)
        self._parked.pop(session.id, None)
        self._due.set()

    def ended(self, item: Json) -> None:
        """An item is over: a dialog that was answered through its hook is about to close."""
        self._shown.pop(item["id"], None)
        if item.get("dialog") and item["session"] and item["state"] in ("answered", "denied"):
            self._answered = {s: at for s, at in self._answered.items() if self._clock() - at < _ANSWERED_S}
            self._answered[item["session"]] = self._clock()

    async def _settle(self, session: Session, sample: Json, activity: Activity) -> bool:
        """Make the items of one session agree with what was seen of it; false where it is too early to say."""
        kind = KINDS.get(activity.kind)
        mine = [i for i in self._inbox.open_items() if i["session"] == session.id]
        dialogs = [i for i in mine if i.get("dialog")]
        await self._settle_dialogs([i for i in dialogs if i["dialog"]["agent"] is None], sample)
        known = [i for i in mine if i["kind"] in asks.SEEN]
        if kind == "menu" and (dialogs or self._clock() - self._answered.get(session.id, float("-inf")) < _ANSWERED_S):
            kind = None  # a hook reports this dialog, and its answer goes through the hook
        elif kind is None and any(self._stirs(i, sample) for i in known):
            return False
        same = asks.same_menu if kind == "menu" else asks.same_prompt
        holds = [i for i in known if i["kind"] == kind and same(i, sample)]
        if len(holds) < len(known):
            await self._inbox.vanish(lambda i: i in known and i not in holds)
        if kind is None:
            return activity.kind != "menu"
        if kind == "menu":
            return await self._show_menu(session, sample, activity, holds)
        if not holds:
            await self._add(kind, session, sample, activity, activity.prompt or "", {})
        return True

    def _stirs(self, item: Json, sample: Json) -> bool:
        """Whether a menu was moved through just now: what draws it anew looks for a moment as if it worked."""
        recent = self._clock() - self._shown.get(item["id"], float("-inf")) < _STIRS_S
        return recent and "facts" in sample and not sample["facts"]["tty"]["canonical"] and asks.same_menu(item, sample)

    async def _settle_dialogs(self, dialogs: list[Json], sample: Json) -> None:
        """A dialog that the program showed and no longer shows was decided at its terminal."""
        if "facts" not in sample or not dialogs:
            return
        for item in dialogs:
            if item.get("blocked_at") is None and (at := asks.blocking(sample)) is not None:
                await self._inbox.amend(item["id"], blocked_at=at)
        await self._inbox.vanish(lambda i: i in dialogs and hook_dialogs.left(i, sample), asks.DECIDED)

    async def _show_menu(self, session: Session, sample: Json, activity: Activity, holds: list[Json]) -> bool:
        """One item for one menu, with the screen as it is now. A menu that has just come may be about to be reported by
        a hook: it is shown when it has stood for a moment."""
        text = (await self._read(session, sample["output"]["end"]))[-limits.ASK_TEXT_MAX :]
        if holds:
            self._shown[holds[0]["id"]] = self._clock()
            if holds[0]["text"] != text:
                await self._inbox.amend(holds[0]["id"], text=text)
            return True
        said = asks.blocking(sample) is not None  # then it may go on drawing: a hint that moves, a clock
        if (sample["says"]["age"] if said else output_age_s(sample, self._clock())) < FRESH_S:
            return False
        front = sample["facts"]["tty"]["foreground_pgid"]
        await self._add("menu", session, sample, activity, text, {"front": front, "blocked_at": asks.blocking(sample)})
        return True

    async def _add(self, kind: str, session: Session, sample: Json, activity: Activity, text: str, more: Json) -> None:
        await self._inbox.add(
            kind,
            session=about(session),
            text=text,
            detail={"confidence": activity.confidence, "evidence": activity.evidence, "prompt": activity.prompt},
            more=more,
            prompt={"input_at": sample["input_at"], "offset": sample["output"]["end"]},
        )


def about(session: Session) -> Json:
    return {"session": session.id, "session_name": session.name, "generation": session.manifest["generation"]}


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("the inbox stopped watching", exc_info=task.exception())
