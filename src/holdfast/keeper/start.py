"""From a session's folder to a keeper with a running program."""

from __future__ import annotations

import json
import os
import socket
import time

from ..model.home import SessionFolder
from ..system import kernel
from ..wire import frames
from . import program
from .keeper import Keeper


def start(folder: SessionFolder, lock: int) -> Keeper:
    """A keeper whose program runs; raises StartFailed or OSError, and then nothing of it is left."""
    launch = program.Launch.begin(folder.manifest)
    try:
        listener = listen(folder)  # while the child sets the program up
        started, manifest = launch.ready()
        keeper = Keeper(folder, manifest, started, listener)
        write_facts(lock, manifest, started)
        launch.confirm()
    except BaseException:
        launch.abandon()
        try:
            os.unlink(folder.keeper_socket)
        except OSError:
            pass
        raise
    return keeper


def write_facts(lock: int, manifest: program.Json, started: program.Program) -> None:
    """Who keeps this, in the lock's own file: for people and tests; nothing depends on it but what it says."""
    me = os.getpid()
    facts = {
        "pid": me, "started": kernel.start_time(me), "program": started.pid, "protocol": frames.VERSION,
        "generation": manifest["generation"], "at": time.time(), "tty": started.tty,
    }  # fmt: skip
    os.ftruncate(lock, 0)
    os.pwrite(lock, json.dumps(facts, separators=(",", ":")).encode(), 0)


def listen(folder: SessionFolder) -> socket.socket:
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
