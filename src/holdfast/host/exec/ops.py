"""Operations on commands in a session's shell: run one, ask how it stands."""

from __future__ import annotations

import base64
import os
import time
from typing import Any

from ...model import limits
from ...model.errors import HoldfastError, invalid
from ..base import number, why_of
from ..inbox.approval_requests import Approving
from ..inbox.standing_requests import pending
from ..sessions.session import Session
from . import kernel_cells
from .command import Command
from .shells.quoting import quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..operators.caller import Caller

Json = dict[str, Any]


class Commands(Approving):
    """exec, exec_result and exec_outcome."""

    async def op_exec(self, request: Json, caller: Caller) -> Json:
        session = await self._live(request, caller)
        words = request.get("words")
        if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
            raise invalid("no command to run", "hold exec SESSION -- COMMAND")
        encoded = [os.fsencode(w) for w in words]
        join = b" ".join if session.kind == "kernel" else quote
        source = encoded[0] if len(encoded) == 1 else join(encoded)
        timeout = number(request.get("timeout"), "a timeout")
        await self._approve_exec(session, source, request, caller)

        def typed(command: Command) -> None:
            self._note(
                "exec",
                session,
                caller,
                request,
                alone=True,
                exec_id=command.id,
                text=command.record["source"],
                epoch=command.record.get("epoch"),
                offset=command.record["from"],
            )

        began = time.monotonic()
        with session.touching(*caller.everyone):
            command = await self.execs.start(
                session,
                source,
                caller.holding(request),
                typed,
                request.get("exec_id"),
                why_of(request),
                step=bool(request.get("step")),
                again=caller.approved is not None,
                timeout=timeout,
            )
        if request.get("start_only"):
            while command.record["start"] is None and command.running:
                await command.changed.wait()
            await self.journal.written()
            return self.execs.result(command)
        if timeout is not None and session.kind != "kernel":
            timeout = max(0.0, timeout - (time.monotonic() - began))  # a shell that was loading had its part
        result = await self.execs.wait(command, timeout)
        await self.journal.written()  # its commit ran while the command did
        return self._with_output(session, result, command)

    async def op_exec_result(self, request: Json, caller: Caller) -> Json:
        session = await self._find(request, caller)
        exec_id, timeout = str(request.get("exec_id") or ""), number(request.get("timeout"), "a timeout")
        began, ask = time.monotonic(), self.standing.of_exec(session.id, exec_id)
        if ask is not None:
            item = await self._decided(ask, timeout if request.get("wait") else 0.0, caller)
            if not item["stands"].get("done"):
                return self._not_begun(session, item)
            exec_id = item["stands"]["exec_id"]
        command = self.execs.find(session, exec_id)
        if request.get("wait"):
            left = None if timeout is None else max(0.0, timeout - (time.monotonic() - began))
            await self.execs.wait(command, left)
        if ask is not None and not command.running and caller.operator == command.record["operator"]:
            await self.standing.told(ask)
        return self._with_output(session, self.execs.result(command), command)

    @staticmethod
    def _not_begun(session: Session, item: Json) -> Json:
        """A command's result while a person is asked about it (or, approved, it waits for the shell)."""
        end = session.end
        empty = dict.fromkeys(("exit_code", "start", "cwd", "prompt"))
        return {"exec_id": item["stands"]["exec_id"], **empty, "end": end, "duration_ms": 0, **pending(item)}

    async def _decided(self, ask: str, timeout: float | None, caller: Caller) -> Json:
        """`Standing.decided`, for an asker that is told of a no with this very answer."""
        try:
            return await self.standing.decided(ask, timeout)
        except HoldfastError:
            if ((await self.desk.inbox.find(ask))["asker"] or {}).get("operator") in caller.everyone:
                await self.standing.told(ask)
            raise

    async def _done(self, session: Session, exec_id: str) -> tuple[str, int, Json]:
        """For `wait --for done`: a command that a person is asked about has not ended."""
        ask = self.standing.of_exec(session.id, exec_id)
        if ask is not None:
            exec_id = (await self.standing.decided(ask, None))["stands"]["exec_id"]
        return await self.execs.done(session, exec_id)

    async def op_exec_outcome(self, request: Json, caller: Caller) -> Json:
        """For a step that was begun and not ended: `ended`, `running`, `never` (and from now on refused), `unknown`."""
        session = await self._find(request, caller)
        exec_id = str(request.get("exec_id") or "")
        if self.standing.waits(self.standing.of_exec(session.id, exec_id)):
            return {"known": "running", "exec_id": exec_id}
        return self.execs.outcome(session, exec_id, str(request.get("since") or ""))

    @staticmethod
    def _with_output(session: Session, result: Json, command: Command) -> Json:
        """Small output comes along; large output is read by offset, past this process. Cells have data too."""
        if session.kind == "kernel":
            result.update(kernel_cells.kept(session, result["exec_id"], result["state"]))
        if result["start"] is not None and result["end"] - result["start"] <= limits.INLINE_OUTPUT_BYTES:
            data = command.heard.part(result["start"], result["end"])
            if data is None:
                pieces = session.reader.pieces(result["start"], result["end"])
                data = b"".join(p.data for p in pieces if p.data is not None)
            result["raw"] = base64.b64encode(data).decode()
            result["gone"] = result["end"] - result["start"] - len(data)
        return result
