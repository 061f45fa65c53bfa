"""A folder whose server does not answer until it is told to: a FUSE filesystem of one root folder, spoken by hand."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import threading
from pathlib import Path

import pytest

_HEADER = struct.Struct("<IIQQIIII")  # length, operation, unique, node, uid, gid, pid, padding
_ANSWER = struct.Struct("<IiQ")
_INIT, _GETATTR, _STATFS, _OPENDIR, _RELEASEDIR, _FORGET, _INTERRUPT = 26, 3, 17, 27, 29, 2, 36
_DIRECTORY = 0o40755
_DETACH = 2  # MNT_DETACH
_libc = ctypes.CDLL(None, use_errno=True)


class DeadFolder:
    """`path` can be looked at, and whoever enters it hangs until `answer`."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.path = path
        self._fd = os.open("/dev/fuse", os.O_RDWR)
        options = f"fd={self._fd},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
        if _libc.mount(b"dead", os.fsencode(path), b"fuse", 0, options.encode()) != 0:
            os.close(self._fd)
            raise OSError(ctypes.get_errno(), "mount")
        self._wait = threading.Event()
        self.entered = threading.Event()
        self._result = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def answer(self, error: int = 0) -> None:
        """Whoever hangs goes on, with this error."""
        self._result = error
        self._wait.set()

    def close(self) -> None:
        self.answer(errno.EIO)
        _libc.umount2(os.fsencode(self.path), _DETACH)
        self._thread.join(30)

    def _serve(self) -> None:
        while True:
            try:
                request = os.read(self._fd, 1 << 17)
            except OSError:  # unmounted
                os.close(self._fd)
                return
            _, operation, unique, *_ = _HEADER.unpack_from(request)
            if operation in (_FORGET, _INTERRUPT):
                continue
            error, body = self._reply(operation)
            try:
                os.write(self._fd, _ANSWER.pack(_ANSWER.size + len(body), -error, unique) + body)
            except OSError:
                continue  # who asked was killed meanwhile

    def _reply(self, operation: int) -> tuple[int, bytes]:
        if operation == _INIT:
            return 0, struct.pack("<IIIIHHIIHHI", 7, 26, 1 << 16, 0, 12, 10, 1 << 16, 1, 0, 0, 0) + bytes(28)
        if operation == _GETATTR:  # never kept, so that the kernel asks again
            facts = struct.pack("<QQQQQQIIIIIIIIII", 1, 0, 0, 0, 0, 0, 0, 0, 0, _DIRECTORY, 2, 0, 0, 0, 4096, 0)
            return 0, struct.pack("<QII", 0, 0, 0) + facts
        self.entered.set()
        self._wait.wait()
        return self._result or errno.ENOSYS, b""  # of a right to enter that means: granted


def dead_folder(path: Path) -> DeadFolder:
    """One, or the test is left out where this machine lets nobody mount."""
    try:
        return DeadFolder(path)
    except OSError as e:
        pytest.skip(f"no filesystem of one's own can be mounted here: {e}")
