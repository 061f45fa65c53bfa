"""A PostgreSQL of the test run's own: its cluster in a temporary folder, on a unix socket and a loopback port."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

from tests.support.needs import program

_DEADLINE_S = 60.0  # initdb takes a second on an idle machine
_MEMORY = "/dev/shm"
_MEMORY_MIN = 8 << 30  # bytes free: four test processes have a server each, which grows to a gigabyte


def _folder() -> str | None:
    """Memory where there is plenty: a database is three hundred files, which take a disk longer to make and remove than most tests."""
    if not os.access(_MEMORY, os.W_OK):
        return None
    found = os.statvfs(_MEMORY)
    return _MEMORY if found.f_bavail * found.f_frsize >= _MEMORY_MIN else None


class Server:
    """`url()` is a new database; `stop()` and `start()` are real."""

    def __init__(self, *, on_disk: bool = False, **settings: str) -> None:
        """`settings` go before those that keep tests quick; `on_disk` is for whoever measures what a flush costs."""
        self._settings = settings
        self.bin = os.path.dirname(program("initdb"))
        self.folder = Path(tempfile.mkdtemp(prefix="hf-pg-", dir=None if on_disk else _folder()))
        self.become: list[str] = []
        if os.geteuid() == 0:  # the server refuses root
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            ids = ["--reuid", str(user.pw_uid), "--regid", str(user.pw_gid), "--clear-groups"]
            self.become = ["setpriv", *ids]
        self.port = _free_port()
        self._made = 0
        self._process: subprocess.Popen[bytes] | None = None
        # md5: scram spends milliseconds of CPU on each connection, and these tests make thousands.
        self._run(
            "initdb",
            "-D",
            str(self.data),
            "-U",
            "postgres",
            "-A",
            "md5",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--no-sync",
            "--pwfile",
            str(self._password_file()),
        )
        self.start()
        # Copied as files where it can be (since version 15): page by page through the log is twice the work.
        self._how = "STRATEGY FILE_COPY" if int(self._ask("SHOW server_version_num")) >= 150000 else ""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def _password_file(self) -> Path:
        path = self.folder / "password"
        path.write_text("secret\n")
        path.chmod(0o644)
        return path

    def _run(self, program: str, *words: str) -> str:
        done = subprocess.run(
            [*self.become, f"{self.bin}/{program}", *words],
            capture_output=True,
            text=True,
            timeout=_DEADLINE_S,
            cwd="/",
            check=False,
            env={**os.environ, "PGPASSWORD": "secret"},
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"
        return done.stdout

    def start(self) -> None:
        # No fsync: killed are clients, and the server's processes, never the machine; its own flushes are its own
        # business, and cost minutes here. Few resources: it is one of many processes.
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.folder),
            "shared_buffers": "16MB",
            "max_connections": "60",
            "autovacuum": "off",
            "jit": "off",
            "fsync": "off",
            "max_wal_size": "256MB",
            "logging_collector": "off",
            **self._settings,
        }
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                # It goes with the test process, also when that is killed; so start it on the main thread.
                [
                    *(self.become or ["setpriv"]),
                    "--pdeathsig",
                    "INT",
                    f"{self.bin}/postgres",
                    "-D",
                    str(self.data),
                    *options,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )
        deadline = time.monotonic() + _DEADLINE_S
        while self._ask("SELECT 1") != "1":
            assert self._process.poll() is None, (self.folder / "server.log").read_text()
            assert time.monotonic() < deadline, (self.folder / "server.log").read_text()
            time.sleep(0.05)

    def _ask(self, sql: str, database: str = "postgres") -> str:
        done = subprocess.run(
            [
                f"{self.bin}/psql",
                "-XAtq",
                "-h",
                str(self.folder),
                "-p",
                str(self.port),
                "-U",
                "postgres",
                "-d",
                database,
                "-v",
                "ON_ERROR_STOP=1",
                "-c",
                sql,
            ],
            capture_output=True,
            text=True,
            timeout=_DEADLINE_S,
            check=False,
            env={**os.environ, "PGPASSWORD": "secret"},
        )
        return done.stdout.strip()

    def sql(self, sql: str, url: str) -> str:
        return self._ask(sql, url.rpartition("/")[2])

    def url(self, password: str = "secret") -> str:
        """A database that nobody else uses."""
        self._made += 1
        name = f"test_{os.getpid()}_{self._made}"
        self._ask(f"CREATE DATABASE {name} TEMPLATE template0 {self._how}")
        return f"postgresql://postgres:{password}@127.0.0.1:{self.port}/{name}"

    def stop(self, how: str = "fast") -> None:
        if self._process is not None:
            number = {"fast": 2, "immediate": 3}[how]  # SIGINT, SIGQUIT: documented shutdown modes of the server
            self._process.send_signal(number)
            self._process.wait(_DEADLINE_S)
            self._process = None

    @property
    def running(self) -> bool:
        return self._process is not None

    def close(self) -> None:
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
