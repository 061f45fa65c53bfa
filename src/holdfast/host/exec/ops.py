"""Operations on commands in a session's shell: run one, ask how it stands."""

from __future__ import annotations

import base64
import os
import time
from typing import Any, NamedTuple

from ...api.exec import Exec, ExecOutcome, ExecResult
from ...model import limits
from ...model.errors import invalid
from ..inbox.approval_requests import Approvals
from ..inbox.standing_requests import Standing, pending
from ..journal.journal import Journal
from ..journal.session_entries import note, why_of
from ..operators.caller import Caller
from ..sessions import find
from ..sessions.registry import Registry
from ..sessions.session import Session
from . import kernel_cells
from .command import Command
from .shells.quoting import quote
from .start import Execs

Json = dict[str, Any]


class ExecParts(NamedTuple):
    """What the handlers here use of the host."""

    registry: Registry
    execs: Execs
    approvals: Approvals
    standing: Standing
    journal: Journal


@Exec.answered
async def exec_(parts: ExecParts, caller: Caller, request: Exec) -> Json:
    session = await find.live(parts.registry, request.session, caller)
    if not request.words:
        raise invalid("no command to run", "hold exec SESSION -- COMMAND")
    encoded = [os.fsencode(w) for w in request.words]
    join = b" ".join if session.kind == "kernel" else quote
    source = encoded[0] if len(encoded) == 1 else join(encoded)
    timeout = request.timeout
    await parts.approvals.to_exec(session, source, request.exec_id, request, caller)

    def typed(command: Command) -> None:
        note(
            parts.journal,
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
        command = await parts.execs.start(
            session,
            source,
            caller.holding(request),
            typed,
            request.exec_id,
            why_of(request),
            step=request.step,
            again=caller.approved is not None,
            timeout=timeout,
        )
    if request.start_only:
        while command.record["start"] is None and command.running:
            await command.changed.wait()
        await parts.journal.written()
        return parts.execs.result(command)
    if timeout is not None and session.kind != "kernel":
        timeout = max(0.0, timeout - (time.monotonic() - began))  # a shell that was loading had its part
    result = await parts.execs.wait(command, timeout)
    await parts.journal.written()  # its commit ran while the command did
    return _with_output(session, result, command)


@ExecResult.answered
async def exec_result(parts: ExecParts, caller: Caller, request: ExecResult) -> Json:
    session = await find.found(parts.registry, request.session, caller)
    exec_id, timeout = request.exec_id, request.timeout
    began, ask = time.monotonic(), parts.standing.of_exec(session.id, exec_id)
    if ask is not None:
        item = await parts.standing.decided_for(ask, timeout if request.wait else 0.0, caller.everyone)
        if not item["stands"].get("done"):
            return _not_begun(session, item)
        exec_id = item["stands"]["exec_id"]
    command = parts.execs.find(session, exec_id)
    if request.wait:
        left = None if timeout is None else max(0.0, timeout - (time.monotonic() - began))
        await parts.execs.wait(command, left)
    if ask is not None and not command.running and caller.operator == command.record["operator"]:
        await parts.standing.told(ask)
    return _with_output(session, parts.execs.result(command), command)


@ExecOutcome.answered
async def exec_outcome(parts: ExecParts, caller: Caller, request: ExecOutcome) -> Json:
    session = await find.found(parts.registry, request.session, caller)
    if parts.standing.waits(parts.standing.of_exec(session.id, request.exec_id)):
        return {"known": "running", "exec_id": request.exec_id}
    return parts.execs.outcome(session, request.exec_id, request.since)


def _not_begun(session: Session, item: Json) -> Json:
    """A command's result while a person is asked about it (or, approved, it waits for the shell)."""
    end = session.end
    empty = dict.fromkeys(("exit_code", "start", "cwd", "prompt"))
    return {"exec_id": item["stands"]["exec_id"], **empty, "end": end, "duration_ms": 0, **pending(item)}


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
