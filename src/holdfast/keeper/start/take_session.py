"""From a session's folder to a keeper with a running program."""

from __future__ import annotations

import fcntl
import os
import socket
import time

from ...model.home import SessionFolder
from ..keeper import Keeper
from .program import Launch

_LOCK_TRIES, _LOCK_PAUSE_S = 200, 0.005  # a second: a look takes microseconds, and a starved one is starved no longer


def take_lock(folder: SessionFolder) -> int:
    """The session's lock; BlockingIOError where it has a keeper. Held by this process alone, for its whole life: who
    can take it knows that the keeper is dead. Somebody who looks has it too, for that moment, so it is tried again."""
    lock = os.open(folder.keeper_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for left in range(_LOCK_TRIES, -1, -1):
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if not left:
                raise
            time.sleep(_LOCK_PAUSE_S)
    return lock


def order(folder: SessionFolder, pipes: bool, launch: Launch | None) -> Launch:
    """Have the child set the program up, from here on beside us."""
    if launch is None or launch.pipes is not pipes or not launch.order(folder.path):  # of another kind, or killed
        if launch is not None:
            launch.discard()
        launch = Launch.prepare(pipes)
        launch.order(folder.path)
    return launch


def start(folder: SessionFolder, launch: Launch, host: socket.socket) -> Keeper:
    """A keeper whose program runs; raises StartFailed or OSError, and then nothing of it is left.

    The host has said hello before anybody was there. Its welcome is made while the program is still on its way through
    exec (the kernel takes its time to drop the child's memory), and sent when that has happened.
    """
    try:
        listener = listen(folder)  # while the child sets the program up
        program, manifest = launch.ready()
        keeper = Keeper(folder, manifest, program, listener)
        first = keeper.adopt(host)
        first.corked = True
        keeper.turn(0)
        launch.confirm()
    except BaseException:
        launch.abandon()
        try:
            os.unlink(folder.keeper_socket)
        except OSError:
            pass
        raise
    first.corked = False
    keeper.guarded(first, first.flush)
    return keeper


def listen(folder: SessionFolder) -> socket.socket:
    """The keeper's own address in its folder. The lock is ours, so a socket file there is a dead one's."""
    here = os.open(folder.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        name = os.path.basename(folder.keeper_socket)
        if os.access(name, os.F_OK, dir_fd=here):
            os.unlink(name, dir_fd=here)
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
