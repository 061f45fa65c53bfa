"""A PgBouncer of the test's own before a test server: transaction pooling, two connections for everybody."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from tests.support.needs import program
from tests.support.postgres import Server, _free_port

_DEADLINE_S = 60.0


class Bouncer:
    def __init__(self, server: Server, **settings: str) -> None:
        pooler = program("pgbouncer")
        self.port = _free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="hf-bouncer-"))
        self.folder.chmod(0o755)
        wanted = {
            "listen_addr": "127.0.0.1",
            "listen_port": str(self.port),
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": "2",
            "unix_socket_dir": "",
            **settings,
        }
        lines = ["[databases]", f"* = host=127.0.0.1 port={server.port} user=postgres password=secret", "[pgbouncer]"]
        lines += [f"{name} = {value}" for name, value in wanted.items()]
        config = self.folder / "pgbouncer.ini"
        config.write_text("\n".join(lines) + "\n")
        config.chmod(0o644)
        # It refuses root, as the server does; and it goes with the test process.
        words = [*(server.become or ["setpriv"]), "--pdeathsig", "INT", pooler, "-q", str(config)]
        self._log = open(self.folder / "log", "wb")  # noqa: SIM115 - closed with it
        self._process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=self._log, stderr=self._log, cwd="/")
        self._until_it_listens()

    def _until_it_listens(self) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                return
            except OSError:
                said = (self.folder / "log").read_text()
                assert self._process.poll() is None, said
                assert time.monotonic() < deadline, said
                time.sleep(0.02)

    def before(self, url: str) -> str:
        """The way to the same database through this pooler."""
        parts = urlsplit(url)
        return urlunsplit(parts._replace(netloc=f"postgres:secret@127.0.0.1:{self.port}"))

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)
        self._log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
