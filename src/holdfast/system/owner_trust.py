"""Whether a home, the process behind its socket, and a file that is obeyed are the caller's: by the kernel's word."""

from __future__ import annotations

import os
import stat

from ..model import file_trust
from ..model.errors import HoldfastError
from ..model.home import ISOLATED
from .peer_identity import credentials

_KERNELS = ("/proc/", "/sys/")

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket


def check_home(path: str) -> None:
    """Raise unless the home is the caller's alone. One that is not there yet is no fault."""
    fault = home_fault(path)
    if fault is not None:
        raise HoldfastError("not_allowed", *fault)


def home_fault(path: str) -> tuple[str, str] | None:
    if os.environ.get(ISOLATED):
        return None  # the host bound it there, read-only; whose uid that shows as is the namespace's doing
    real = os.path.realpath(path)
    try:
        about = os.stat(real)
    except OSError:
        return None  # whoever needs it says what is wrong
    return file_trust.home_fault(path, about, [(folder, os.stat(folder)) for folder in _above(real)], os.geteuid())


def _above(path: str) -> list[str]:
    found = []
    while (parent := os.path.dirname(path)) != path:
        found.append(path := parent)
    return found


def check_server(sock: socket.socket, path: str) -> None:
    """Raise unless the process that listens behind a home's socket is of the caller's user."""
    if os.environ.get(ISOLATED):
        return
    pid, uid = credentials(sock)
    if not file_trust.trusted(uid, os.geteuid()):
        words = f"process {pid} of uid {uid} answers at {path}, you are {os.geteuid()}"
        raise HoldfastError("not_allowed", words, "nothing was sent to it; set HOLDFAST_HOME to a folder of yours")


def open_regular(path: str) -> int:
    """A descriptor to read a regular file by. Anything else is refused before it is opened: a FIFO has its opener wait,
    a device may act on being opened, and what the kernel shows in /proc and /sys is no file of anyone."""
    found = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(found).st_mode):
            raise OSError("it is not a regular file")
        this = f"/proc/self/fd/{found}"
        if os.readlink(this).startswith(_KERNELS):
            raise OSError("it is the kernel's, and no regular file")
        return os.open(this, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    finally:
        os.close(found)
