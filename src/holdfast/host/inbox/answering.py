"""Answering an item: whether this caller may, and what the answer does."""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Awaitable, Callable
from typing import Any

from ...api.inbox import Answer
from ...model.errors import HoldfastError, invalid
from ...model.inbox import item as asks
from ...model.limits import CANONICAL_LINE_MAX
from ...model.names import refused
from ..controls.hand_over import HandOver
from ..journal.journal import Journal
from ..journal.session_entries import why_of
from ..observe import session_view
from ..operators.caller import Caller
from ..screen.emulators import Screens
from ..sessions import find
from ..sessions.registry import Registry
from ..typed_bytes import decoded
from . import hook_dialogs, prompt_watch
from .approval_requests import Approvals
from .inbox_host import Desk

Json = dict[str, Any]


class Answering:
    """One item is answered once; what was typed is not kept."""

    def __init__(
        self,
        desk: Desk,
        registry: Registry,
        screens: Screens,
        approvals: Approvals,
        hand_over: HandOver,
        journal: Journal,
    ) -> None:
        self._desk, self._registry, self._screens = desk, registry, screens
        self._approvals, self._hand_over, self._journal = approvals, hand_over, journal

    async def answer(self, item: Json, request: Answer, caller: Caller) -> Json:
        """The item as it is afterwards."""
        item = await self._as_it_is(item)
        approve, data = request.approve, None if request.data is None else decoded(request.data)
        if (approve is None) == (data is None):
            raise invalid("no answer, or two", asks.instead(item))
        event = "answer" if approve is None else "approve" if approve else "deny"
        retried = request.request is not None and item["answer_request"] == request.request
        if retried and (item["answered_by"] or {}).get("operator") == caller.operator:
            return item
        asks.after(item, event)
        self._may_answer(item, caller)
        if item["kind"] in asks.TYPED:
            done = await self._type(item, data or b"", request, caller)
        elif item["kind"] == "control_request" and event == "approve":
            done = await self._hand_to_asker(item, request, caller)
        elif item["kind"] == "held_controls" and event == "approve":
            done = await self._hand_back(item, request, caller)
        else:
            text = None if data is None else asks.check_answer(item, data.decode("utf-8", "replace"))
            done = await self._end(item, event, request, caller, answer=text)
        await self._journal.written()
        return done

    async def _as_it_is(self, item: Json) -> Json:
        """A dialog's item as it is now: an answer that comes after the decision decides nothing."""
        if item["state"] == "open" and item.get("dialog"):
            session = self._registry.sessions.get(item["session"]) if item["session"] else None
            if not hook_dialogs.alive(item.get("process")):
                await self._desk.inbox.vanish(lambda i: i["id"] == item["id"], asks.ASKER_ENDED)
            elif session is not None and session.connected and session.terminal:
                await self._desk.watch.look([session])
            item = await self._desk.inbox.find(item["id"])
        return hook_dialogs.explained(item)

    def _may_answer(self, item: Json, caller: Caller) -> None:
        session = self._registry.sessions.get(item["session"]) if item["session"] else None
        if item["kind"] == "approval":
            caller.require("approve", session)
        elif item["kind"] in asks.TYPED or session is not None:
            caller.require("type" if item["kind"] != "question" else "view", session)
        if item["kind"] not in asks.TYPED and not caller.is_person:
            raise refused(f"{item['id']} is for a human to answer", "wait for one")

    async def _end(self, item: Json, event: str, request: Answer, caller: Caller, **more: Any) -> Json:
        why = why_of(request)
        facts = {
            "session": item["session"],
            "ask": item["id"],
            "ask_kind": item["kind"],
            "offset": item["offset"],
            "session_name": item["session_name"],
        }

        def commit(work: Callable[[sqlite3.Connection], object]) -> Awaitable[None]:
            """An answer and the name of the one who gave it: neither without the other."""
            return self._journal.commit(work, event, actor=caller.actor, why=why, **facts)

        return await self._desk.inbox.end(
            item["id"], event, by=caller.actor, request=request.request, why=why, commit=commit, **more
        )

    async def _type(self, item: Json, data: bytes, request: Answer, caller: Caller) -> Json:
        """Into the live stdin, if the very prompt is still there."""
        check_line(data)
        session = await find.live(self._registry, item["session"], caller)
        self._approvals.check_typing(session, caller)
        session.touched_by(*caller.everyone)

        async def effect(open_item: Json) -> None:
            sample, activity = await session_view.observe(session, self._screens)
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
                force=caller.is_person,
                why=why_of(request),
                exec_id=open_item["id"],
                **{"as": caller.actor},
            )

        try:
            return await self._end(item, "answer", request, caller, effect=effect)
        except HoldfastError as e:
            by = await self._desk.landed(item) if e.code == "conflict" else None
            if by is not None and by["operator"] == caller.operator and item["id"] in self._desk.inbox.entries:
                return await self._end(item, "answer", request, caller)  # it was typed; only the reply was lost
            await self._desk.watch.look([session])  # what is no longer true leaves the inbox now
            raise

    async def _hand_to_asker(self, item: Json, request: Answer, caller: Caller) -> Json:
        """The holder gives the controls to the one who asked for them."""
        session = await find.live(self._registry, item["session"], caller)

        async def effect(open_item: Json) -> None:
            asker = open_item["asker"]["operator"]
            await self._hand_over.hand(session, asker, request, caller, note=why_of(request))

        return await self._end(item, "approve", request, caller, effect=effect)

    async def _hand_back(self, item: Json, request: Answer, caller: Caller) -> Json:
        """The holder, who is away, gives the controls back to whom they were taken from, or gives them up."""
        session = await find.live(self._registry, item["session"], caller)

        async def effect(open_item: Json) -> None:
            source = session.controls.get("from")
            if source:
                await self._hand_over.hand(session, source["operator"], request, caller, note=why_of(request))
            else:
                await session.line.act("release", why=why_of(request), **{"as": caller.actor})

        return await self._end(item, "approve", request, caller, effect=effect)


def check_line(data: bytes) -> None:
    """An answer is one line: a second would land in the next prompt, a control character is a key, not a text."""
    if len(data) >= CANONICAL_LINE_MAX:
        raise invalid(f"an answer of {len(data)} bytes", f"a line has at most {CANONICAL_LINE_MAX - 1}")
    if any((b < 0x20 and b != 0x09) or b == 0x7F for b in data):
        raise invalid("an answer is one line of text, without control characters", "hold send types anything else")
