"""The zygote: a warm process that keepers are forked from. It imports everything once and freezes it.

It speaks one tiny protocol with its host over a socket pair on descriptor 0: a packet is a session's folder, with the
keeper's first channel as its one descriptor. Who takes the packet is the *spare*: a keeper forked in advance, that has
done all it can do before it knows its session. When it has taken one, the zygote forks the next. Where there is none
(it was killed, or could not be forked) the packet waits in the socket until there is. When the host is gone, so are
the zygote and its spare.
"""

from __future__ import annotations

import errno
import fcntl
import gc
import os
import select
import signal
import socket
import sys

from ..model.home import Home, SessionFolder
from ..system import kernel
from ..wire import frames
from .program import StartFailed
from .rehearsal import rehearse
from .start import start

_MESSAGE_MAX = 8192  # a path
_CHANNEL_FD = 3  # where a keeper has its first channel


def serve(sock: socket.socket, roles: str) -> None:
    """See that there is a spare, until the host closes its end."""
    kernel.set_name("hold-zygote")
    registration = kernel.register(roles)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends with its host, not with a terminal
    rehearse(os.path.join(roles, "rehearsal"))
    gc.collect()
    gc.freeze()  # what is shared stays shared: the collector never writes to it in a child
    sock.send(b"r")
    spare = _fork_spare(sock, roles)
    while True:
        if spare is None:
            select.select([sock], [], [])  # nobody to take a start: the next is taken by one forked for it
            if _ended(sock):
                break
            spare = _fork_spare(sock, roles)
            if spare is None:
                _refuse_next(sock)
                continue
        taken = spare.recv(1)  # its word that it took a start; nothing when it died
        spare.close()
        spare = None
        if _ended(sock):
            break
        if taken:
            spare = _fork_spare(sock, roles)
    _unlink(registration)


def _ended(sock: socket.socket) -> bool:
    try:
        return sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _refuse_next(sock: socket.socket) -> None:
    """Not even a process can be had: say so to whoever asked."""
    try:
        _, fds, _, _ = socket.recv_fds(sock, _MESSAGE_MAX, 1, socket.MSG_DONTWAIT)
    except BlockingIOError:
        return
    for fd in fds:
        _refuse(fd, "failed", f"no process for the session: {os.strerror(errno.EAGAIN)}")
        os.close(fd)


def _fork_spare(sock: socket.socket, roles: str) -> socket.socket | None:
    """A line to a new spare, which is nobody's child; None when no process can be had."""
    try:
        ours, theirs = socket.socketpair()
    except OSError:
        return None
    try:
        middle = os.fork()
    except OSError:
        ours.close()
        theirs.close()
        return None
    if middle:
        theirs.close()
        _, status = os.waitpid(middle, 0)
        if status:
            ours.close()
            return None
        return ours
    log = ""
    try:
        os.setsid()
        try:
            if os.fork():
                os._exit(0)
        except OSError:
            os._exit(1)
        ours.close()
        log = Home(os.path.dirname(roles)).log
        _be_spare(sock, theirs, roles)
    except BaseException:  # noqa: BLE001  (a forked child must never return into its parent's code)
        _log_traceback(log)
    finally:
        os._exit(1)


def _log_traceback(path: str) -> None:
    """Opened only now: a keeper holds no file of its host's."""
    import traceback

    try:
        with open(path, "a", encoding="utf-8", errors="backslashreplace") as f:
            f.write(f"keeper {os.getpid()}:\n{traceback.format_exc()}")
    except OSError:
        pass


def _refuse(channel_fd: int, code: str, message: str) -> None:
    error = {"code": code, "message": message, "hint": ""}
    try:
        os.write(channel_fd, frames.message(frames.RESULT, {"id": 0, "error": error}))
    except OSError:
        pass


def _be_spare(sock: socket.socket, zygote: socket.socket, roles: str) -> None:
    """Wait for a start and keep it; end with the zygote or the host. Does not return."""
    kernel.set_name("hold-spare")
    registration = kernel.register(roles)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    line = os.dup(sock.fileno())  # descriptor 0 is the host's line until here
    sock.detach()
    for number in (0, 1, 2):
        os.dup2(null, number)
    kernel.become_subreaper()
    told = _next_start(line, zygote)
    if told is None:
        _unlink(registration)
        os._exit(0)
    folder, channel = told
    if channel != _CHANNEL_FD:
        os.dup2(channel, _CHANNEL_FD, inheritable=False)
    os.closerange(_CHANNEL_FD + 1, 65536)
    kernel.set_name("hold-keeper")
    keep(SessionFolder(folder), registration)


def _next_start(line: int, zygote: socket.socket) -> tuple[str, int] | None:
    """The folder and the channel of the next start, the zygote told; None when host or zygote are gone."""
    host = socket.socket(fileno=line)
    waiting = select.poll()
    waiting.register(host, select.POLLIN)
    waiting.register(zygote, select.POLLIN)
    while True:
        ready = waiting.poll()
        if any(fd == zygote.fileno() for fd, _ in ready):
            return None
        try:
            message, fds, _, _ = socket.recv_fds(host, _MESSAGE_MAX, 1, socket.MSG_DONTWAIT | socket.MSG_CMSG_CLOEXEC)
        except BlockingIOError:
            continue
        if not message:
            return None
        zygote.send(b"t")
        zygote.close()
        return os.fsdecode(message), fds[0]


def keep(folder: SessionFolder, registration: str) -> None:
    """Be the keeper of the session in `folder` until it ends. Does not return."""
    lock = os.open(folder.keeper_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Held by this process alone, for its whole life: who can take it knows that the keeper is dead.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _refuse(_CHANNEL_FD, "conflict", "the session already has a keeper")
        _give_up(registration)
    try:
        keeper = start(folder, lock)
    except StartFailed as e:
        _refuse(_CHANNEL_FD, e.code, str(e))
        _give_up(registration)
    except OSError as e:
        _refuse(_CHANNEL_FD, "failed", f"the session could not start: {e.strerror}")
        _give_up(registration)
    keeper.adopt(socket.socket(fileno=_CHANNEL_FD))
    keeper.run()
    _unlink(registration)
    os._exit(0)


def _give_up(registration: str) -> None:
    _unlink(registration)
    os._exit(1)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def main() -> None:
    serve(socket.socket(fileno=0), sys.argv[1])
