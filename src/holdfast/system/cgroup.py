"""A cgroup leaf for the program where this machine lets us make one: v2, or v1 pids and memory. Never an error."""

from __future__ import annotations

import os

from .tree import descendants

ROOT = "/sys/fs/cgroup"


def _own_paths() -> dict[str, str]:
    return _paths("self")


def _paths(pid: int | str) -> dict[str, str]:
    """Controller -> folder of a process's cgroup ('' is v2)."""
    paths = {}
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="surrogateescape") as f:
            lines = f.read().splitlines()
    except OSError:
        return {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        for name in controllers.split(","):
            if not name:
                base = ROOT if os.path.exists(ROOT + "/cgroup.controllers") else ROOT + "/unified"
                paths[""] = base + path
            elif os.path.isdir(f"{ROOT}/{name}"):
                paths[name] = f"{ROOT}/{name}{path}"
    return paths


def _write(path: str, value: str) -> bool:
    try:
        with open(path, "w", encoding="ascii") as f:
            f.write(value)
    except OSError:
        return False
    return True


def _name(session: str) -> str:
    return f"holdfast-{session}"


def possible_leaves(session: str) -> list[str]:
    """Where a session's leaves are, if it has any: so that whoever ends it can remove them without having made them."""
    own = _own_paths()
    places = [f"{own[c].rstrip('/')}/{_name(session)}" for c in ("pids", "memory") if c in own]
    if "" in own:
        places.append(f"{os.path.dirname(own[''].rstrip('/'))}/{_name(session)}")
    return places


def leaves_of(pid: int, session: str) -> list[str]:
    """The session's leaves that a process is in, by the kernel's word."""
    return [path for path in _paths(pid).values() if os.path.basename(path) == _name(session)]


def make_leaf(session: str, pids_max: int, memory_max: int) -> list[str]:
    """Folders of the new leaf, one per hierarchy, with the limits that could be set."""
    name = _name(session)
    wanted = [("pids", "pids.max", pids_max), ("memory", "memory.limit_in_bytes", memory_max)]
    own = _own_paths()
    leaves = []
    for controller, knob, value in wanted:
        if controller not in own or not value:
            continue
        leaf = f"{own[controller].rstrip('/')}/{name}"
        try:
            os.makedirs(leaf, exist_ok=True)
        except OSError:
            continue
        if _write(f"{leaf}/{knob}", str(value)):
            leaves.append(leaf)
        else:
            remove([leaf])
    if not leaves and "" in own:
        leaves = _make_v2_leaf(own[""].rstrip("/"), name, pids_max, memory_max)
    return leaves


def _make_v2_leaf(own: str, name: str, pids_max: int, memory_max: int) -> list[str]:
    """Beside our own group, not below it: a group that holds processes cannot limit its children."""
    parent = os.path.dirname(own)
    leaf = f"{parent}/{name}"
    _write(f"{parent}/cgroup.subtree_control", "+pids +memory")
    try:
        os.mkdir(leaf)
    except OSError:
        return []
    done = bool(pids_max) and _write(f"{leaf}/pids.max", str(pids_max))
    if memory_max:
        done = _write(f"{leaf}/memory.max", str(memory_max)) or done
    if not done:  # the controllers are not delegated to us: an empty leaf would hold nothing
        remove([leaf])
        return []
    return [leaf]


def join_tree(leaves: list[str], pid: int) -> None:
    """Move a program that was just started, and what it forked before it was moved."""
    join(leaves, [pid])
    join(leaves, [row[0] for row in descendants(pid)])


def join(leaves: list[str], pids: list[int]) -> None:
    for leaf in leaves:
        for pid in pids:
            _write(f"{leaf}/cgroup.procs", str(pid))


def remove(leaves: list[str]) -> None:
    for leaf in leaves:
        try:
            os.rmdir(leaf)
        except OSError:
            pass
