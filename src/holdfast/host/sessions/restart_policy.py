"""Restarting and idle reaping: pure decisions first, then the one task per session that carries them out."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any

from ...model.errors import HoldfastError
from ..journal.journal import Journal
from ..observe import ports, processes
from . import survivors
from .idle_rules import Idleness, may_be_idle
from .registry import Registry
from .session import Session

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

_BACKOFF_FIRST_S, _BACKOFF_MAX_S = 0.5, 60.0  # doubled at each failure in a row
_SETTLED_S = 10.0  # who ran so long starts again from the first delay
_LEFTOVER_GRACE_S = 5.0  # what a restarting program left behind gets this long before its port is needed again
_SILENT_S = 5.0  # between two questions to a keeper that does not answer


def restart_delay(policy: str, exit_record: Json, ran_s: float, failures: int) -> float | None:
    """Seconds until the next generation, or None for never. An unknown ending counts as a failure."""
    failed = not exit_record["known"] or exit_record["code"] != 0
    if policy == "never" or (policy == "on-failure" and not failed):
        return None
    if ran_s >= _SETTLED_S:
        failures = 0
    return float(min(_BACKOFF_FIRST_S * 2 ** min(failures, 16), _BACKOFF_MAX_S))


class Policies:
    """Timers for the sessions that asked for them; with none, nothing runs."""

    def __init__(self, registry: Registry, actor: Json, journal: Journal) -> None:
        self._registry, self._actor, self._journal = registry, actor, journal
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}
        self._begun = False
        self.observe: Any = None  # set by the operations: (session) -> (sample, activity)

    def begin(self) -> None:
        """Apply the policies to what was found dead and should live; the idle are watched since they were found."""
        self._begun = True
        for session in list(self._registry.sessions.values()):
            if not session.live:
                self._consider_restart(session)

    def heard(self, session: Session, event: Json) -> None:
        kind = event.get("event")
        if kind == "exit":
            self._main_ended(session)
        elif kind == "linked":  # also one that was silent or on its way when this host began
            self.watch(session)
            if session.exit is not None:
                self._main_ended(session)
        elif kind == "gone":
            self._cancel(session, "idle")
            if self._begun:  # else it ended while it was adopted, and is considered with the other dead
                self._consider_restart(session)

    def _main_ended(self, session: Session) -> None:
        if session.manifest["restart"] != "never" and not session.notes.stopped:
            self._run(session, "leftovers", self._end_leftovers(session))

    def watch(self, session: Session) -> None:
        """From the moment on at which there is a line to its keeper."""
        if session.manifest["idle_ttl_s"]:
            self._run(session, "idle", self._reap_when_idle(session))

    def _run(self, session: Session, what: str, work: Any) -> None:
        self._cancel(session, what)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[session.id, what] = task
        task.add_done_callback(_log_failure)

    def _cancel(self, session: Session, what: str) -> None:
        task = self._tasks.pop((session.id, what), None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    def cancel_restart(self, session: Session) -> None:
        self._cancel(session, "restart")
        session.remember(restart_at=None)

    # -- restart

    def _consider_restart(self, session: Session) -> None:
        if session.notes.stopped or session.notes.reaped or session.exit is None:
            return
        ran = (session.exit.get("at") or time.time()) - session.manifest["started_at"]
        failures = session.notes.failures
        delay = restart_delay(session.manifest["restart"], session.exit, ran, failures)
        if delay is None:
            return
        failures = 1 if ran >= _SETTLED_S else failures + 1
        session.remember(failures=failures, restart_at=time.time() + delay)
        self._run(session, "restart", self._restart(session, delay))

    async def _restart(self, session: Session, delay: float) -> None:
        await asyncio.sleep(delay)
        session.remember(restart_at=None)
        try:
            if session.state == "lost":  # what outlived its keeper would be there twice
                await survivors.end(session, _LEFTOVER_GRACE_S)
            await self._registry.restart(session, None)
            log.info("%s restarted as generation %s", session.name, session.manifest["generation"])
            self._note("restart", session, command=session.manifest["command"][:8])
        except HoldfastError as e:
            log.warning("%s was not restarted: %s", session.name, e.line())

    async def _end_leftovers(self, session: Session) -> None:
        if session.connected:
            try:
                await session.line.act("stop", grace_s=_LEFTOVER_GRACE_S, **{"as": self._actor})
            except HoldfastError:
                pass  # it ended by itself meanwhile

    # -- idle

    async def _reap_when_idle(self, session: Session) -> None:
        idleness = Idleness(float(session.manifest["idle_ttl_s"]), time.monotonic())
        while session.connected:
            try:
                sample, activity = await self.observe(session)
            except HoldfastError:  # it is gone, and so are we; or its keeper is silent, and is asked again
                await asyncio.sleep(_SILENT_S)
                continue
            spent = sum(p["cpu_s"] for p in processes.processes(sample["members"]))
            idle = may_be_idle(sample, activity.at_shell, bool(ports.ports(sample["members"])))
            moment, now = time.monotonic(), time.time()
            todo = idleness.look(sample, spent, idle, moment, now)
            if todo == "end" and await self._reaped(session):
                return
            if todo == "warn" and idleness.ends_at is not None:
                left = idleness.ends_at - moment
                session.remember(reap_at=now + left)
                log.warning("%s is idle and will be reaped in %.0f s", session.name, left)
                self._note("policy", session, text=f"idle, to be ended in {left:.0f} s")
                session.touch()
            elif idleness.ends_at is None and session.notes.reap_at is not None:
                session.remember(reap_at=None)
            await asyncio.sleep(max(0.05, idleness.due() - time.monotonic()))

    async def _reaped(self, session: Session) -> bool:
        ttl = session.manifest["idle_ttl_s"]
        session.remember(reaped=True, reap_at=None)
        log.warning("%s was idle for %.0f s and is reaped", session.name, ttl)
        self._note("reap", session, idle_s=ttl)
        try:
            if session.connected:
                await session.line.act("stop", grace_s=_LEFTOVER_GRACE_S, **{"as": self._actor})
        except HoldfastError as e:
            if session.live:  # its keeper is silent: it was not ended, and is not called so
                session.remember(reaped=False)
                log.warning("%s could not be reaped: %s", session.name, e.line())
                return False
        return True

    def _note(self, kind: str, session: Session, **facts: Any) -> None:
        """The host acts by itself: there is no operator to name."""
        self._journal.note(
            kind,
            session=session.id,
            actor=None,
            generation=session.manifest["generation"],
            session_name=session.name,
            **facts,
        )

    def close(self) -> None:
        for task in self._tasks.values():
            task.cancel()


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.error("policy: %r", task.exception())
