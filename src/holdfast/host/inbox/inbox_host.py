"""The inbox with everything around it: its settings, the gate, the watch, and word to people who are elsewhere."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Coroutine
from typing import Any

from ...model.config_toml import Settings
from ...model.errors import HoldfastError
from ...model.inbox import approval_rules
from ...model.inbox import item as asks
from ...model.limits import INBOX_SAMPLE_S
from ...model.sessions.activity import Activity
from ...model.times import rfc3339
from ...system import inotify
from ..config import SettingsFile
from ..observe import session_view
from ..sessions.session import Session
from .approval_gate import Gate
from .hook_dialogs import Askers
from .items import Inbox
from .notifier import Notifier
from .parked_runs import ParkedRuns
from .prompt_watch import Watch, about

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..daemon import Daemon

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

_JOURNALED_TEXT_MAX = 4000  # characters of what was asked; the item has all of it


class Desk:
    """One per host. Nothing here runs while no item waits, no notification is configured and nobody follows."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self.settings = SettingsFile(daemon.home, self._configured, self._note_settings)
        self.inbox = Inbox(daemon.ledger, self._changed)
        self.gate = Gate(self.inbox, self.settings.current, lambda: daemon.stopped.is_set())  # noqa: PLW0108  (not there yet)
        self.watch = Watch(self.inbox, self._terminals, daemon.look.forest, self._observe, self._screen)
        self.askers = Askers(self._asker_ended)
        self.notifier = Notifier()
        self.parked = ParkedRuns(self.inbox)
        self._tasks: set[asyncio.Task[None]] = set()
        self._changes = -1

    async def begin(self) -> None:
        """Take up what the last host left: items of sessions that ended meanwhile are gone."""
        await self.inbox.load()
        live = {s.id for s in self._live()}
        await self.inbox.vanish(lambda i: i["kind"] != "question" and bool(i["session"]) and i["session"] not in live)
        for item in self.inbox.open_items():
            if item["kind"] in asks.TYPED and (by := await self.landed(item)) is not None:
                await self.inbox.end(item["id"], "answer", by=by)
            self.askers.changed(item)
        try:  # without it a change is seen at the next use of the settings
            self._changes = inotify.watch(self._daemon.home.path)
            asyncio.get_running_loop().add_reader(self._changes, self._home_changed)
        except OSError as e:
            log.warning("changes of %s are not told: %s", self.settings.path, e)
        self.settings.current()

    def _home_changed(self) -> None:
        inotify.drain(self._changes)
        try:
            self.settings.current()
        except HoldfastError as e:  # the journal's disk: whoever needs the settings next tries again
            log.error("a change of %s is not noted yet: %s", self.settings.path, e.line())

    def close(self) -> None:
        if self._changes >= 0:
            asyncio.get_running_loop().remove_reader(self._changes)
            os.close(self._changes)
        self.watch.close()
        self.askers.close()
        self.inbox.close()
        self.notifier.close()
        for task in self._tasks:
            task.cancel()

    # -- what is heard

    def heard(self, session: Session, event: Json) -> None:
        self.watch.heard(session, event)
        kind = event.get("event")
        if kind == "gone":
            self._later(self._vanish(session, (*asks.SEEN, "approval", "control_request", "held_controls")))
        elif kind in ("controls", "linked"):
            self._later(self._controls_moved(session, dict(session.controls)))

    async def _vanish(self, session: Session, kinds: tuple[str, ...]) -> None:
        await self.inbox.vanish(lambda i: i["session"] == session.id and i["kind"] in kinds)

    async def _asker_ended(self, ask: str) -> None:
        await self.inbox.vanish(lambda i: i["id"] == ask, asks.ASKER_ENDED)

    async def reported(self, session: Session) -> None:
        """A hook reports the dialog that this session shows: one dialog is one item. It is looked at now, and once more
        when it is surely drawn, because that it was closed can only be told of one that was seen."""
        await self._vanish(session, ("menu",))
        if session.terminal:
            self._later(self._look_twice(session))

    async def _look_twice(self, session: Session) -> None:
        await self.watch.look([session])
        await asyncio.sleep(INBOX_SAMPLE_S)
        await self.watch.look([session])

    async def _controls_moved(self, session: Session, controls: Json) -> None:
        """A request to a holder who no longer holds is over: whoever asked can take them, or ask the next. A person who
        took over and is away finds that in the inbox, until they are back or it is over."""
        away = controls["holder"] if controls.get("ends_at") else None
        waits = {"control_request": controls["holder"], "held_controls": away}
        await self.inbox.vanish(
            lambda i: i["session"] == session.id and i["kind"] in waits and i["detail"]["holder"] != waits[i["kind"]]
        )
        known = any(i["session"] == session.id and i["kind"] == "held_controls" for i in self.inbox.open_items())
        if away is not None and not known and session.connected:
            source = controls.get("from")
            back = f"hand them back to {source['name']}" if source else "release them"
            until = {"since": rfc3339(controls["since"]), "ends_at": rfc3339(controls["ends_at"])}
            text = f"you hold {session.name} since {until['since']}, until {until['ends_at']}: come back, or {back}"
            await self.inbox.add("held_controls", session=about(session), text=text, detail={"holder": away, **until})

    def _later(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("the inbox: %s", task.exception())

    # -- sessions

    def _live(self) -> list[Session]:
        return [s for s in self._daemon.registry.sessions.values() if s.connected]

    def _terminals(self) -> list[Session]:
        """Those that can be seen to wait: on pipes that is not visible."""
        return [s for s in self._live() if s.terminal]

    async def _observe(self, session: Session, members: list[int] | None) -> tuple[Json, Activity]:
        return await session_view.observe(session, self._daemon.screens, members=members)

    async def _screen(self, session: Session, end: int) -> str:
        emulator = await self._daemon.screens.near(session, end)
        with emulator.lock:
            return emulator.screen.text().strip("\n")

    async def landed(self, item: Json) -> Json | None:
        """Who answered a prompt, where the last host died between typing it and writing it down: the keeper knows."""
        session = self._daemon.registry.sessions.get(item["session"])
        entry = await self._entry(session, item["id"]) if session is not None else None
        return {"operator": entry["operator"], "kind": entry["operator_kind"], "name": entry["name"]} if entry else None

    async def typed(self, session: Session, exec_id: str) -> bool | None:
        """Whether a command was typed, where the last host died over it; None: the keeper cannot tell."""
        entry = await self._entry(session, exec_id) if session.connected and session.spools else None
        return None if entry is None else bool(entry)

    async def _entry(self, session: Session, exec_id: str) -> Json | None:
        """What the journal has under this id, once it has all that the keeper knows; empty where that is nothing, None
        where the keeper does not say."""
        try:
            if session.connected and session.spools:
                await session.line.act("events", after=0, max=1, now=True)  # what is being typed is an entry now
            await self._daemon.ingest.fetch(session)
            await self._daemon.journal.written()
        except HoldfastError as e:
            log.warning("what was answered in %s is not known: %s", session.name, e.line())
            return None
        query = "SELECT body FROM entries WHERE session = ? AND instr(body, ?)"
        mark = b'"exec_id":"%b"' % exec_id.encode()
        row = await self._daemon.ledger.read(lambda db: db.execute(query, (session.id, mark)).fetchone())
        return dict(json.loads(row[0])) if row is not None else {}

    # -- settings and word to people

    def _changed(self, item: Json) -> None:
        """An item is new, or over."""
        self.askers.changed(item)
        if item["state"] == "expired":
            self._note("deny", item, None, reason="nobody answered in time")
        if item["state"] != "open":
            self.watch.ended(item)
            return
        if item["asker"]:
            self._note("ask", item, item["asker"], text=item["text"][:_JOURNALED_TEXT_MAX])
        if item["kind"] in asks.SEEN and self._somebody_is_there(item["session"]):
            return  # a human at that terminal sees the prompt
        self.notifier.tell(item, self.settings.current().notify)

    def _note(self, kind: str, item: Json, actor: Json | None, **facts: Any) -> None:
        self._daemon.journal.note(
            kind,
            session=item["session"],
            actor=actor,
            why=item["detail"].get("why"),
            ask=item["id"],
            ask_kind=item["kind"],
            session_name=item["session_name"],
            **facts,
        )

    def _somebody_is_there(self, session_id: str) -> bool:
        session = self._daemon.registry.sessions.get(session_id)
        return session is not None and any(self._is_human(a["operator"]) for a in session.attached)

    def _is_human(self, operator: str) -> bool:
        who = self._daemon.operators.by_id.get(operator)
        return who is not None and who.kind == "human"

    def _note_settings(self, facts: Json) -> None:
        self._daemon.journal.note("settings", session=None, actor=None, **facts)
        self._later(self._settings_noted(facts["after"]))

    async def _settings_noted(self, digest: str) -> None:
        await self._daemon.journal.written()
        self.settings.remember(digest)

    def _configured(self, settings: Settings) -> None:
        self.watch.configured(settings.notify.wanted and bool(settings.notify.kinds & set(asks.SEEN)))
        if settings.rules or settings.broken is not None:
            self._later(self._revoke_typing(settings))

    async def _revoke_typing(self, settings: Settings) -> None:
        """Channels that were opened before a rule came would go around it: they are closed."""
        operators = [who for who in self._daemon.operators.by_id.values() if who.kind != "human"]
        for session in self._live():
            for who in operators:
                if settings.broken is None and not approval_rules.typing_refused(
                    settings.rules, who.kind, session.name
                ):
                    continue
                mine = [grant.id for grant in self._daemon.operators.grants.values() if grant.operator == who.id]
                try:
                    if session.connected:
                        await session.line.act("revoke", operator=who.id)
                    for grant in mine:  # a person's channel that it may be behind rests on its grants, too
                        if session.connected:
                            await session.line.act("revoke", grant=grant)
                except HoldfastError as e:
                    log.warning("channels of %s to %s were not closed: %s", who.name, session.name, e.line())
