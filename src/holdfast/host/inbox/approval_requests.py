"""What an agent may not simply do: commands that need a human's yes, controls that a human holds."""

from __future__ import annotations

import asyncio
import os
import shlex
from typing import Any

from ...model.errors import HoldfastError
from ...model.inbox import approval_rules
from .. import repeated_requests
from ..base import Base, why_of
from ..sessions import manifest
from ..sessions.session import Session
from .prompt_watch import about
from .standing_requests import Asked, kept

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..operators.caller import Caller
    from .approval_gate import Used

Json = dict[str, Any]


class Approving(Base):
    """Each returns when it may go on, and raises `not_allowed` when a human said no or nobody said anything."""

    async def _approve_exec(self, session: Session, source: bytes, request: Json, caller: Caller) -> None:
        exec_id = str(request.get("exec_id") or "")
        await self._approve(
            "exec",
            caller,
            session.name,
            source,
            session=about(session),
            request=request,
            key=f"exec:{session.id}:{exec_id}" if exec_id else None,
            used=lambda: self._was_typed(session, exec_id, old=True),
        )
        self._still_live(session)

    async def _was_typed(self, session: Session, exec_id: str, *, old: bool = False) -> bool:
        """Whether a command that a host may have died over was typed: by its record, and where that leaves it open by
        what the keeper knows. An `old` one may be without a record because that was dropped."""
        record = self.execs.record(session, exec_id)
        if record is None and not old:
            return False
        if record is not None and (record.get("void") or record["start"] is not None):
            return not record.get("void")
        if await self.desk.typed(session, exec_id) is not False:
            return True
        if record is not None:
            await self.execs.void(session, record)
        return False

    async def _approve_send(self, session: Session, data: bytes, request: Json, caller: Caller) -> None:
        typed = data + (b"\x04" if request.get("eof") else b"")
        if request.get("secret"):
            self._check_typing(session, caller)  # a secret cannot be shown to anybody
        elif typed:
            name = repeated_requests.name_of(request)
            await self._approve(
                "send",
                caller,
                session.name,
                typed,
                session=about(session),
                request=request,
                key=f"send:{session.id}:{name}" if name else None,
            )
            self._still_live(session)

    async def _approve_run(self, request: Json, caller: Caller) -> None:
        wanted, sessions = request.get("request"), self.registry.sessions.values()
        if self._is_person(caller) or (wanted and any(s.manifest.get("request") == wanted for s in sessions)):
            return  # what was started already is not started again, and whose it is gets checked there
        env = manifest.check_env(request.get("env") or {})
        words = manifest.check_command(request.get("command"), env)
        name = str(request.get("name") or manifest.free_name(words, self.registry.names()))
        base = caller.session.manifest["env"] if caller.session else dict(os.environ)
        detail = {
            "cwd": approval_rules.visible(str(request.get("cwd") or "")),
            "name": name,
            "acts_as": approval_rules.visible(self._name_of(request.get("acts_as")) or caller.name),
            "env": approval_rules.env_changes(env, base),
        }
        approval_rules.check_length(repr(detail))
        command = shlex.join(words).encode("utf-8", "surrogateescape")
        key = f"run:{request['request']}" if request.get("request") else None
        await self._approve("run", caller, name, command, detail=detail, request=request, key=key)

    async def _approve_restart(self, session: Session, request: Json, caller: Caller) -> None:
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
        request: Json,
        session: Json | None = None,
        detail: Json | None = None,
        key: str | None = None,
        used: Used | None = None,
    ) -> None:
        if caller.approved is not None:
            return
        told = {**(detail or {}), **({"why": why} if (why := why_of(request)) else {})}
        actor, *others = self._ruled(caller)
        shown: Json = {"session": session, "detail": told, "request": key, "others": others}
        if request.get("standing") and actor["kind"] != "human":
            await self._stand(
                request,
                caller,
                session,
                lambda stands: self.desk.gate.ask(verb, actor, name, command, **shown, stands=stands),
            )
        else:
            await self.desk.gate.approve(verb, actor, name, command, **shown, used=used)

    async def _stand(
        self, request: Json, caller: Caller, session: Json | None, ask: Callable[[Json], Awaitable[Json | None]]
    ) -> None:
        """Leave the request with the item that asks for it, where a rule wants one: the call ends, and it stays."""
        stands = kept(request, caller.kept, session)
        item = await self.standing.ask(stands, lambda: ask(stands))
        if item is not None:
            raise Asked(item)

    def _check_typing(self, session: Session, caller: Caller) -> None:
        actor, *others = self._ruled(caller)
        self.desk.gate.check_typing(actor, session.name, others)

    def _ruled(self, caller: Caller) -> list[Json]:
        """Whose rules count, all of them: any agent that had its hands on a person's shell may be who calls from it."""
        known = (self.operators.by_id.get(other) for other in caller.everyone)
        agents = [who.actor for who in known if who is not None and who.kind != "human"]
        return agents or [caller.actor]

    def _name_of(self, operator: object) -> str:
        who = self.operators.by_id.get(str(operator))
        return who.name if who is not None else str(operator or "")

    def _is_person(self, caller: Caller) -> bool:
        return bool(self._ruled(caller)[0]["kind"] == "human")

    # -- the controls that a human holds

    async def _or_request(self, session: Session, caller: Caller, why: str | None, e: HoldfastError) -> HoldfastError:
        """The error for someone whom the controls were refused: where a human holds them, that human has been asked."""
        if e.code != "conflict" or caller.kind == "human" or session.controls["kind"] != "human":
            return e
        item = await self._request_controls(session, caller, why)
        return HoldfastError("conflict", e.message, f"asked for them: {item['id']}")

    async def _ask_holder(self, session: Session, caller: Caller, why: str | None, wait_s: float) -> None:
        """A human whose controls another human wants is asked, for a while. Returns when they can be taken without
        force; what the keeper knows decides then."""
        held = session.controls
        if caller.kind != "human" or held["kind"] != "human" or held["holder"] == caller.operator:
            return
        who, item = held.get("name") or held["holder"], await self._request_controls(session, caller, why)
        hint = f"--force takes them unasked, and {who} is told: hold take {session.name} --force"
        try:
            async with asyncio.timeout(wait_s):
                item = await self.desk.gate.held(item)
        except TimeoutError:
            raise HoldfastError("conflict", f"{who} (human) holds the controls and did not answer", hint) from None
        if item["state"] == "denied":
            raise HoldfastError("conflict", f"{who} (human) holds the controls and said no", hint)

    async def _request_controls(self, session: Session, caller: Caller, why: str | None) -> Json:
        """What an agent gets instead of the controls that a human holds: an item for that human."""
        holder = session.controls["holder"]
        for item in self.desk.inbox.open_items():
            if (item["kind"], item["session"]) == ("control_request", session.id):
                if item["asker"]["operator"] == caller.operator and item["detail"]["holder"] == holder:
                    return item
        item = await self.desk.inbox.add(
            "control_request",
            session=about(session),
            asker=caller.actor,
            text=why or "",
            detail={"holder": holder, "holder_name": session.controls.get("name"), "why": why},
        )
        await self.journal.written()
        return item

    @staticmethod
    def _still_live(session: Session) -> None:
        if not session.connected:
            raise HoldfastError("conflict", f"{session.name} ended meanwhile", f"hold restart {session.name}")
