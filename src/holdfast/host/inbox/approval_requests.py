"""What an agent may not simply do: commands that need a human's yes, controls that a human holds."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable
from typing import Any

from ...api.operation import Operation
from ...model.errors import HoldfastError
from ...model.inbox import approval_rules
from .. import repeated_requests
from ..exec.start import Execs
from ..journal.journal import Journal
from ..journal.session_entries import why_of
from ..operators.caller import Caller
from ..operators.operators import Operators
from ..sessions import manifest
from ..sessions.registry import Registry
from ..sessions.session import Session
from .prompt_watch import about
from .standing_requests import Asked, Standing, kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .approval_gate import Used
    from .inbox_host import Desk

Json = dict[str, Any]


class Approvals:
    """Each returns when it may go on, and raises `not_allowed` when a human said no or none said anything."""

    def __init__(
        self,
        desk: Desk,
        standing: Standing,
        registry: Registry,
        operators: Operators,
        execs: Execs,
        journal: Journal,
    ) -> None:
        self._desk, self._standing, self._registry = desk, standing, registry
        self._operators, self._execs, self._journal = operators, execs, journal

    async def to_exec(
        self, session: Session, source: bytes, exec_id: str | None, request: Operation[Any], caller: Caller
    ) -> None:
        await self._approve(
            "exec",
            caller,
            session.name,
            source,
            session=about(session),
            request=request,
            key=f"exec:{session.id}:{exec_id}" if exec_id else None,
            used=lambda: self.was_typed(session, exec_id or "", old=True),
        )
        _still_live(session)

    async def was_typed(self, session: Session, exec_id: str, *, old: bool = False) -> bool:
        """Whether a command that a host may have died over was typed: by its record, and where that leaves it open by
        what the keeper knows. An `old` one may be without a record because that was dropped."""
        record = self._execs.record(session, exec_id)
        if record is None and not old:
            return False
        if record is not None and (record.get("void") or record["start"] is not None):
            return not record.get("void")
        if await self._desk.typed(session, exec_id) is not False:
            return True
        if record is not None:
            await self._execs.void(session, record)
        return False

    async def to_send(
        self, session: Session, data: bytes, request: Operation[Any], caller: Caller, *, secret: bool
    ) -> None:
        """`data` with all that is typed, the end of input included."""
        if secret:
            self.check_typing(session, caller)  # a secret cannot be shown to anybody
        elif data:
            name = repeated_requests.name_of(request)
            await self._approve(
                "send",
                caller,
                session.name,
                data,
                session=about(session),
                request=request,
                key=f"send:{session.id}:{name}" if name else None,
            )
            _still_live(session)

    async def to_run(self, wanted: Json, request: Operation[Any], caller: Caller) -> None:
        """`wanted` is the start as it will be made."""
        id, sessions = wanted.get("request"), self._registry.sessions.values()
        if caller.is_person or (id and any(s.manifest.get("request") == id for s in sessions)):
            return  # what was started already is not started again, and whose it is gets checked there
        env = manifest.check_env(wanted.get("env") or {})
        words = manifest.check_command(wanted.get("command"), env)
        name = str(wanted.get("name") or manifest.free_name(words, self._registry.names()))
        base = caller.session.manifest["env"] if caller.session else dict(os.environ)
        detail = {
            "cwd": approval_rules.visible(str(wanted.get("cwd") or "")),
            "name": name,
            "acts_as": approval_rules.visible(self._name_of(wanted.get("acts_as")) or caller.name),
            "env": approval_rules.env_changes(env, base),
        }
        approval_rules.check_length(repr(detail))
        command = shlex.join(words).encode("utf-8", "surrogateescape")
        key = f"run:{id}" if id else None
        await self._approve("run", caller, name, command, detail=detail, request=request, key=key, wanted=wanted)

    async def to_restart(self, session: Session, request: Operation[Any], caller: Caller) -> None:
        """What runs again runs: a rule for starts is about that, too."""
        m = session.manifest
        detail = {
            "cwd": approval_rules.visible(str(m["cwd"])),
            "name": session.name,
            "acts_as": approval_rules.visible(self._name_of(m["acts_as"])),
            "restart": True,
        }
        command = shlex.join(session.command).encode("utf-8", "surrogateescape")
        await self._approve("run", caller, session.name, command, detail=detail, request=request)

    async def _approve(
        self,
        verb: str,
        caller: Caller,
        name: str,
        command: bytes,
        *,
        request: Operation[Any],
        session: Json | None = None,
        detail: Json | None = None,
        key: str | None = None,
        used: Used | None = None,
        wanted: Json | None = None,
    ) -> None:
        if caller.approved is not None:
            return
        told = {**(detail or {}), **({"why": why} if (why := why_of(request)) else {})}
        actor, *others = caller.ruled
        shown: Json = {"session": session, "detail": told, "request": key, "others": others}
        if getattr(request, "standing", False) and actor["kind"] != "human":
            asked = {"op": request.row.op, **(vars(request) if wanted is None else wanted)}
            await self._stand(
                asked,
                caller,
                session,
                lambda stands: self._desk.gate.ask(verb, actor, name, command, **shown, stands=stands),
            )
        else:
            await self._desk.gate.approve(verb, actor, name, command, **shown, used=used)

    async def _stand(
        self, asked: Json, caller: Caller, session: Json | None, ask: Callable[[Json], Awaitable[Json | None]]
    ) -> None:
        """Leave the request with the item that asks for it, where a rule wants one: the call ends, and it stays."""
        stands = kept(asked, caller.kept, session)
        item = await self._standing.ask(stands, lambda: ask(stands))
        if item is not None:
            raise Asked(item)

    def check_typing(self, session: Session, caller: Caller) -> None:
        actor, *others = caller.ruled
        self._desk.gate.check_typing(actor, session.name, others)

    def _name_of(self, operator: object) -> str:
        who = self._operators.by_id.get(str(operator))
        return who.name if who is not None else str(operator or "")

    # -- the controls that a human holds

    async def or_request(self, session: Session, caller: Caller, why: str | None, e: HoldfastError) -> HoldfastError:
        """The error for a caller whom the controls were refused: where a human holds them, that human is asked."""
        if e.code != "conflict" or caller.kind == "human" or session.controls["kind"] != "human":
            return e
        item = await self._request_controls(session, caller, why)
        return HoldfastError("conflict", e.message, f"asked for them: {item['id']}")

    async def ask_holder(self, session: Session, caller: Caller, why: str | None, wait_s: float) -> None:
        """A human whose controls another human wants is asked, for a while. Returns when they can be taken without
        force; what the keeper knows decides then."""
        held = session.controls
        if caller.kind != "human" or held["kind"] != "human" or held["holder"] == caller.operator:
            return
        who, item = held.get("name") or held["holder"], await self._request_controls(session, caller, why)
        hint = f"--force takes them unasked, and {who} is told: hold take {session.name} --force"
        try:
            async with asyncio.timeout(wait_s):
                item = await self._desk.gate.held(item)
        except TimeoutError:
            raise HoldfastError("conflict", f"{who} (human) holds the controls and did not answer", hint) from None
        if item["state"] == "denied":
            raise HoldfastError("conflict", f"{who} (human) holds the controls and said no", hint)

    async def _request_controls(self, session: Session, caller: Caller, why: str | None) -> Json:
        """What an agent gets instead of the controls that a human holds: an item for that human."""
        holder = session.controls["holder"]
        for item in self._desk.inbox.open_items():
            if (item["kind"], item["session"]) == ("control_request", session.id):
                if item["asker"]["operator"] == caller.operator and item["detail"]["holder"] == holder:
                    return item
        item = await self._desk.inbox.add(
            "control_request",
            session=about(session),
            asker=caller.actor,
            text=why or "",
            detail={"holder": holder, "holder_name": session.controls.get("name"), "why": why},
        )
        await self._journal.written()
        return item


def _still_live(session: Session) -> None:
    if not session.connected:
        raise HoldfastError("conflict", f"{session.name} ended meanwhile", f"hold restart {session.name}")
