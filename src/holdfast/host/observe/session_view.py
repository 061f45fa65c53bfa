"""The session object of the contract, built from what was observed just now."""

from __future__ import annotations

import logging
import os
import time
from typing import Any

from ...log.reader import LogReader
from ...model.errors import HoldfastError
from ...model.sessions.activity import Activity, judge
from ...model.times import rfc3339
from ...system import cgroup
from ..screen.emulators import Screens
from ..sessions import jupyter_kernel
from ..sessions.session import Session
from ..sessions.state import State
from . import open_files, ports, processes
from .quiet import output_age_s

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")


def exit_view(record: Json | None) -> Json | None:
    return None if record is None else {**record, "at": rfc3339(record.get("at"))}


def controls_view(controls: Json) -> Json:
    """`from` is whom they were taken from; `ends_at` when a takeover ends whose person is away."""
    return {k: controls[k] for k in ("holder", "kind", "name", "epoch")} | {
        "since": rfc3339(controls["since"]),
        "from": controls.get("from"),
        "ends_at": rfc3339(controls.get("ends_at")),
    }


def attached_view(attached: list[Json]) -> list[Json]:
    return [{**a, "since": rfc3339(a.get("since"))} for a in attached]


def base(session: Session, host_id: str) -> Json:
    """What is known without asking anybody."""
    m = session.manifest
    pending = session.notes.restart_at
    return {
        "id": session.id,
        "name": session.name,
        "host": host_id,
        "kind": session.kind,
        "generation": m["generation"],
        "state": session.state,
        "attached_count": len(session.attached),
        "activity": None,
        "command": session.command,
        "cwd": m["cwd"],
        "pid": None,
        "created_at": rfc3339(m["created_at"]),
        "started_at": rfc3339(m["started_at"]),
        "started_by": m["started_by"],
        "acts_as": m["acts_as"],
        "isolation": m.get("isolation"),
        "restart": m["restart"],
        "restart_at": rfc3339(pending) if pending and not session.live else None,
        "idle_ttl_s": m["idle_ttl_s"],
        "reap_at": rfc3339(session.notes.reap_at) if session.live else None,
        **jupyter_kernel.described(session),
        **({"record": m["record"]} if m.get("record") else {}),
        "exit": exit_view(session.exit),
        "output": None,
        "ports": [],
        "pty": None,
        "controls": controls_view(session.controls),
        "attached": attached_view(session.attached),
        "observed_at": rfc3339(time.time()),
    }


def _dead(session: Session, view: Json, full: bool) -> Json:
    start, end = LogReader(session.folder.out).bounds()
    view["output"] = {"start": start, "end": end, "durable": end}
    evidence = {
        "exited": "the program's end was seen by its keeper",
        "reaped": "idle for longer than it was allowed to be",
        "lost": "its keeper is dead and left no final record",
        "removed": "it was removed",
    }[session.state]
    if session.failure:
        evidence = f"it did not start: {session.failure}"
    kind = "unknown" if session.state == "lost" else "exited"
    view["activity"] = {"kind": kind, "confidence": "certain", "evidence": evidence, "prompt": None}
    if session.state == "lost":
        survivors = survivors_of(session)
        view["processes"] = processes.processes(survivors)
        if survivors:
            view["activity"]["evidence"] += f"; {len(survivors)} of its processes are still there"
    if full:
        view.setdefault("processes", [])
        view.update(connections=[], files=[])
    return view


def _silent(session: Session, view: Json, full: bool) -> Json:
    """A keeper that is there and does not answer: its session lives, and no more is known."""
    view["activity"] = {
        "kind": "unknown",
        "confidence": "certain",
        "evidence": "its start hangs, and may still happen"
        if session.life is State.START_LATE
        else "its keeper is alive and does not answer (stopped, or starved)",
        "prompt": None,
    }
    start, end = session.reader.bounds()
    view["output"] = {"start": start, "end": end, "durable": start}
    return view | ({"processes": [], "connections": [], "files": []} if full else {})


def survivors_of(session: Session) -> list[int]:
    """Processes of a session without a keeper, by the mark in their environment."""
    home = os.path.dirname(os.path.dirname(session.folder.path))
    marked = processes.find_by_env(b"HOLDFAST_SESSION", session.id.encode())
    # A copy of this home elsewhere knows the same id: its processes are not ours.
    return [pid for pid in marked if processes.environ_has(pid, b"HOLDFAST_HOME", os.fsencode(home))]


async def observe(
    session: Session, screens: Screens, *, quick: bool = False, members: list[int] | None = None
) -> tuple[Json, Activity]:
    """Ask the keeper for the kernel's facts, and judge them."""
    sample = await session.line.act("sample", quick=quick, members=members)
    return sample, await judge_sample(session, sample, screens)


async def judge_sample(session: Session, sample: Json, screens: Screens) -> Activity:
    age = output_age_s(sample, time.time())
    if sample["exit"] is not None or "facts" not in sample:
        return _without_terminal(sample)
    if session.kind == "kernel":
        return jupyter_kernel.activity(session)
    end = sample["output"]["end"]
    emulator = await screens.near(session, end)
    look, line = emulator.look(sample["facts"]["tty"]["foreground_pgid"], end)
    return judge(
        sample["facts"],
        look=look,
        last_output_age=age,
        cursor_line=line,
        leader=sample["pid"],
        says=sample.get("says"),
        listening=_listening(sample.get("members") or []),
    )


def _listening(members: list[int]) -> frozenset[int]:
    """Those that serve a port. Without members (a quick look at a shell's prompt) nothing is asked of the kernel."""
    return frozenset(row["pid"] for row in ports.ports(members)) if members else frozenset()


def _without_terminal(sample: Json) -> Activity:
    if sample["exit"] is not None:
        return Activity("exited", "certain", "the main program has ended; others of its tree are still running", None)
    return Activity("running", "likely", "a program on pipes: whether it waits for input is not visible", None)


async def view(
    session: Session, host_id: str, screens: Screens, *, full: bool, members: list[int] | None = None
) -> Json:
    """The object as `status` (full) or `ls` gives it."""
    if not session.connected:
        empty = base(session, host_id)
        return _silent(session, empty, full) if session.unreachable else _dead(session, empty, full)
    keeper = session.keeper
    try:
        sample, activity = await observe(session, screens, members=members)
    except HoldfastError as e:
        log.warning("%s could not be observed: %s", session.name, e.line())
        empty = base(session, host_id)
        return _silent(session, empty, full) if session.live else _dead(session, empty, full)
    out = base(session, host_id)
    members = sample["members"]
    facts = sample.get("facts")
    out.update(
        activity={
            "kind": activity.kind,
            "confidence": activity.confidence,
            "evidence": activity.evidence,
            "prompt": activity.prompt,
            "says": activity.says,
        },
        pid=sample["pid"],
        output=sample["output"],
        ports=ports.ports(members),
    )
    leader = (facts or {}).get("tty", {}).get("foreground_pgid") or sample["pid"]
    leader = (out.get("kernel") or {}).get("pid") or leader
    out["cwd"] = processes.cwd(leader) or processes.cwd(sample["pid"]) or out["cwd"]
    if facts is not None:
        tty = facts["tty"]
        out["pty"] = {
            "cols": sample["size"][0],
            "rows": sample["size"][1],
            "canonical": tty["canonical"],
            "echo": tty["echo"],
            "foreground_pgid": tty["foreground_pgid"],
            "path": sample["tty"],
        }
    if full:
        opened, talking = open_files.open_files(members), ports.connections(members)
        out.update(
            processes=processes.processes(members),
            connections=talking.connections,
            files=opened.files,
            truncated=opened.truncated or talking.truncated,
            queued_input=sample["queued_input"],
            dropped=sample["dropped"],
            keeper_pid=keeper,
            cgroup=cgroup.leaves_of(sample["pid"], session.id),
            unenforced=session.manifest.get("unenforced") or [],
        )
    out["observed_at"] = rfc3339(time.time())
    return out
