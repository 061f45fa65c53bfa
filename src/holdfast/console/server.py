"""The web process: one per home, by its lock; it binds, says so, serves, and goes when it is told to."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import signal
import socket
from collections.abc import Iterator

import uvicorn

from ..client import process
from ..client._async.host import AsyncHost
from ..model.errors import HoldfastError
from ..model.home import Home
from ..model.limits import VIEW_MESSAGE_BYTES_MAX, WEB_REQUESTS_MAX
from ..version import VERSION
from .app import make
from .http.callers import Where
from .http.slow_request import TimelyProtocol

_GRACE_S = 1  # for answers under way when it is told to go; streams are cut, clients come again
_LOCK_TRIES = 50  # a tenth of a second each: the one before it is on its way out


class WebServer(uvicorn.Server):
    """uvicorn without its clock: it would wake up ten times a second to see whether it should stop."""

    def __init__(self, config: uvicorn.Config, ready_fd: int) -> None:
        super().__init__(config)
        self._told, self._ready_fd = asyncio.Event(), ready_fd

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._told.set)
        yield

    async def main_loop(self) -> None:
        self.server_state.default_headers = self.config.encoded_headers
        port = self.servers[0].sockets[0].getsockname()[1]
        os.write(self._ready_fd, json.dumps({"port": port}).encode() + b"\n")
        os.close(self._ready_fd)
        await self._told.wait()


def bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # By its protocol's number asyncio knows TCP, and sets TCP_NODELAY on what it accepts: an echo must not wait for an
    # acknowledgement of the packet before it.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except (OSError, UnicodeError) as e:
        sock.close()
        words = getattr(e, "strerror", None) or str(e)
        raise HoldfastError("failed", f"cannot listen on {host}:{port}: {words}", "choose another port") from None
    sock.set_inheritable(False)
    return sock


def take_lock(home: Home) -> int:
    """One web process per home. The daemon starts the next one when the last is gone, or about to be."""
    import time

    fd = os.open(home.web_lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            time.sleep(0.1)
    os.close(fd)
    raise HoldfastError("conflict", "a web process of this home is running already", "hold down ends it")


async def serve(home: Home, sock: socket.socket, ready_fd: int, public: str | None) -> None:
    host, port = sock.getsockname()[:2]
    where = Where(str(host), int(port), public)
    # Its own rights are the person's: it has to ask whom a token stands for. What an agent does is done with that
    # agent's key.
    owner = AsyncHost(home.path)
    owner.operator = None
    config = uvicorn.Config(
        make(owner, where),
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        limit_concurrency=WEB_REQUESTS_MAX,
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        ws_max_size=VIEW_MESSAGE_BYTES_MAX,
        ws_ping_interval=None,  # pages have a beat of their own, which they can see
        timeout_graceful_shutdown=_GRACE_S,
        lifespan="on",
        loop="asyncio",
        http=TimelyProtocol,
    )
    server = WebServer(config, ready_fd)

    try:
        await server.serve(sockets=[sock])
    finally:
        owner.close()


def _at_home() -> None:
    """What an agent starts through here begins where a login of this user would."""
    import pwd

    try:
        user = pwd.getpwuid(os.getuid())
    except KeyError:
        return
    os.environ.setdefault("SHELL", user.pw_shell or "/bin/sh")
    with contextlib.suppress(OSError):
        os.chdir(os.environ.get("HOME") or user.pw_dir)


def main(home: Home, host: str, port: int, ready_fd: int, public: str | None = None) -> int:
    os.set_inheritable(ready_fd, False)
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(message)s")
    process.set_name("hold-web")
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    registration = process.register(home.roles)
    _at_home()
    AsyncHost.local_files = False
    try:
        lock = take_lock(home)
        sock = bind(host, port)
        about = {
            "pid": os.getpid(),
            "started": process.start_time(os.getpid()),
            "version": VERSION,
            "host": sock.getsockname()[0],
            "port": sock.getsockname()[1],
            "public": public,
        }
        os.ftruncate(lock, 0)
        os.pwrite(lock, json.dumps(about).encode(), 0)
        asyncio.run(serve(home, sock, ready_fd, public))
    except HoldfastError as e:
        os.write(ready_fd, json.dumps({"error": e.line()}).encode() + b"\n")
        return e.exit_status
    finally:
        os.unlink(registration)
    return 0
