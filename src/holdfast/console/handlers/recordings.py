"""A session's recording over HTTP: its output with times, page by page, and marks for who did what when."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from ...client._async.host import AsyncHost
from ...model import timeline_text
from ...model.errors import HoldfastError
from ..http.routes import HttpCall, Nothing, Route

Json = dict[str, Any]

_ENTRIES_MAX = 5000  # of the journal behind one scrubber: more marks than it has pixels
_EXECS_MAX = 100  # commands whose exit codes are looked up, the latest
_UNTOLD = ("resize", "refuse", "attach", "detach")  # sizes are in the recording; what was refused did not happen


class From(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    from_: int | None = msgspec.field(default=None, name="from")


class Recorded(msgspec.Struct, frozen=True):
    """`output` has `data` (base64) from `offset` on; `size` has cols and rows; `gap` reaches from `offset` to `to`."""

    at: float
    kind: str
    offset: int
    data: str | None = None
    stream: str | None = None
    cols: int | None = None
    rows: int | None = None
    to: int | None = None


class Recording(msgspec.Struct, frozen=True):
    """A page of events, times in seconds since 1970; the next one with from=next, None where this was the last."""

    session: str
    start: int
    end: int
    next: int | None
    events: list[Recorded]


class Mark(msgspec.Struct, frozen=True):
    """Something to jump to. `kind`: human, agent, service, command, checkpoint or host."""

    at: str
    kind: str
    text: str
    offset: int | None = None
    by: str | None = None
    exec_id: str | None = None
    exit_code: int | None = None
    state: str | None = None
    run: str | None = None
    checkpoint: int | None = None


async def recording(call: HttpCall[From, Nothing]) -> Any:
    about = await call.host.call("offset", session=call.word("session"))
    page = await call.host.call("recording", session=about["session"], start=call.query.from_)
    return Recording(about["session"], page["start"], about["end"], page["next"], events(page))


def events(page: Json) -> list[Recorded]:
    """A page of the host as events that say where they stand."""
    offset, found = int(page["start"]), []
    for at, code, value in page["events"]:
        if code == "r":
            cols, _, rows = value.partition("x")
            found.append(Recorded(at, "size", offset, cols=int(cols), rows=int(rows)))
        elif code == "gap":
            end = int(value.partition("-")[2])
            found.append(Recorded(at, "gap", offset, to=end))
            offset = end
        else:
            found.append(Recorded(at, "output", offset, data=value, stream="stderr" if code == "e" else None))
            offset += len(value) // 4 * 3 - value[-2:].count("=")
    return found


async def marks(call: HttpCall[Nothing, Nothing]) -> Any:
    session = (await call.host.call("offset", session=call.word("session")))["session"]
    entries = await _entries(call.host, session)
    codes = await _exit_codes(call.host, session, entries)
    found = [*told(entries, codes), *await _checkpoints(call.host, session)]
    found.sort(key=lambda mark: mark.at)
    for n, mark in enumerate(found):
        if mark.offset is None and mark.kind != "host":
            at = datetime.fromisoformat(mark.at).timestamp()
            where = await call.host.call("offset", session=session, since=at)
            found[n] = msgspec.structs.replace(mark, offset=where["at"])
    return found


def told(entries: list[Json], codes: dict[str, Json]) -> list[Mark]:
    """The journal's entries as marks: each sentence with who did it; a command with how it ended."""
    found = []
    for entry in entries:
        lines = list(timeline_text.tell([entry], names=False)) if entry["kind"] not in _UNTOLD else []
        if not lines:
            continue
        exec_id = entry.get("exec_id") if entry["kind"] == "exec" else None
        ended = codes.get(exec_id or "", {})
        kind = "command" if exec_id else entry["operator_kind"] or "host"
        found.append(
            Mark(
                entry["at"],
                kind,
                lines[0].text,
                entry["offset"],
                entry["name"],
                exec_id,
                ended.get("exit_code"),
                ended.get("state"),
            )
        )
    return found


async def _entries(host: AsyncHost, session: str) -> list[Json]:
    entries: list[Json] = []
    before: int | None = None
    while len(entries) < _ENTRIES_MAX:
        page = await host.timeline(session, before=before)
        entries = page["entries"] + entries
        before = page["next"]
        if before is None:
            break
    return entries


async def _exit_codes(host: AsyncHost, session: str, entries: list[Json]) -> dict[str, Json]:
    execs = [entry["exec_id"] for entry in entries if entry["kind"] == "exec" and entry.get("exec_id")]
    found = {}
    for exec_id in execs[-_EXECS_MAX:]:
        try:
            found[exec_id] = await host.call("exec_result", session=session, exec_id=exec_id)
        except HoldfastError as e:
            if e.code not in ("not_found", "invalid"):
                raise
    return found


async def _checkpoints(host: AsyncHost, session: str) -> list[Mark]:
    try:
        kept = await host.work.call("session_checkpoints", session=session)
    except HoldfastError as e:
        if e.code == "not_allowed":
            return []  # who may see the session need not see the work
        raise
    return [
        Mark(
            c["at"],
            "checkpoint",
            c["label"] or f"checkpoint {c['seq']}",
            None,
            c["by"],
            run=c["run"],
            checkpoint=c["seq"],
        )
        for c in kept
    ]


_ONE = "/api/sessions/{session}"
ROUTES = [
    Route(
        "GET",
        _ONE + "/recording",
        "Recorded output with its times, a page at a time.",
        Recording,
        recording,
        query=From,
    ),
    Route("GET", _ONE + "/marks", "Who did what when, commands with exit codes, checkpoints.", list[Mark], marks),
]
