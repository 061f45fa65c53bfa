"""Word of changed files in a folder from the kernel: a descriptor to wait on, no polling."""

from __future__ import annotations

import ctypes
import os

_libc = ctypes.CDLL(None, use_errno=True)
_CLOSE_WRITE, _MOVED, _CREATE, _DELETE, _ATTRIB = 0x8, 0xC0, 0x100, 0x200, 0x4


def watch(folder: str, *, created: bool = False) -> int:
    """A descriptor that becomes readable when a file in the folder was written, moved, removed or changed its mode;
    with `created` also when one was made, and is empty yet."""
    mask = _CLOSE_WRITE | _MOVED | _DELETE | _ATTRIB | (_CREATE if created else 0)
    fd = int(_libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK))
    if fd < 0:
        raise OSError(ctypes.get_errno(), "inotify_init1")
    if _libc.inotify_add_watch(fd, os.fsencode(folder), mask) < 0:
        code = ctypes.get_errno()
        os.close(fd)
        raise OSError(code, "inotify_add_watch")
    return fd


def drain(fd: int) -> None:
    try:
        while os.read(fd, 65536):
            pass
    except BlockingIOError:
        pass
