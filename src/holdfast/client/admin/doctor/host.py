"""The host daemon from outside: is one running, does it answer, is it the only one, is it of our version."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import time

from ....model.doctor_findings import Finding, fail, ok, some, warn
from ....model.home import Home
from ....system import kernel, source_build
from ....version import VERSION
from ..._io.blocking_socket import HostConnection, connect_socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ANSWER_S = 5.0  # a busy host answers in milliseconds; one that is stopped never does
_STARTING_S = 30.0  # a host with thousands of sessions to adopt may take seconds before it listens
_DEAD = "dead"
_STATES = {"T": "stopped", "t": "traced", "D": "waiting for a disk", "Z": _DEAD}
HOST, KEEPER = "hold-host", "hold-keeper"  # what the roles call themselves


class Answer:
    """What became of one `ping`: about the host, or why there is no answer and who should have given it."""

    __slots__ = ("about", "pid", "problem")

    def __init__(self, about: dict[str, Any] | None, problem: str = "", pid: int | None = None) -> None:
        self.about, self.problem, self.pid = about, problem, pid


def ask(home: Home) -> Answer:
    """Ask, with a time limit: a host that hangs must not hang its doctor."""
    try:
        sock = connect_socket(home)
    except FileNotFoundError:
        return Answer(None, "absent")
    except ConnectionRefusedError:
        return Answer(None, "refused")
    except OSError as e:
        return Answer(None, e.strerror or str(e))
    pid = struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i")))[0]
    sock.settimeout(_ANSWER_S)
    wire = HostConnection(sock)
    try:
        wire.send({"op": "ping"})
        reply, _ = wire.receive()
        about: dict[str, Any] = reply["ok"]["host"]  # type: ignore[index]
        return Answer(about, pid=pid)
    except (OSError, KeyError, ValueError):
        return Answer(None, "silent", pid)
    finally:
        wire.close()


def findings(home: Home, answer: Answer, now: float) -> list[Finding]:
    if answer.about is None:
        holder = lock_holder(home.lock)
        age = now - started_at(holder) if holder else 0.0
        return [judge_silence(answer, holder, age, _state(answer.pid or holder), home)]
    others = [pid for pid in living(home).get(HOST, []) if pid != answer.about["pid"]]
    return [
        ok("daemon", f"pid {answer.about['pid']} answers, running since {answer.about['started_at']}"),
        judge_version(str(answer.about["version"]), VERSION),
        judge_build(answer.about.get("build"), source_build.build_id()),
        judge_only(int(answer.about["pid"]), others, flock_pid(home.lock)),
        judge_program(_link(f"/proc/{answer.about['pid']}/exe")),
    ]


def judge_silence(answer: Answer, holder: int | None, age: float, state: str, home: Home) -> Finding:
    """No answer: nobody there, somebody just starting, or somebody who hangs."""
    if answer.problem == "silent" or (holder is not None and age > _STARTING_S):
        pid = answer.pid or holder
        stopped = f" (it is {state})" if state else ""
        return fail(
            "daemon",
            f"pid {pid} is there and does not answer{stopped}",
            f"kill -CONT {pid} if it was stopped, else kill -9 {pid}: sessions go on",
        )
    if holder is not None:
        return warn("daemon", f"pid {holder} is just starting", "look again in a moment")
    if answer.problem == "refused":
        return warn(
            "daemon",
            f"none runs; {home.socket} was left by one that was killed",
            "nothing: the next command starts a new one in its place",
        )
    if answer.problem == "absent":
        return ok("daemon", "none runs; the next command that needs one starts it")
    return fail("daemon", f"it cannot be reached: {answer.problem}", f"see who owns {home.socket}")


def judge_version(theirs: str, ours: str) -> Finding:
    if theirs != ours:
        return warn(
            "version",
            f"the daemon is {theirs}, this command is {ours}",
            "hold down, then hold up: sessions go on under the new one",
        )
    return ok("version", ours)


def judge_build(theirs: object, ours: str) -> Finding:
    if theirs != ours:
        seen = f"the daemon is older than this command, or of another installation ({theirs or 'no id'}, here {ours})"
        return warn("build", seen, "hold up replaces it: sessions go on")
    return ok("build", ours)


def judge_only(pid: int, others: list[int], holder: int | None) -> Finding:
    if others:
        return fail(
            "one daemon",
            f"pid {pid} answers, and {some([str(p) for p in others])} serve the same home",
            f"end the others with kill {' '.join(map(str, others[:5]))}: sessions go on",
        )
    if holder is not None and holder != pid:
        return fail(
            "one daemon",
            f"pid {pid} answers, but pid {holder} holds the lock",
            f"kill {pid} {holder}: sessions go on, the next command starts one again",
        )
    return ok("one daemon", "it is the only one of this home")


def judge_program(path: str | None) -> Finding:
    if path is not None and path.endswith(" (deleted)"):
        return warn("program", f"the daemon's Python was replaced ({path})", "hold down, then hold up: sessions go on")
    return ok("program", "the daemon's Python is the one on disk")


def lock_holder(path: str) -> int | None:
    """Who holds a lock file: a pid, 0 where the kernel does not tell whom, None when nobody does."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        # Shared and for an instant, and only when nobody answered: it hardly gets into anybody's way.
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return flock_pid(path) or 0
    finally:
        os.close(fd)
    return None


def flock_pid(path: str) -> int | None:
    """The pid behind a held lock by /proc/locks, which tells nothing of other pid namespaces."""
    try:
        about = os.stat(path)
        with open("/proc/locks", encoding="ascii") as f:
            return parse_locks(f.read(), os.major(about.st_dev), os.minor(about.st_dev), about.st_ino)
    except OSError:
        return None


def parse_locks(text: str, major: int, minor: int, inode: int) -> int | None:
    """`1: FLOCK  ADVISORY  WRITE 4242 fe:00:1234 0 EOF`; a line with an arrow waits for the lock."""
    for line in text.splitlines():
        words = line.split()
        if len(words) < 6 or words[1] != "FLOCK":
            continue
        device = words[5].split(":")
        if len(device) == 3 and (int(device[0], 16), int(device[1], 16), int(device[2])) == (major, minor, inode):
            return int(words[4])
    return None


def living(home: Home) -> dict[str, list[int]]:
    """Registered roles that are alive, by what they call themselves."""
    found: dict[str, list[int]] = {}
    for pid, started in sorted(kernel.registered(home.roles)):
        if is_alive(pid, started):
            found.setdefault(_name(pid), []).append(pid)
    return found


def is_alive(pid: int, started: int) -> bool:
    """Whether that very process still runs; a zombie, which its parent has not collected, does not."""
    return kernel.start_time(pid) == started and _state(pid) != _DEAD


def started_at(pid: int) -> float:
    """When a process began, in seconds since 1970; now, when it cannot be told."""
    ticks = kernel.start_time(pid)
    if not ticks:
        return time.time()
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / os.sysconf("SC_CLK_TCK")


def _name(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def _state(pid: int | None) -> str:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            letter = f.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""
    return _STATES.get(letter, "")


def _link(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None
