"""Starts that a host handed to its zygote and did not live to see: whether one of them may still happen."""

from __future__ import annotations

from typing import Any

from ...system import kernel, process_tree
from ...system.atomic_files import read_json
from ...system.peer_identity import credentials
from .keeper_link import dial
from .session import Session, keeper_alive

Json = dict[str, Any]

_WAITING = ("hold-spare", "hold-zygote")  # who takes a start, and who forks such a one; a keeper has its lock already


def unseen(session: Session) -> bool:
    """Whether no keeper has taken this generation up: the one that does writes it beside its lock."""
    facts: Json = read_json(session.folder.keeper_lock) or {}
    return not session.ending().get("ended") and facts.get("generation") != session.manifest["generation"]


def on_its_way(roles: str, zygote: int | None) -> list[tuple[int, int]]:
    """(pid, start time) of spares and zygotes of an earlier host: they end with it, after what it had asked of them."""
    found = []
    for pid, started in kernel.registered(roles):
        stat = process_tree.read_stat(pid)
        if stat is None or stat.started != started or stat.state == "Z" or zygote in (pid, stat.ppid):
            continue
        if stat.comm in _WAITING:
            found.append((pid, started))
    return found


def setting_up(session: Session) -> tuple[int, int] | None:
    """The keeper that has taken this start, and its child that is on the way to becoming the program; None where nobody
    has, or it runs already. Who listens at a keeper's address is its keeper, by the kernel's word."""
    try:
        with dial(session.folder.keeper_socket) as sock:
            keeper, _ = credentials(sock)
    except OSError:
        return None
    for pid in process_tree.children(keeper):
        stat = process_tree.read_stat(pid)
        if stat is not None and stat.ppid == keeper and stat.comm in _WAITING and keeper_alive(session.folder):
            return keeper, pid
    return None
