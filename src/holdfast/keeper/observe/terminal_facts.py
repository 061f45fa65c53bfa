"""What the kernel says about a terminal and the threads in front of it. Facts only: judging is elsewhere.

It runs inside the keeper because the keeper is an ancestor of the program: where Yama restricts ptrace, only
an ancestor may read another process's system call and memory. A program of another uid (setuid) still says
no; its `syscall` is then None and the terminal's mode is what is left to judge by.
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios

from ...model.sessions.prompts import seen_at_prompt
from ...system.process_tree import Stat, read_small, read_stat
from .blocked_call import Tty, resolve
from .syscall_names import NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# Threads looked at in one sample: a JVM or a browser has a few hundred, and at about 20 us each this bounds a
# sample to some 10 ms. Past it the answer says `truncated`.
THREADS_MAX = 512
# Looks at a terminal whose mode changes under the look. A program changes it a few times when it begins to ask; one
# that never stops is judged by the last look.
_MOMENTS_MAX = 4
_TIOCGPTPEER = 0x5441  # opens the slave of this very master: no path, so no other devpts can be meant
_TIOCGSID = 0x5429  # which session this terminal controls
_COMPAT_TOP = 1 << 32  # a 32-bit program's stack and code lie below; its call numbers are another table's


def sample(master_fd: int, tty_path: str, members: list[int]) -> dict[str, object]:
    """The terminal's mode, and each thread that is in front of it or reads from it, as JSON-able facts.

    `threads` holds every thread of the foreground process group, and of the other members those that are
    blocked reading the terminal. Members that end meanwhile are left out.

    Mode and threads belong to one moment: a prompt that turns echo off and then reads is not seen reading with echo on.
    """
    for _ in range(_MOMENTS_MAX):
        facts, tty = _terminal(master_fd, tty_path)
        found = _in_front(tty, members)
        if _terminal(master_fd, tty_path)[0]["tty"] == facts["tty"]:
            break
    return {**facts, **found}


def _in_front(tty: Tty, members: list[int]) -> dict[str, object]:
    foreground: list[Stat] = []
    others: list[Stat] = []
    for pid in members:
        stat = read_stat(pid)
        if stat is None:
            continue
        if stat.pgid == tty.foreground:
            foreground.append(stat)
        elif not _is_controlled(stat, tty):
            # The kernel stops a background job of the terminal's own session as soon as it reads, so such a
            # job waits for nothing. It does not stop a process of another session that has the terminal open.
            others.append(stat)
    threads: list[dict[str, object]] = []
    seen = 0
    for process in foreground + others:
        in_front = process.pgid == tty.foreground
        for stat in _threads(process):
            if seen >= THREADS_MAX:
                return {"threads": threads, "truncated": True}
            seen += 1
            if in_front or stat.state == "S":
                thread = _thread(process, stat, tty)
                if thread is not None and (in_front or thread["fd_on_tty"] is True):
                    threads.append(thread)
    return {"threads": threads, "truncated": False}


def at_prompt(master_fd: int, tty_path: str) -> list[object] | None:
    """A shell's prompt as the kernel sees it, in a few facts that compare; None where nothing reads the terminal.

    Whoever judged them once to be a prompt can have them checked later, in the same breath as something is typed.
    """
    found, tty = _terminal(master_fd, tty_path)
    return seen_at_prompt({**found, "threads": list(_leader(tty))})


def _leader(tty: Tty) -> Iterator[dict[str, object]]:
    stat = read_stat(tty.foreground) if tty.foreground > 0 else None
    thread = _thread(stat, stat, tty, brief=True) if stat is not None else None
    if thread is not None:
        yield thread


def _is_controlled(process: Stat, tty: Tty) -> bool:
    return process.sid == tty.session and process.tty != 0


def _terminal(master_fd: int, tty_path: str) -> tuple[dict[str, object], Tty]:
    iflag, _, _, lflag, _, _, cc = termios.tcgetattr(master_fd)
    rows, cols = struct.unpack_from("HH", fcntl.ioctl(master_fd, termios.TIOCGWINSZ, bytes(8)))
    canonical = bool(lflag & termios.ICANON)
    # The control characters are bytes in canonical mode and, for these two, numbers outside it.
    vmin, vtime = (1, 0) if canonical else (_number(cc[termios.VMIN]), _number(cc[termios.VTIME]))
    tty = Tty(tty_path)
    tty.foreground = _ioctl_int(master_fd, termios.TIOCGPGRP)
    tty.session = _ioctl_int(master_fd, _TIOCGSID)
    if not canonical and vmin == 0:
        tty.read_timeout = vtime * 100  # VTIME counts tenths of a second
    in_queue = _look_at_slave(master_fd, tty)
    mode: dict[str, object] = {
        "canonical": canonical,
        "echo": bool(lflag & termios.ECHO),
        # A line editor tells Return from newline, in one of two ways; `read -n 1` leaves both as they were.
        "icrnl": bool(iflag & termios.ICRNL),
        "inlcr": bool(iflag & termios.INLCR),
        "vmin": vmin,
        "vtime": vtime,
        "foreground_pgid": tty.foreground,
        "session": tty.session,
        "rows": rows,
        "cols": cols,
    }
    return {"tty": mode, "in_queue": in_queue}, tty


def _number(value: int | bytes) -> int:
    return value if isinstance(value, int) else value[0]


def _ioctl_int(fd: int, request: int) -> int:
    try:
        return int(struct.unpack("i", fcntl.ioctl(fd, request, bytes(4)))[0])
    except OSError:
        return 0  # no session has this terminal (yet, or any more)


def _look_at_slave(master_fd: int, tty: Tty) -> int | None:
    """Note which device the slave is; how many bytes wait in it (in canonical mode: in complete lines)."""
    try:
        slave = fcntl.ioctl(master_fd, _TIOCGPTPEER, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None  # locked by TIOCEXCL, or the pair is being torn down
    try:
        where = os.fstat(slave)
        tty.device = (where.st_dev, where.st_ino)
        return int(struct.unpack("i", fcntl.ioctl(slave, termios.FIONREAD, bytes(4)))[0])
    except OSError:
        return None
    finally:
        os.close(slave)


def _threads(process: Stat) -> Iterator[Stat]:
    if process.threads <= 1:  # none is left of a zombie
        yield process
        return
    try:
        tids = [int(name) for name in os.listdir(f"/proc/{process.pid}/task")]
    except OSError:
        return
    for tid in tids:
        stat = read_stat(process.pid, tid)
        if stat is not None:
            yield stat


def _thread(process: Stat, stat: Stat, tty: Tty, *, brief: bool = False) -> dict[str, object] | None:
    """One thread's facts, or None where it ended meanwhile; `brief` without what only a judgement needs."""
    pid, tid = process.pid, stat.pid
    call, args = _system_call(pid, tid) if stat.state not in "ZX" else (-1, [])
    if call == "gone":
        return None
    controls = _is_controlled(process, tty)
    name = NAMES.get(call) if isinstance(call, int) and args else None
    wait = resolve(pid, name, args, tty, controls)
    return {
        "pid": pid,
        "tid": tid,
        "comm": process.comm,
        "pgid": process.pgid,
        "sid": process.sid,
        "tty_ctl": controls,
        "state": stat.state,
        "syscall": call,
        "name": wait.name,
        "fd_on_tty": wait.on_tty,
        "timeout": wait.timeout,
        "watched": wait.watched,
        "count": wait.count,
        "sig_ign": None if brief or wait.on_tty is False else _ignored_signals(pid),
        "wchan": _wchan(pid, tid) if call is None and not brief else None,
    }


def _system_call(pid: int, tid: int) -> tuple[int | str | None, list[int]]:
    """The call a thread is blocked in, and its arguments. -1: blocked in none; "running"; None: not told."""
    try:
        fields = read_small(f"/proc/{pid}/task/{tid}/syscall").split()
    except PermissionError:
        return None, []
    except OSError:
        return "gone", []
    if not fields:
        return "gone", []
    if fields[0] == b"running":
        return "running", []
    number = int(fields[0])
    stack, code = int(fields[-2], 16), int(fields[-1], 16)
    if number < 0 or (stack < _COMPAT_TOP and code < _COMPAT_TOP):
        return number, []
    return number, [int(field, 16) for field in fields[1:7]]


def _ignored_signals(pid: int) -> int | None:
    """The mask of signals it ignores; an interactive shell is known by them. Anyone may ask."""
    try:
        status = read_small(f"/proc/{pid}/status")
    except OSError:
        return None
    _, found, rest = status.partition(b"\nSigIgn:")
    return int(rest.split(None, 1)[0], 16) if found else None


def _wchan(pid: int, tid: int) -> str | None:
    """Where in the kernel a thread sleeps: a hint where the call itself is not told."""
    try:
        where = read_small(f"/proc/{pid}/task/{tid}/wchan").decode("ascii", "replace")
    except OSError:
        return None
    return where if where not in ("", "0") else None
