"""Names of the system calls a program blocks in, for each machine Holdfast knows. Data only."""

from __future__ import annotations

import os

# Only calls that can sleep, because only a sleeping thread is ever asked about.
_X86_64 = {
    0: "read", 1: "write", 7: "poll", 16: "ioctl", 19: "readv", 20: "writev", 23: "select", 34: "pause",
    35: "nanosleep", 40: "sendfile", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg",
    47: "recvmsg", 61: "wait4", 65: "semop", 70: "msgrcv", 72: "fcntl", 73: "flock", 74: "fsync",
    75: "fdatasync", 128: "rt_sigtimedwait", 130: "rt_sigsuspend", 202: "futex", 219: "restart_syscall",
    230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid", 257: "openat", 270: "pselect6", 271: "ppoll",
    275: "splice", 281: "epoll_pwait", 288: "accept4", 299: "recvmmsg", 426: "io_uring_enter",
    441: "epoll_pwait2", 449: "futex_waitv",
}  # fmt: skip

_AARCH64 = {
    22: "epoll_pwait", 25: "fcntl", 29: "ioctl", 32: "flock", 56: "openat", 63: "read", 64: "write",
    65: "readv", 66: "writev", 71: "sendfile", 72: "pselect6", 73: "ppoll", 76: "splice", 82: "fsync",
    83: "fdatasync", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep",
    128: "restart_syscall", 133: "rt_sigsuspend", 137: "rt_sigtimedwait", 188: "msgrcv", 193: "semop",
    202: "accept", 203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg",
    242: "accept4", 243: "recvmmsg", 260: "wait4", 426: "io_uring_enter", 441: "epoll_pwait2",
    449: "futex_waitv",
}  # fmt: skip

_BY_MACHINE = {"x86_64": _X86_64, "aarch64": _AARCH64}

# On a machine that is not in the table every call is nameless, and activity stays honestly unknown.
NAMES: dict[int, str] = _BY_MACHINE.get(os.uname().machine, {})
