"""Keeping one zygote warm, and asking it for keepers. It is started by exec, never imported."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
import time

from ...model.errors import HoldfastError
from ...model.home import Home
from ...model.limits import KEEPER_ANSWER_S
from ...system import programs

log = logging.getLogger("holdfast.host")

_FULL_PAUSE_S = 0.01  # about what a start takes: then there is room for one more
_READY_S = 30.0  # a loaded machine takes seconds to start an interpreter; one that is broken ends, unwaited for


class Zygote:
    """The warm process; started again when it is found dead."""

    def __init__(self, roles: str) -> None:
        self._roles = roles
        self._sock: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process and self._process.poll() is None else None

    def warm_up(self) -> asyncio.Task[None]:
        """Start it beside everything else: only a new session has to wait for it."""
        return asyncio.get_running_loop().create_task(self._warm_up())

    async def _warm_up(self) -> None:
        async with self._lock:
            try:
                await self.start()
            except HoldfastError as e:
                log.error("%s; the next session starts another", e.message)

    async def start(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)  # a start is one packet
        # -I -S: nothing of the user's Python set-up runs in a keeper, and 3.7 MB less are imported.
        # LD_BIND_NOW: an address that the linker looks up only when a keeper needs it is in a page of the keeper's own.
        complaints = os.open(Home(os.path.dirname(self._roles)).log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", programs.KEEPER, self._roles],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=complaints,
                cwd="/",
                start_new_session=True,
                env={**os.environ, "LD_BIND_NOW": "1"},
            )
        except OSError as e:
            ours.close()
            raise HoldfastError("busy", f"no process for a session: {e.strerror}", "end some, or ulimit -u") from None
        finally:
            os.close(complaints)
            theirs.close()
        ours.setblocking(False)
        self._sock = ours
        try:
            ready = await asyncio.wait_for(asyncio.get_running_loop().sock_recv(ours, 1), _READY_S)
        except TimeoutError:
            ready = b""
        if not ready:
            self.stop()
            raise HoldfastError("internal", "the zygote did not start", "see host.log in the home")

    async def keeper(self, folder: str, kind: str) -> socket.socket:
        """Ask for a keeper of the session in `folder`; returns its first channel, before any answer."""
        async with self._lock:
            for attempt in (1, 2):
                if self.pid is None or self._sock is None:
                    self.stop()
                    await self.start()
                assert self._sock is not None
                ours, theirs = socket.socketpair()
                try:
                    packet = (b"p" if kind == "pipes" else b"t") + os.fsencode(folder)
                    await self._hand(self._sock, packet, theirs.fileno())
                    return ours
                except HoldfastError:
                    ours.close()
                    raise
                except OSError:
                    ours.close()
                    self.stop()
                    if attempt == 2:
                        raise HoldfastError("internal", "the zygote is gone", "try again") from None
                finally:
                    theirs.close()
        raise AssertionError("unreachable")

    @staticmethod
    async def _hand(sock: socket.socket, packet: bytes, fd: int) -> None:
        """Where hundreds of starts wait to be taken, this one waits before them: a full queue is no dead zygote."""
        deadline = time.monotonic() + KEEPER_ANSWER_S
        while True:
            try:
                socket.send_fds(sock, [packet], [fd])
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise HoldfastError("busy", "too many starts wait for their turn", "try again soon") from None
            await asyncio.sleep(_FULL_PAUSE_S)

    def stop(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None
        if self._process is not None:
            try:
                self._process.wait(0.5)  # it ends by itself when its socket closes
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None
