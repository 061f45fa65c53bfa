"""A session's process tree, from the kernel: every descendant of the keeper, found and named truthfully."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Roles = set[tuple[int, int]]

# A walk that saw a process vanish may have missed the children it left behind, so it is walked again. Three
# passes settle all but a tree that forks faster than it can be read, and that one is never settled anyway.
_PASSES_MAX = 3
# As many processes as one session may have where a cgroup can hold it: a fork bomb costs a bounded walk.
_PROCESSES_MAX = 8192
_READ_BYTES = 4096  # a stat line has about 350 bytes


class Stat:
    """The fields of /proc/PID/stat that Holdfast asks about."""

    __slots__ = ("comm", "pgid", "pid", "ppid", "sid", "started", "state", "threads", "tty")

    def __init__(self, pid: int, text: bytes) -> None:
        # The name is the program's own choice and may hold spaces and parentheses: it ends at the last one.
        name, _, rest = text.partition(b"(")[2].rpartition(b")")
        fields = rest.split(None, 20)
        self.pid = pid
        self.comm = name.decode("utf-8", "replace")
        self.state = fields[0].decode()
        self.ppid = int(fields[1])
        self.pgid = int(fields[2])
        self.sid = int(fields[3])
        self.tty = int(fields[4])
        self.threads = int(fields[17])
        self.started = int(fields[19])


def read_small(path: str, size: int = _READ_BYTES) -> bytes:
    """The first bytes of a /proc file, in one read() so that they belong together."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, size)
    finally:
        os.close(fd)


def read_stat(pid: int, tid: int = 0) -> Stat | None:
    """A process (or one thread of it), or None where it is gone."""
    path = f"/proc/{pid}/task/{tid}/stat" if tid else f"/proc/{pid}/stat"
    try:
        return Stat(tid or pid, read_small(path))
    except (OSError, IndexError, ValueError):
        return None


def descendants(root: int, stop_at: frozenset[int] = frozenset()) -> list[tuple[int, int, str, int]]:
    """(pid, ppid, state, start time) of everything below `root`, parents before children.

    Zombies are listed, with state "Z". A pid in `stop_at` is left out together with what is below it. The
    start time, in clock ticks since boot, makes the pid a name that is never used twice.
    """
    found: dict[int, Stat] = {}
    latest: dict[int, Stat] = {}
    zombies: set[int] = set()
    for _ in range(_PASSES_MAX):
        children = _children_of if _kernel_lists_children() else _ChildrenByScan()
        latest, moved = _walk(root, stop_at, children)
        found.update(latest)
        dead = {pid for pid, stat in latest.items() if stat.state == "Z"}
        # A zombie that was one before this pass began had handed its children on by then; a new one may have
        # done so behind our back.
        if not moved and dead <= zombies:
            break
        zombies = dead
    else:
        # Every pass saw something move: keep what any of them found and is still the same process.
        for pid in [pid for pid in found if pid not in latest]:
            now = read_stat(pid)
            if now is not None and now.started == found[pid].started:
                latest[pid] = now
    return [(s.pid, s.ppid, s.state, s.started) for s in latest.values()]


def children(pid: int) -> list[int]:
    """Its children now; none where it is gone."""
    try:
        return _children_of(pid) if _kernel_lists_children() else _ChildrenByScan()(pid)
    except OSError:
        return []


def inner_pid(pid: int) -> int:
    """The pid that the process itself sees: another one in a pid namespace of its own. 0 where it is gone."""
    try:
        _, found, rest = read_small(f"/proc/{pid}/status").partition(b"\nNSpid:")
        return int(rest.split(b"\n", 1)[0].split()[-1]) if found else pid
    except (OSError, IndexError, ValueError):
        return 0


def members(root: int, roles: Callable[[], Roles]) -> list[int]:
    """The pids below `root` that are its own: other roles of Holdfast, (pid, start time), end the walk.

    Who they are is asked after the walk: one that has just become a role is not taken for a member.
    """
    rows = descendants(root)
    return _own(rows, roles())


def forest(roots: list[int], roles: Callable[[], Roles]) -> dict[int, list[int]]:
    """`members` of many roots for the price of one look at /proc."""
    below: dict[int, list[tuple[int, int, str, int]]] = {}
    if _kernel_lists_children():
        below = {root: descendants(root) for root in roots}
    else:
        children = _ChildrenByScan()
        for root in roots:
            found, _ = _walk(root, frozenset(), children)
            below[root] = [(s.pid, s.ppid, s.state, s.started) for s in found.values()]
    known = roles()
    return {root: _own(rows, known) for root, rows in below.items()}


def _own(rows: list[tuple[int, int, str, int]], roles: Roles) -> list[int]:
    foreign: set[int] = set()
    own = []
    for pid, parent, _, started in rows:  # parents come before children
        if (pid, started) in roles or parent in foreign:
            foreign.add(pid)
        else:
            own.append(pid)
    return own


def _walk(root: int, stop_at: frozenset[int], children: Callable[[int], list[int]]) -> tuple[dict[int, Stat], bool]:
    """One pass from the root down, and whether a process was seen to vanish or to change its parent."""
    found: dict[int, Stat] = {}
    moved = False
    queue = [(root, 0)]
    for pid, parent in queue:
        try:
            below = children(pid)
        except OSError:
            moved = moved or pid != root  # it ended, and what it leaves behind is now the subreaper's
            continue
        # Read after its children: alive now means that the list was its own then.
        stat = read_stat(pid) if pid != root else None
        if stat is not None and stat.ppid == parent:
            found[pid] = stat
        elif pid != root:
            moved = True
            continue
        if len(queue) < _PROCESSES_MAX:
            queue += [(child, pid) for child in below if child not in stop_at]
    return found, moved


def _kernel_lists_children() -> bool:
    return os.path.exists("/proc/thread-self/children")


def _children_of(pid: int) -> list[int]:
    """Children by the kernel's own list; it is kept per thread, because a thread is what forks."""
    pids: list[int] = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{tid}/children", "rb", buffering=0) as f:
            pids += map(int, f.read().split())  # a page at a time, to the end
    return pids


class _ChildrenByScan:
    """Children by reading every process once, for a kernel built without the children file."""

    def __init__(self) -> None:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        stats = {stat.pid: stat for stat in map(read_stat, pids) if stat is not None}
        # A parent that ended during the scan handed its children on: those are asked again.
        orphans = [stat.pid for stat in stats.values() if stat.ppid and stat.ppid not in stats]
        stats.update({stat.pid: stat for stat in map(read_stat, orphans) if stat is not None})
        self._by_parent: dict[int, list[int]] = {}
        for stat in stats.values():
            self._by_parent.setdefault(stat.ppid, []).append(stat.pid)

    def __call__(self, pid: int) -> list[int]:
        return self._by_parent.get(pid, [])
