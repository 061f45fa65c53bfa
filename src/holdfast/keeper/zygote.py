"""The zygote: a warm process that keepers are forked from. It imports everything once and freezes it.

It speaks one tiny protocol with its host over a socket pair on descriptor 0: a message is a session's folder,
with the keeper's first channel as its one descriptor. When the host is gone, so is the zygote.
"""

from __future__ import annotations

import fcntl
import gc
import os
import signal
import socket
import sys
import time

from ..model.home import SessionFolder
from ..system import cgroup, kernel
from ..system.files import read_json, write_json
from ..wire import frames
from . import program
from .keeper import Keeper

_MESSAGE_MAX = 8192  # a path


def serve(sock: socket.socket, roles: str) -> None:
    """Fork keepers until the host closes its end."""
    kernel.set_name("hold-zygote")
    registration = kernel.register(roles)
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # it ends with its host, not with a terminal
    gc.collect()
    gc.freeze()  # what is shared stays shared: the collector never writes to it in a child
    sock.sendall(b"r")
    while True:
        message, fds, _, _ = socket.recv_fds(sock, _MESSAGE_MAX, 1)
        if not message:
            break
        _fork_keeper(sock, os.fsdecode(message), fds[0])
        os.close(fds[0])
    try:
        os.unlink(registration)
    except OSError:
        pass


def _fork_keeper(sock: socket.socket, folder: str, channel_fd: int) -> None:
    try:
        middle = os.fork()
    except OSError as e:
        _refuse(channel_fd, "failed", f"no process for the session: {os.strerror(e.errno or 0)}")
        return
    if middle:
        os.waitpid(middle, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        sock.close()
        keep(SessionFolder(folder), channel_fd)
    except BaseException:  # noqa: BLE001  (a forked child must never return into its parent's code)
        import traceback

        traceback.print_exc()
    finally:
        os._exit(1)


def _refuse(channel_fd: int, code: str, message: str) -> None:
    error = {"code": code, "message": message, "hint": ""}
    try:
        os.write(channel_fd, frames.message(frames.RESULT, {"id": 0, "error": error}))
    except OSError:
        pass


def keep(folder: SessionFolder, channel_fd: int) -> None:
    """Be the keeper of the session in `folder` until it ends. Does not return."""
    kernel.set_name("hold-keeper")
    errors = os.open(folder.keeper_errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    os.dup2(errors, 2)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    if channel_fd != 3:
        os.dup2(channel_fd, 3)
    os.set_inheritable(3, False)  # a received descriptor is inheritable, and the program must not hold our line open
    os.closerange(4, 65536)
    channel = socket.socket(fileno=3)
    roles = os.path.join(os.path.dirname(os.path.dirname(folder.path)), "roles")
    registration = kernel.register(roles)
    lock = os.open(folder.keeper_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        # Held by this process alone, for its whole life: who can take it knows that the keeper is dead.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        _refuse(3, "conflict", "the session already has a keeper")
        os._exit(1)
    os.chdir("/")
    kernel.become_subreaper()
    try:
        keeper = _start(folder)
    except program.StartFailed as e:
        _refuse(3, e.code, str(e))
        os._exit(1)
    except OSError as e:
        _refuse(3, "failed", f"the session could not start: {e.strerror}")
        os._exit(1)
    keeper.adopt(channel)
    keeper.run()
    os.unlink(registration)
    os._exit(0)


def _start(folder: SessionFolder) -> Keeper:
    manifest = read_json(folder.manifest)
    if manifest is None:
        raise OSError(5, "its manifest cannot be read")
    listener = _listen(folder)
    limits: dict[str, int] = manifest.get("limits", {})
    leaves = cgroup.make_leaf(f"holdfast-{manifest['id']}", limits.get("pids", 0), limits.get("memory", 0))
    try:
        started = program.start(manifest)
    except BaseException:
        cgroup.remove(leaves)
        os.unlink(folder.keeper_socket)
        raise
    me = os.getpid()
    write_json(
        folder.keeper,
        {
            "pid": me, "started": kernel.start_time(me), "program": started.pid, "protocol": frames.VERSION,
            "generation": manifest["generation"], "at": time.time(), "tty": started.tty,
        },
        durable=False,
    )  # fmt: skip
    return Keeper(folder, manifest, started, listener, leaves)


def _listen(folder: SessionFolder) -> socket.socket:
    """The keeper's own address in its folder. The lock is ours, so a socket file there is a dead one's."""
    here = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        name = os.path.basename(folder.keeper_socket)
        try:
            os.unlink(name, dir_fd=here)
        except FileNotFoundError:
            pass
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        before = os.umask(0o177)  # never readable by others, not even for a moment
        try:
            listener.bind(f"/proc/self/fd/{here}/{name}")
        finally:
            os.umask(before)
        listener.listen(64)
        listener.setblocking(False)
        return listener
    finally:
        os.close(here)


def main() -> None:
    serve(socket.socket(fileno=0), sys.argv[1])
