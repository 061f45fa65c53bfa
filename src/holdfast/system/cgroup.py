"""A cgroup leaf for the program where this machine lets us make one: v2, or v1 pids and memory. Never an error."""

from __future__ import annotations

import errno
import os
import time

from .process_tree import descendants

ROOT = "/sys/fs/cgroup"
_REMOVE_TRIES, _REMOVE_PAUSE_S = 20, 0.05  # a killed process is reaped within milliseconds; a second is long
_KNOBS = {"pids": ("pids.max",), "memory": ("memory.limit_in_bytes", "memory.max")}  # v1's name, then v2's


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
    """Into a file that is there: one that could be made is none of the kernel's, and holds nobody."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, value.encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _name(session: str) -> str:
    return f"holdfast-{session}"


def possible_leaves(session: str) -> list[str]:
    """Where a session's leaves are, if it has any: so that whoever ends it can remove them without having made them."""
    own = _own_paths()
    places = [f"{own[c].rstrip('/')}/{_name(session)}" for c in ("pids", "memory") if c in own]
    if "" in own:
        places.append(f"{_v2_parent(own[''])}/{_name(session)}")
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
        if not _made(leaf):
            continue
        if _write(f"{leaf}/{knob}", str(value)):
            leaves.append(leaf)
        else:
            remove([leaf])
    if not leaves and "" in own:
        leaves = _make_v2_leaf(_v2_parent(own[""]), name, pids_max, memory_max)
    return leaves


def _made(leaf: str) -> bool:
    """Whether it is there now; a former generation's may still be. What should be above it is never made."""
    try:
        os.mkdir(leaf)
    except FileExistsError:
        return True
    except OSError:
        return False
    return True


def _v2_parent(own: str) -> str:
    """Beside our own group, not below it: a group that holds processes cannot limit its children. The root can, and has
    nothing beside it."""
    own = own.rstrip("/")
    return own if own in (ROOT, ROOT + "/unified") else os.path.dirname(own)


def _make_v2_leaf(parent: str, name: str, pids_max: int, memory_max: int) -> list[str]:
    leaf = f"{parent}/{name}"
    for controller in ("+pids", "+memory"):  # one by one: the kernel takes all of a line or nothing
        _write(f"{parent}/cgroup.subtree_control", controller)
    if not _made(leaf):
        return []
    done = bool(pids_max) and _write(f"{leaf}/pids.max", str(pids_max))
    if memory_max:
        done = _write(f"{leaf}/memory.max", str(memory_max)) or done
    if not done:  # the controllers are not delegated to us: an empty leaf would hold nothing
        remove([leaf])
        return []
    return [leaf]


def unheld(leaves: list[str], asked: dict[str, int]) -> list[str]:
    """Those of the limits asked for that no leaf holds."""
    return [
        name
        for name, knobs in _KNOBS.items()
        if asked.get(name) and not any(_is_set(f"{leaf}/{knob}") for leaf in leaves for knob in knobs)
    ]


def _is_set(path: str) -> bool:
    """Whether a knob holds a bound. Unbounded is `max` in v2, and in v1's memory a number near 2^63."""
    try:
        with open(path, encoding="ascii") as f:
            value = f.read().strip()
    except OSError:
        return False
    return value.isdigit() and int(value) < 1 << 62


def join_tree(leaves: list[str], pid: int) -> None:
    """Move a program that was just started, and what it forked before it was moved."""
    join(leaves, [pid])
    join(leaves, [row[0] for row in descendants(pid)])


def join(leaves: list[str], pids: list[int]) -> None:
    for leaf in leaves:
        for pid in pids:
            _write(f"{leaf}/cgroup.procs", str(pid))


def remove(leaves: list[str]) -> None:
    """Those that hold no process. The last one to end may not be reaped yet: then the kernel needs another moment."""
    for leaf in leaves:
        for _ in range(_REMOVE_TRIES):
            try:
                os.rmdir(leaf)
            except OSError as e:
                if e.errno != errno.EBUSY or _held(leaf):
                    break
                time.sleep(_REMOVE_PAUSE_S)
            else:
                break


def _held(leaf: str) -> bool:
    try:
        with open(f"{leaf}/cgroup.procs", encoding="ascii") as f:
            return bool(f.read(1))
    except OSError:
        return False
