"""What the kernel says now about ports and processes of any owner: what claims are compared with."""

from __future__ import annotations

import asyncio
import os
from typing import Any

from ...system import kernel
from ..operators.caller import Caller
from ..sessions.session import Session
from . import ports as net
from . import processes as proc
from .look import Look

Json = dict[str, Any]


async def facts(look: Look, caller: Caller, ports: list[int], pids: list[int]) -> Json:
    """Who listens on each port, and what each pid is, with the start time that names it."""
    whose = _sessions_by_pid(look)
    found = await asyncio.to_thread(_look, ports, pids, list(whose))
    everything = caller.may("view", None)  # processes outside of sessions are the host's own affair

    def shown(row: Json) -> Json | None:
        session = whose.get(row["pid"])
        if session is None:
            return row if everything else None
        if not caller.may("view", session):
            return None
        generation = session.manifest["generation"]
        return {**row, "session": session.id, "session_name": session.name, "generation": generation}

    listening: dict[str, list[Json]] = {}
    for port, rows in found["ports"].items():
        # That a process listens is true, and who it is, is not for this caller to know.
        listening[str(port)] = [shown(row) or _hidden(row) for row in rows]
    processes = {str(pid): row and (shown(row) or {"hidden": True}) for pid, row in found["pids"].items()}
    return {"host": look.host, "boot": kernel.boot_id(), "ports": listening, "pids": processes}


def _sessions_by_pid(look: Look) -> dict[int, Session]:
    forest = look.forest()
    whose: dict[int, Session] = {}
    for session in look.registry.sessions.values():
        if session.connected:
            for pid in forest.get(session.keeper or 0, []):
                whose[pid] = session
    return whose


def _hidden(row: Json) -> Json:
    return {"port": row["port"], "address": row["address"], "protocol": row["protocol"], "pid": None, "command": None}


def _look(ports: list[int], pids: list[int], ours: list[int]) -> Json:
    """Sessions' processes are asked first; the rest of /proc only for a port that none of them holds."""
    wanted = set(ports)
    sockets = {inode: s for inode, s in net.listeners(ours).items() if s[1] in wanted} if wanted else {}
    holders = net.socket_owners(ours) if sockets else {}
    if any(inode not in holders for inode in sockets):
        known = set(ours)
        others = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in known]
        holders = {**net.socket_owners(others), **holders}
    listening: dict[int, list[Json]] = {port: [] for port in ports}
    for inode, (address, port, protocol) in sorted(sockets.items(), key=lambda found: found[1]):
        owner = holders[inode][0][0] if inode in holders else 0  # another user's: the kernel does not say whose
        about = _process(owner) or {"pid": owner or None, "started": None, "name": None, "command": None}
        listening[port].append({**about, "port": port, "address": address, "protocol": protocol})
    return {"ports": listening, "pids": {pid: _process(pid) for pid in pids}}


def _process(pid: int) -> Json | None:
    """A process with its start time, read around the rest: both belong to the same one."""
    before = proc.start_ticks(pid) if pid > 0 else None
    rows = proc.processes([pid]) if before is not None else []
    if not rows or proc.start_ticks(pid) != before:
        return None
    return {"pid": pid, "started": before, **{k: rows[0][k] for k in ("name", "command", "state")}}
