"""Operations on the inbox: ask, look, follow, answer. Who may answer what is decided here."""

from __future__ import annotations

import asyncio
import base64
import re
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

from ...model import ids
from ...model.errors import HoldfastError, invalid, not_found
from ...model.inbox import approval_rules
from ...model.inbox import item as asks
from ...model.limits import CANONICAL_LINE_MAX
from ...model.names import refused
from ..base import decoded, number, why_of
from ..controls.ops import Acting
from ..observe import session_view
from . import hook_dialogs, parked_runs, prompt_watch
from . import items as inbox
from .prompt_watch import about

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..operators.caller import Caller

Json = dict[str, Any]

_ID = re.compile(r"ask_[0-9a-z]{16}")


class Asking(Acting):
    """ask, asked, inbox and answer."""

    # -- asking

    async def op_ask(self, request: Json, caller: Caller) -> Json:
        text, options = asks.check_question(request.get("text"), request.get("options"))
        session = await self._find(request, caller) if request.get("session") else None
        dialog = asks.check_dialog(request.get("dialog"))
        if dialog is not None:  # where its agent runs is the kernel's word
            session = caller.session or session
        ask, held_s = request.get("ask"), number(request.get("held"), "a length of time")
        if ask is not None and not (isinstance(ask, str) and _ID.fullmatch(ask)):
            raise invalid(f"{str(ask)[:40]!r} is not an ask id", "leave it out and one is made")
        if ask is not None and (known := await self._known(ask, caller)) is not None:
            return self._item(await self._waited_for(known, held_s))  # sent again because the reply was lost
        detail = {"why": why} if (why := why_of(request)) else {}
        kind = request.get("kind") or "question"
        if kind not in asks.ASKED:
            raise invalid(f"{str(kind)[:40]!r} cannot be asked for", " or ".join(asks.ASKED))
        if kind == "approval":
            text = approval_rules.visible(text)  # whoever says yes has seen all of it
        ask = ask or ids.new("ask_")
        try:
            item = await self.desk.inbox.add(
                kind,
                session=about(session) if session else None,
                asker=caller.actor,
                text=text,
                options=options,
                detail=detail,
                ask=ask,
                more=self._asked_by(dialog, caller),
            )
            await self.journal.written()
        except asyncio.CancelledError:  # while it was written down: it is there, and whom it was for is not
            if held_s is not None:
                await self.desk.gate.left(ask, asks.LEFT if dialog else None)
            raise
        if dialog is not None and session is not None:
            await self.desk.reported(session)
        return self._item(await self._waited_for(item, held_s))

    @staticmethod
    def _asked_by(dialog: Json | None, caller: Caller) -> Json:
        process = hook_dialogs.nearest(caller.peer.sock) if dialog and caller.peer is not None else None
        return {"dialog": dialog, "process": process} if dialog else {}

    async def _waited_for(self, item: Json, held_s: float | None) -> Json:
        """With `held` the item is there as long as its asker waits for it, and so many seconds at most."""
        if held_s is None:
            return item
        try:
            async with asyncio.timeout(held_s):
                return await self.desk.inbox.settled(item["id"])
        except TimeoutError:
            await self.desk.gate.left(item["id"])
            return await self.desk.inbox.find(item["id"])
        except asyncio.CancelledError:
            await self.desk.gate.left(item["id"], asks.LEFT if item.get("dialog") else None)
            raise

    async def op_decided(self, request: Json, caller: Caller) -> Json:
        """A conversation of the caller's went on: the dialogs that it has left behind were decided at its terminal."""
        over = asks.check_dialog(request) or {}
        if "agent" not in request:
            del over["agent"]
        over["began"] = number(request.get("began"), "a time") or float("inf")
        mine = [i for i in self.desk.inbox.open_items() if (i["asker"] or {}).get("operator") == caller.operator]
        found = [i["id"] for i in asks.decided(mine, over)]
        await self.desk.inbox.vanish(lambda i: i["id"] in found, asks.DECIDED)
        return {"ended": found}

    async def _known(self, ask: str, caller: Caller) -> Json | None:
        try:
            return self._shown(await self.desk.inbox.find(ask), caller)
        except HoldfastError:
            return None

    async def op_withdraw(self, request: Json, caller: Caller) -> Json:
        """An item that its asker no longer wants answered; one that is over stays as it is."""
        item = self._shown(await self.desk.inbox.find(str(request.get("ask") or "")), caller)
        if not item["asker"] or item["asker"]["operator"] != caller.operator:
            raise refused(f"{item['id']} is not yours to take back", "hold answer answers it")
        await self.desk.inbox.vanish(lambda i: i["id"] == item["id"])
        return self._item(await self.desk.inbox.find(item["id"]))

    async def op_asked(self, request: Json, caller: Caller) -> Json:
        """One item, once it is no longer open or the time is up."""
        item = self._shown(await self.desk.inbox.find(str(request.get("ask") or "")), caller)
        try:
            async with asyncio.timeout(number(request.get("timeout"), "a timeout")):
                item = await self.desk.inbox.settled(item["id"])
        except TimeoutError:
            pass
        return self._item(item)

    # -- looking

    async def op_inbox(self, request: Json, caller: Caller) -> Json:
        box = self.desk.inbox
        if request.get("follow"):
            with self.desk.watch.followed():
                after = number(request.get("after"), "the number of a change")
                return await self._follow_inbox(None if after is None else int(after), caller)
        await self._look(caller)
        last = box.last
        items = await box.since(0) if request.get("all") else box.open_items()
        return {"items": [self._item(i) for i in items if self._may_see(i, caller)], "last": last}

    async def _follow_inbox(self, after: int | None, caller: Caller) -> Json:
        """What is open, or what has changed since: an answer comes when there is something to tell."""
        box = self.desk.inbox
        if after is None:
            await self._look(caller)
            last = box.last
            return {"items": [self._item(i) for i in box.open_items() if self._may_see(i, caller)], "last": last}
        seen = after
        while True:
            await box.change(seen)
            items = await box.since(seen)
            seen = max((int(i["changed"]) for i in items), default=seen)
            shown = [self._item(i) for i in items if self._may_see(i, caller)]
            if shown:
                return {"items": shown, "last": seen}

    async def _look(self, caller: Caller) -> None:
        sessions = [s for s in self.registry.sessions.values() if s.connected and caller.may("view", s)]
        await self.desk.watch.look(sessions)
        await self.daemon.operations.look_for_parked()

    def _may_see(self, item: Json, caller: Caller) -> bool:
        """One's own, and what concerns a session one may see; what asks for a person is shown to people."""
        session = self.registry.sessions.get(item["session"]) if item["session"] else None
        if not caller.reaches(session):
            return False
        if item["asker"] and item["asker"]["operator"] == caller.operator:
            return True
        if item["kind"] == "held_controls":
            return bool(item["detail"]["holder"] == caller.operator)
        if not self._is_person(caller) and item["kind"] not in asks.SEEN:
            return False
        if item["kind"] == parked_runs.KIND:
            return caller.may("work", None) or caller.may("view", None)
        if not item["session"]:
            return True
        return caller.may("view", session)  # of one that was removed: all, or none

    def _shown(self, item: Json, caller: Caller) -> Json:
        if not self._may_see(item, caller):
            raise not_found(f"no inbox item {item['id']!r}", "hold inbox lists them")
        return item

    def _item(self, item: Json) -> Json:
        session = self.registry.sessions.get(item["session"]) if item["session"] else None
        return inbox.view(hook_dialogs.explained(item), session.name if session else None)

    # -- answering

    async def op_answer(self, request: Json, caller: Caller) -> Json:
        item = await self._as_it_is(self._shown(await self.desk.inbox.find(str(request.get("ask") or "")), caller))
        approve, data = request.get("approve"), decoded(request.get("data"))
        if (approve is None) == (data is None):
            raise invalid("no answer, or two", asks.instead(item))
        event = "answer" if approve is None else "approve" if approve else "deny"
        retried = request.get("request") is not None and item["answer_request"] == request.get("request")
        if retried and (item["answered_by"] or {}).get("operator") == caller.operator:
            return self._item(item)
        asks.after(item, event)
        self._may_answer(item, caller)
        if item["kind"] in asks.TYPED:
            done = await self._type_answer(item, data or b"", request, caller)
        elif item["kind"] == "control_request" and event == "approve":
            done = await self._hand_over(item, request, caller)
        elif item["kind"] == "held_controls" and event == "approve":
            done = await self._hand_back(item, request, caller)
        else:
            answer = None if data is None else asks.check_answer(item, data.decode("utf-8", "replace"))
            done = await self._end_ask(item, event, request, caller, answer=answer)
        await self.journal.written()
        return self._item(done)

    async def _as_it_is(self, item: Json) -> Json:
        """A dialog's item as it is now: an answer that comes after the decision decides nothing."""
        if item["state"] == "open" and item.get("dialog"):
            session = self.registry.sessions.get(item["session"]) if item["session"] else None
            if not hook_dialogs.alive(item.get("process")):
                await self.desk.inbox.vanish(lambda i: i["id"] == item["id"], asks.ASKER_ENDED)
            elif session is not None and session.connected and session.terminal:
                await self.desk.watch.look([session])
            item = await self.desk.inbox.find(item["id"])
        return hook_dialogs.explained(item)

    def _may_answer(self, item: Json, caller: Caller) -> None:
        session = self.registry.sessions.get(item["session"]) if item["session"] else None
        if item["kind"] == "approval":
            caller.require("approve", session)
        elif item["kind"] in asks.TYPED or session is not None:
            caller.require("type" if item["kind"] != "question" else "view", session)
        if item["kind"] not in asks.TYPED and not self._is_person(caller):
            raise refused(f"{item['id']} is for a human to answer", "wait for one")

    async def _end_ask(self, item: Json, event: str, request: Json, caller: Caller, **more: Any) -> Json:
        facts = {
            "session": item["session"],
            "ask": item["id"],
            "ask_kind": item["kind"],
            "offset": item["offset"],
            "session_name": item["session_name"],
        }

        def commit(work: Callable[[sqlite3.Connection], object]) -> Awaitable[None]:
            """An answer and the name of the one who gave it: neither without the other."""
            return self.journal.commit(work, event, actor=caller.actor, why=why_of(request), **facts)

        return await self.desk.inbox.end(
            item["id"],
            event,
            by=caller.actor,
            request=request.get("request"),
            why=why_of(request),
            commit=commit,
            **more,
        )

    async def _type_answer(self, item: Json, data: bytes, request: Json, caller: Caller) -> Json:
        """Into the live stdin, if the very prompt is still there. What was typed is not kept."""
        check_line(data)
        session = await self._live({"session": item["session"]}, caller)
        self._check_typing(session, caller)
        session.touched_by(*caller.everyone)

        async def effect(open_item: Json) -> None:
            sample, activity = await session_view.observe(session, self.screens)
            same = asks.same_prompt(open_item, sample) and prompt_watch.KINDS.get(activity.kind) == open_item["kind"]
            if not same or not session.connected:
                raise HoldfastError("conflict", "the prompt that this answers is gone", "hold inbox shows what is open")
            expect = {
                "input_at": open_item["input_at"],
                "end": open_item["offset"],
                "echo": open_item["kind"] != "secret",
            }
            if open_item["kind"] == "input":  # a line editor echoes by itself: what counts is that nothing changed
                expect["echo"] = sample["facts"]["tty"]["echo"]
            await session.line.act(
                "answer",
                data=base64.b64encode(data + b"\r").decode(),
                expect=expect,
                force=self._is_person(caller),
                why=why_of(request),
                exec_id=open_item["id"],
                **{"as": caller.actor},
            )

        try:
            return await self._end_ask(item, "answer", request, caller, effect=effect)
        except HoldfastError as e:
            by = await self.desk.landed(item) if e.code == "conflict" else None
            if by is not None and by["operator"] == caller.operator and item["id"] in self.desk.inbox.entries:
                return await self._end_ask(item, "answer", request, caller)  # it was typed; only the reply was lost
            await self.desk.watch.look([session])  # what is no longer true leaves the inbox now
            raise

    async def _hand_over(self, item: Json, request: Json, caller: Caller) -> Json:
        """The holder gives the controls to the one who asked for them."""
        session = await self._live({"session": item["session"]}, caller)

        async def effect(open_item: Json) -> None:
            asker = open_item["asker"]["operator"]
            await self._hand(session, asker, request, caller, note=why_of(request))

        return await self._end_ask(item, "approve", request, caller, effect=effect)

    async def _hand_back(self, item: Json, request: Json, caller: Caller) -> Json:
        """The holder, who is away, gives the controls back to whom they were taken from, or to whoever comes."""
        session = await self._live({"session": item["session"]}, caller)

        async def effect(open_item: Json) -> None:
            source = session.controls.get("from")
            if source:
                await self._hand(session, source["operator"], request, caller, note=why_of(request))
            else:
                await session.line.act("release", why=why_of(request), **{"as": caller.actor})

        return await self._end_ask(item, "approve", request, caller, effect=effect)


def check_line(data: bytes) -> None:
    """An answer is one line: a second would land in the next prompt, a control character is a key, not a text."""
    if len(data) >= CANONICAL_LINE_MAX:
        raise invalid(f"an answer of {len(data)} bytes", f"a line has at most {CANONICAL_LINE_MAX - 1}")
    if any((b < 0x20 and b != 0x09) or b == 0x7F for b in data):
        raise invalid("an answer is one line of text, without control characters", "hold send types anything else")
