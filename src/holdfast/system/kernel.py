"""The few system calls Python does not wrap, and small facts about processes."""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct

_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}  # the call's number
_JOIN_SESSION_KEYRING = 1
# PIDFD_GET_INFO with PIDFD_INFO_EXIT (Linux 6.15): struct pidfd_info, of which the mask and the exit status are ours.
_PIDFD_INFO, _PIDFD_INFO_EXIT = struct.Struct("QQ11Ii"), 1 << 3
_PIDFD_GET_INFO = 3 << 30 | _PIDFD_INFO.size << 16 | 0xFF << 8 | 11
_STAT_BYTES = 4096  # a stat line has about 350
_libc = ctypes.CDLL(None, use_errno=True)
_prctl = _libc.prctl  # looked up once: a name that is new to ctypes costs every keeper pages of its own


def become_subreaper(yes: bool = True) -> None:
    """Orphans below this process come to it instead of pid 1: what a session started stays in its tree."""
    if _prctl(_PR_SET_CHILD_SUBREAPER, int(yes), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def boot_id() -> str:
    """What the kernel calls this boot; empty where it does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return ""


def set_name(name: str) -> None:
    fd = os.open("/proc/self/comm", os.O_WRONLY | os.O_CLOEXEC)
    os.write(fd, name.encode()[:15])
    os.close(fd)


def set_undumpable() -> None:
    """No core of this process, by any way: a limit of 0 alone does not stop a core that is piped to a collector."""
    _prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def leave_keyring() -> None:
    """A session keyring of its own: kernel keys that were unlocked outside are not for what runs from here on."""
    number = _KEYCTL.get(os.uname().machine)
    if number is not None:
        _libc.syscall(number, _JOIN_SESSION_KEYRING, None)


def status_of(pidfd: int) -> int | None:
    """How a process ended, also one that is nobody's child here, as `wait` would tell it; None where this kernel does
    not say, or the process has not been buried yet."""
    told = bytearray(_PIDFD_INFO.pack(_PIDFD_INFO_EXIT, 0, *([0] * 11), 0))
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, told)
    except OSError:
        return None
    mask, *_, status = _PIDFD_INFO.unpack(told)
    return int(status) if mask & _PIDFD_INFO_EXIT else None


def start_time(pid: int) -> int:
    """When the process began, in clock ticks since boot: with the pid it names one process for ever. 0 if gone."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
        try:
            return int(os.read(fd, _STAT_BYTES).rpartition(b")")[2].split(None, 20)[19])
        finally:
            os.close(fd)
    except (OSError, IndexError, ValueError):
        return 0


def register(folder: str) -> str:
    """Say in the home that this process is a role of Holdfast: walks of a session's tree end at it."""
    if not os.access(folder, os.F_OK):  # asked, not tried: an exception costs a spare keeper pages of its own
        os.makedirs(folder, mode=0o700, exist_ok=True)
    path = f"{folder}/{os.getpid()}.{start_time(os.getpid())}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    return path


def registered(folder: str) -> set[tuple[int, int]]:
    """(pid, start time) of every registered role. A pid can be there twice: one that was killed had it before."""
    roles: set[tuple[int, int]] = set()
    try:
        names = os.listdir(folder)
    except OSError:
        return roles
    for name in names:
        pid, _, started = name.partition(".")
        if pid.isdigit() and started.isdigit():
            roles.add((int(pid), int(started)))
    return roles


def lock_held(path: str) -> bool:
    """Whether a living process holds the lock: the kernel's word, which no crash or reboot can leave wrong."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: others may look in the same moment
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False
