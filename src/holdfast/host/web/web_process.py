"""Keeping the web process: started by exec, adopted after a restart, started again when it is found dead.

    web.json   where it is to listen, as long as it is wanted
    web.lock   held by the process itself, so that the kernel says whether it lives

It does not need this daemon to stay up, and this daemon never waits for it. `hold down` ends both.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from typing import Any

from ...model import web_address
from ...model.errors import HoldfastError
from ...model.home import Home
from ...system import kernel, programs
from ...system.atomic_files import read_json, write_json
from ...version import VERSION

Json = dict[str, Any]
log = logging.getLogger("holdfast.host")

_READY_S = 30.0  # an interpreter with a web framework, on a machine that is busy
_STOP_S = 5.0  # it lets go of its streams within a second; then it is killed
_AGAIN_S = (1.0, 30.0)  # before a start after a second death: soon, and not in a loop; after the first, at once
_STEADY_S = 10.0  # one that served for so long is no loop


class Web:
    """The one web process of this home."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None
        self._pid: int | None = None
        self._setting: Json | None = None
        self._keeping: asyncio.Task[None] | None = None
        self._turn = asyncio.Lock()  # of two who want it elsewhere, one after the other

    def about(self) -> Json | None:
        """Where it serves; None where it is not wanted."""
        if self._setting is None:
            return None
        url = f"http://{web_address.authority(self._setting['host'], self._setting['port'])}"
        return {"url": url, "public": self._setting.get("public"), "pid": self._pid}

    def begin(self) -> None:
        """With the daemon: adopt the one that lives, or start it."""
        setting = read_json(self._home.web_file)
        if setting and isinstance(setting.get("host"), str) and isinstance(setting.get("port"), int):
            self._setting = setting
            self._keep()

    async def use(self, host: str, port: int, public: str | None = None) -> None:
        """Serve there from now on. Raises where that is not possible, and then everything is as before."""
        async with self._turn:
            await self._use(host, port, public)

    async def _use(self, host: str, port: int, public: str | None) -> None:
        before = self._setting
        same = before is not None and (before["host"], before.get("public")) == (host, public)
        if before is not None and same and port in (0, before["port"]) and self._pid is not None:
            return
        await self.stop()
        self._setting = {"host": host, "port": port, "public": public}
        try:
            pid, chosen = await self._start(host, port)
        except BaseException:  # also where no process can be made
            self._setting = before
            if before is not None:
                self._keep()
            raise
        self._setting, self._pid = {**self._setting, "port": chosen}, pid
        write_json(self._home.web_file, self._setting)
        self._keep()

    async def forget(self) -> None:
        """Not wanted any more."""
        async with self._turn:
            await self.stop()
            self._setting = None
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._home.web_file)

    def _keep(self) -> None:
        self._keeping = asyncio.get_running_loop().create_task(self._supervise())

    async def _supervise(self) -> None:
        assert self._setting is not None
        loop = asyncio.get_running_loop()
        pause = 0.0
        while True:
            served = 0.0
            try:
                self._pid = (
                    self._pid
                    or await self._living()
                    or (await self._start(self._setting["host"], self._setting["port"]))[0]
                )
            except HoldfastError as e:
                log.error("the web process does not start: %s", e.message)
            else:
                began = loop.time()
                await _gone(self._pid)
                served = loop.time() - began
                log.warning("the web process (pid %d) has ended", self._pid)
            self._pid = None
            self._reap()
            pause = 0.0 if served >= _STEADY_S else pause
            await asyncio.sleep(pause)
            pause = min(max(_AGAIN_S[0], pause * 2), _AGAIN_S[1])

    async def _living(self) -> int | None:
        """The one that a former daemon started, if it is of this version and listens where it should."""
        held = self._holder()
        if held is None or self._setting is None:
            return None
        wanted = (*(self._setting.get(name) for name in ("host", "port", "public")), VERSION)
        if (held["host"], held["port"], held.get("public"), held["version"]) == wanted:
            return int(held["pid"])
        await _end(held["pid"])
        return None

    def _holder(self) -> Json | None:
        if not kernel.lock_held(self._home.web_lock):
            return None
        held = read_json(self._home.web_lock)
        known = held is not None and {"pid", "started", "host", "port", "version"} <= held.keys()
        return held if held is not None and known and kernel.start_time(held["pid"]) == held["started"] else None

    async def _start(self, host: str, port: int) -> tuple[int, int]:
        """Start it, and wait until it serves: its pid and its port."""
        public = (self._setting or {}).get("public")
        ready, theirs = os.pipe()
        words = os.open(self._home.web_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", programs.CONSOLE, self._home.path, host, str(port), str(theirs), public or ""],
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
                cwd="/",
                start_new_session=True,
                pass_fds=[theirs],
                env={**os.environ, "HOLDFAST_HOME": self._home.path},
            )
        finally:
            os.close(theirs)
            os.close(words)
        try:
            told = json.loads(await asyncio.wait_for(_line(ready), _READY_S) or b"{}")
        except (TimeoutError, ValueError):
            told = {}
        finally:
            os.close(ready)
        if "port" not in told:
            await _end(self._process.pid)
            self._reap()
            raise HoldfastError("failed", told.get("error") or "it ended before it served", f"see {self._home.web_log}")
        return self._process.pid, int(told["port"])

    def _reap(self) -> None:
        if self._process is not None:
            self._process.poll()

    async def stop(self) -> None:
        """End it; it is started again with the daemon as long as it is wanted."""
        if self._keeping is not None:
            self._keeping.cancel()
            await asyncio.gather(self._keeping, return_exceptions=True)
            self._keeping = None
        held = self._holder()
        for pid in {p for p in (self._pid, held["pid"] if held else None) if p is not None}:
            await _end(pid)
        self._pid = None
        self._reap()


async def _end(pid: int) -> None:
    for number, patience in ((signal.SIGTERM, _STOP_S), (signal.SIGKILL, _STOP_S)):
        try:
            os.kill(pid, number)
            await asyncio.wait_for(_gone(pid), patience)
            return
        except ProcessLookupError:
            return
        except TimeoutError:
            continue


async def _gone(pid: int) -> None:
    """Until a process has ended; the kernel tells."""
    try:
        fd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        await _readable(fd)
    finally:
        os.close(fd)


async def _line(fd: int) -> bytes:
    """What comes through a pipe until it is closed: one short line."""
    os.set_blocking(fd, False)
    data = b""
    while True:
        await _readable(fd)
        piece = os.read(fd, 4096)
        data += piece
        if not piece or data.endswith(b"\n"):
            return data


async def _readable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(fd)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
