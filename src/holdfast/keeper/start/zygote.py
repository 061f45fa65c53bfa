"""The zygote: a warm process that keepers are forked from. It imports everything once and freezes it.

It speaks one tiny protocol with its host over a socket pair on descriptor 0: a packet is `t` or `p` (a terminal or
pipes) and a session's folder, with the keeper's first channel as its one descriptor. Who takes the packet is the
*spare*: a keeper forked in advance, that has done all it can do before it knows its session. When its program runs, the
zygote forks the next: not sooner, because two forks and a start would share the processors, unless that start takes
long and would keep all others waiting. Where there is none (it was
killed, or could not be forked) the packet waits in the socket until there is. When the host is gone, so are the zygote
and its spare.
"""

from __future__ import annotations

import errno
import gc
import os
import select
import signal
import socket
import sys

from ...model.home import Home, SessionFolder
from ...system import kernel
from ...wire import keeper_frames
from ..end.session_end import not_started
from .program import Launch, StartFailed
from .spare import next_start, settle_in
from .take_session import order, start, take_lock
from .warm_pages import rehearse

_MESSAGE_MAX = 8192  # a path


def serve(sock: socket.socket, roles: str) -> None:
    """See that there is a spare, until the host closes its end.

    What this loop writes to, between one fork and the next, is a copy of its own for every keeper: so it is kept short.
    """
    kernel.set_name("hold-zygote")
    registration = kernel.register(roles)
    # The zygote ends with its host, and a session by its program, by stop, or by KILL: keepers inherit this.
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel itself buries keepers, at once: nobody waits for them
    alive, held = os.pipe2(os.O_CLOEXEC)  # `held` is open as long as the zygote lives
    rehearse(roles)
    gc.collect()
    gc.freeze()  # what is shared stays shared: the collector never writes to it in a child
    try:
        sock.send(b"r")
    except OSError:  # the host was killed while this came up
        _unlink(registration)
        return
    line = sock.fileno()
    spare = _fork_spare(line, alive, held, roles)
    while True:
        if spare < 0:
            select.select([line], [], [])  # nobody to take a start: the next is taken by one forked for it
            if _ended(sock):
                break
            spare = _fork_spare(line, alive, held, roles)
            if spare < 0:
                _refuse_next(sock)
                continue
        taken = os.read(spare, 1)  # its word that it took a start, see _Word; nothing when it died
        os.close(spare)
        spare = -1
        if taken:
            spare = _fork_spare(line, alive, held, roles)
        elif _ended(sock):
            break
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


def _fork_spare(line: int, alive: int, held: int, roles: str) -> int:
    """What a new spare's word is read from; -1 when no process can be had."""
    try:
        word, theirs = os.pipe2(os.O_CLOEXEC)
    except OSError:
        return -1
    try:
        pid = os.fork()
    except OSError:
        os.close(word)
        os.close(theirs)
        return -1
    if pid:
        os.close(theirs)
        return word
    try:
        os.setsid()
        os.close(word)
        os.close(held)
        _be_spare(line, alive, theirs, roles)
    except BaseException:  # noqa: BLE001  (a forked child must never return into its parent's code)
        _log_traceback(Home(os.path.dirname(roles)).log)
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
        os.write(channel_fd, keeper_frames.message(keeper_frames.RESULT, {"id": 0, "error": error}))
    except OSError:
        pass


def _be_spare(line: int, alive: int, word: int, roles: str) -> None:
    """Wait for a start and keep it; end with the zygote or the host. Does not return."""
    registration, host, null = settle_in(line, roles, "hold-spare", (0, 1, 2))  # the host's line was descriptor 0
    kernel.become_subreaper()
    launch = _prepared()
    told = next_start(host, alive)
    if told is None:
        _unlink(registration)
        os._exit(0)
    folder, pipes, channel = told
    keep(SessionFolder(folder), pipes, channel, launch, registration, _Word(word), (host.detach(), null, alive))


def _prepared() -> Launch | None:
    """A child in advance; None where there is none to be had now, and the start itself says so if that is still so."""
    try:
        return Launch.prepare(pipes=False)
    except OSError:
        return None


def keep(
    folder: SessionFolder,
    pipes: bool,
    channel: int,
    launch: Launch | None,
    registration: str,
    word: _Word,
    spent: tuple[int, ...],
) -> None:
    """Be the keeper of the session in `folder` until it ends. Does not return. `spent` are a spare's descriptors."""
    try:
        take_lock(folder)
    except BlockingIOError:
        _refuse(channel, "conflict", "the session already has a keeper")
        _give_up(registration, word)
    first = socket.socket(fileno=channel)
    try:
        launch = order(folder, pipes, launch)
        launch.overdue = word.say
        for fd in spent:
            os.close(fd)
        kernel.set_name("hold-keeper")  # not before the lock: whoever sees no spare any more sees who took the start
        keeper = start(folder, launch, first)
    except StartFailed as e:
        not_started(folder, e)
        _refuse(channel, e.code, str(e))
        _give_up(registration, word)
    except OSError as e:
        failed = StartFailed("failed", f"the session could not start: {e.strerror}")
        not_started(folder, failed)
        _refuse(channel, failed.code, str(failed))
        _give_up(registration, word)
    keeper.begin()
    word.say()
    keeper.run()
    _unlink(registration)
    os._exit(0)


class _Word:
    """What a spare tells the zygote, once: its start is over, or takes long. The next one is forked then."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def say(self) -> None:
        fd, self._fd = self._fd, -1
        if fd < 0:
            return
        try:
            os.write(fd, b"t")
        except OSError:
            pass  # the zygote is gone; the host starts another
        os.close(fd)


def _give_up(registration: str, word: _Word) -> None:
    _unlink(registration)
    word.say()
    os._exit(1)


def _unlink(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass


def main() -> None:
    serve(socket.socket(fileno=0), sys.argv[1])
