"""Operations on the inbox: ask, look, follow. What answers an item is in answering.py."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from ...api.inbox import Answer, Asked, AskPerson, Decided, Inbox, Withdraw
from ...model import ids
from ...model.errors import HoldfastError, invalid
from ...model.inbox import approval_rules
from ...model.inbox import item as asks
from ...model.names import refused
from ..journal.journal import Journal
from ..journal.session_entries import why_of
from ..operators.caller import Caller
from ..sessions import find
from ..sessions.registry import Registry
from . import hook_dialogs
from .answering import Answering
from .inbox_host import Desk
from .prompt_watch import about
from .visible_items import VisibleItems

Json = dict[str, Any]

_ID = re.compile(r"ask_[0-9a-z]{16}")


class InboxParts(NamedTuple):
    """What the handlers here use of the host; `look_for_parked` brings parked runs into the inbox."""

    desk: Desk
    items: VisibleItems
    answering: Answering
    registry: Registry
    journal: Journal
    look_for_parked: Callable[[], Awaitable[None]]


# -- asking


@AskPerson.answered
async def ask(parts: InboxParts, caller: Caller, request: AskPerson) -> Json:
    text, options = asks.check_question(request.text, request.options)
    session = await find.found(parts.registry, request.session, caller) if request.session else None
    dialog = None if request.dialog is None else asks.check_dialog(request.dialog)
    if dialog is not None:  # where its agent runs is the kernel's word
        session = caller.session or session
    id, held_s = request.ask, request.held
    if id is not None and not _ID.fullmatch(id):
        raise invalid(f"{id[:40]!r} is not an ask id", "leave it out and one is made")
    if id is not None and (known := await _known(parts, id, caller)) is not None:
        return parts.items.view(await _waited_for(parts, known, held_s))  # sent again because the reply was lost
    detail = {"why": why} if (why := why_of(request)) else {}
    if request.kind == "approval":
        text = approval_rules.visible(text)  # a person who says yes has seen all of it
    id = id or ids.new("ask_")
    try:
        item = await parts.desk.inbox.add(
            request.kind,
            session=about(session) if session else None,
            asker=caller.actor,
            text=text,
            options=options,
            detail=detail,
            ask=id,
            more=_asked_by(dialog, caller),
        )
        await parts.journal.written()
    except asyncio.CancelledError:  # while it was written down: it is there, and whom it was for is not
        if held_s is not None:
            await parts.desk.gate.left(id, asks.LEFT if dialog else None)
        raise
    if dialog is not None and session is not None:
        await parts.desk.reported(session)
    return parts.items.view(await _waited_for(parts, item, held_s))


def _asked_by(dialog: Json | None, caller: Caller) -> Json:
    process = hook_dialogs.nearest(caller.peer.sock) if dialog and caller.peer is not None else None
    return {"dialog": dialog, "process": process} if dialog else {}


async def _waited_for(parts: InboxParts, item: Json, held_s: float | None) -> Json:
    """With `held` the item is there as long as its asker waits for it, and so many seconds at most."""
    if held_s is None:
        return item
    try:
        async with asyncio.timeout(held_s):
            return await parts.desk.inbox.settled(item["id"])
    except TimeoutError:
        await parts.desk.gate.left(item["id"])
        return await parts.desk.inbox.find(item["id"])
    except asyncio.CancelledError:
        await parts.desk.gate.left(item["id"], asks.LEFT if item.get("dialog") else None)
        raise


@Decided.answered
async def decided(parts: InboxParts, caller: Caller, request: Decided) -> Json:
    given = vars(request)
    over = asks.check_dialog(given) or {}
    if "agent" not in given:
        del over["agent"]
    over["began"] = request.began or float("inf")
    mine = [i for i in parts.desk.inbox.open_items() if (i["asker"] or {}).get("operator") == caller.operator]
    found = [i["id"] for i in asks.decided(mine, over)]
    await parts.desk.inbox.vanish(lambda i: i["id"] in found, asks.DECIDED)
    return {"ended": found}


async def _known(parts: InboxParts, ask: str, caller: Caller) -> Json | None:
    try:
        return await parts.items.find(ask, caller)
    except HoldfastError:
        return None


@Withdraw.answered
async def withdraw(parts: InboxParts, caller: Caller, request: Withdraw) -> Json:
    item = await parts.items.find(request.ask, caller)
    if not item["asker"] or item["asker"]["operator"] != caller.operator:
        raise refused(f"{item['id']} is not yours to take back", "hold answer answers it")
    await parts.desk.inbox.vanish(lambda i: i["id"] == item["id"])
    return parts.items.view(await parts.desk.inbox.find(item["id"]))


@Asked.answered
async def asked(parts: InboxParts, caller: Caller, request: Asked) -> Json:
    item = await parts.items.find(request.ask, caller)
    try:
        async with asyncio.timeout(request.timeout):
            item = await parts.desk.inbox.settled(item["id"])
    except TimeoutError:
        pass
    return parts.items.view(item)


@Answer.answered
async def answer(parts: InboxParts, caller: Caller, request: Answer) -> Json:
    item = await parts.items.find(request.ask, caller)
    return parts.items.view(await parts.answering.answer(item, request, caller))


# -- looking


@Inbox.answered
async def inbox(parts: InboxParts, caller: Caller, request: Inbox) -> Json:
    box = parts.desk.inbox
    if request.follow:
        with parts.desk.watch.followed():
            return await _follow(parts, request.after, caller)
    await _look(parts, caller)
    last = box.last
    found = await box.since(0) if request.all else box.open_items()
    return {"items": parts.items.shown(found, caller), "last": last}


async def _follow(parts: InboxParts, after: int | None, caller: Caller) -> Json:
    """What is open, or what has changed since: an answer comes when there is something to tell."""
    box = parts.desk.inbox
    if after is None:
        await _look(parts, caller)
        last = box.last
        return {"items": parts.items.shown(box.open_items(), caller), "last": last}
    seen = after
    while True:
        await box.change(seen)
        found = await box.since(seen)
        seen = max((int(i["changed"]) for i in found), default=seen)
        shown = parts.items.shown(found, caller)
        if shown:
            return {"items": shown, "last": seen}


async def _look(parts: InboxParts, caller: Caller) -> None:
    sessions = [s for s in parts.registry.sessions.values() if s.connected and caller.may("view", s)]
    await parts.desk.watch.look(sessions)
    await parts.look_for_parked()
