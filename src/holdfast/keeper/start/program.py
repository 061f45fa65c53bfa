"""Starting the session's program: a PTY or pipes, and a child that has nothing of ours but what it was promised."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import select
import signal
import struct
import termios
import time

from ...model.home import SessionFolder
from ...system import bubblewrap_entry, cgroup, kernel
from ...system.atomic_files import read_json
from ...wire import keeper_frames

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]


_OOM_SCORE = b"300"  # the kernel's killer takes the program before its keeper
_TOLD_BYTES = 64 << 10  # a pipe holds that much: the child never waits for its keeper
_MESSAGE_MAX = 8 << 10  # characters about what failed: the longest path, and with every one escaped it still fits
# What the keeper itself needs of a manifest; the rest, environment and command, is the child's alone.
_KEEPERS_OWN = (
    "id",
    "token",
    "generation",
    "kind",
    "size",
    "offset",
    "retain_bytes",
    "cgroup",
    "lease_s",
    "grace_s",
    "takeover_max_s",
    "spooled",
)
_OVERDUE_MS = 500  # a start takes milliseconds; one that waits for a folder or a file which hangs has no end
_PATH_BYTES = 8192  # longer than any path
_DESCRIPTORS = 65536  # a spare's are a handful; this is past all of them
_IUTF8 = 0o40000  # erase whole characters in canonical mode; termios does not name it in 3.11


class StartFailed(Exception):
    """The program did not start; `code` is what a shell would have returned."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Program:
    """The running main program and the descriptors to it (-1 where there is none)."""

    __slots__ = ("master", "pid", "slave", "stderr", "stdin", "stdout", "tty")

    def __init__(self) -> None:
        self.pid = 0
        self.master = self.slave = self.stdin = self.stdout = self.stderr = -1
        self.tty = ""

    @property
    def ends(self) -> list[int]:
        """Every descriptor to it that there is."""
        return [fd for fd in (self.master, self.slave, self.stdin, self.stdout, self.stderr) if fd >= 0]


def set_size(fd: int, cols: int, rows: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


class Launch:
    """A program on its way: a disposable child that sets everything up and then becomes it by exec.

    The child reads the manifest and makes the environment, so that the memory this takes is its own and gone with exec:
    the keeper's pages stay shared with the zygote's. It is forked before its session is known, waits for its order, and
    ends when it is not needed any more.
    """

    __slots__ = ("_line", "_orders", "_rest", "overdue", "pipes", "program")

    def __init__(self, program: Program, pipes: bool, orders: int, line: int) -> None:
        self.program, self.pipes, self._orders, self._line = program, pipes, orders, line
        self._rest = b""
        self.overdue: Callable[[], None] | None = None  # called once when the child takes long

    @classmethod
    def prepare(cls, pipes: bool, fork: Callable[[], int] = os.fork) -> Launch:
        program, stdio = open_ends(pipes)
        orders, ours = os.pipe2(os.O_CLOEXEC)
        line, theirs = os.pipe2(os.O_CLOEXEC)
        try:
            program.pid = fork()
        except OSError:
            for fd in {*stdio, *program.ends, orders, ours, line, theirs}:
                os.close(fd)
            raise
        if program.pid == 0:
            _child(stdio, not pipes, orders, theirs)
        os.close(orders)
        os.close(theirs)
        if pipes:
            for fd in stdio:
                os.close(fd)
        return cls(program, pipes, ours, line)

    def order(self, folder: str) -> bool:
        """Start what lies in this folder; false when the child is not there any more."""
        try:
            os.write(self._orders, os.fsencode(folder))
        except BrokenPipeError:
            return False
        os.close(self._orders)
        return True

    def discard(self) -> None:
        """Another kind of program is wanted: close every end of this one, which ends its child."""
        self.close()
        os.waitpid(self.program.pid, 0)

    def close(self) -> None:
        for fd in (*self.program.ends, self._orders, self._line):
            os.close(fd)

    def ready(self) -> tuple[Program, Json]:
        """The program's ends, and what a keeper must know of the manifest. The exec is still to come."""
        data = b""
        while b"\n" not in data and (more := self._heard()):
            data += more
        line, _, self._rest = data.partition(b"\n")
        told = self._told(line)
        self.program.tty = told["tty"]
        return self.program, told

    def confirm(self) -> None:
        """Return when exec has happened; raise StartFailed when it has not."""
        data = self._rest
        while more := self._heard():  # exec closes the child's end
            data += more
        os.close(self._line)
        if data:
            self._told(data)

    def abandon(self) -> None:
        """Something else went wrong meanwhile: nothing of it may be left running."""
        if self.program.pid:
            os.kill(self.program.pid, signal.SIGKILL)

    def _heard(self) -> bytes:
        """What the child says next; nothing when its end is closed."""
        if self.overdue is not None:
            waiting = select.poll()  # select() would take seven pages of stack for its sets
            waiting.register(self._line, select.POLLIN)
            if not waiting.poll(_OVERDUE_MS):
                self.overdue()
                self.overdue = None
        return os.read(self._line, _TOLD_BYTES)

    def _told(self, data: bytes) -> Json:
        told: Json = json.loads(data) if data else {"code": "failed", "message": "the session could not start"}
        if "code" in told:
            os.waitpid(self.program.pid, 0)
            self.program.pid = 0
            raise StartFailed(told["code"], told["message"])
        return told


def open_ends(pipes: bool) -> tuple[Program, tuple[int, int, int]]:
    """A terminal or pipes: the keeper's ends, which do not block, and the program's, which do."""
    program = Program()
    if pipes:
        stdin, program.stdin = os.pipe2(os.O_CLOEXEC)
        program.stdout, stdout = os.pipe2(os.O_CLOEXEC)
        program.stderr, stderr = os.pipe2(os.O_CLOEXEC)
        for fd in (program.stdin, program.stdout, program.stderr):
            os.set_blocking(fd, False)
        return program, (stdin, stdout, stderr)
    program.master, program.slave = os.openpty()
    os.set_blocking(program.master, False)
    return program, (program.slave, program.slave, program.slave)


def _explain(number: int, stage: str, manifest: Json) -> StartFailed:
    argv: list[str] = manifest["command"]
    shown = argv[0][:200]
    if stage == "cwd":
        return StartFailed("not_found", f"cannot enter {manifest['cwd']!s}: {os.strerror(number)}")
    if number == errno.ENOENT:
        return StartFailed("no_program", f"{shown}: command not found")
    if number == errno.E2BIG:
        return StartFailed("not_executable", f"{shown}: its arguments and environment are longer than the kernel takes")
    return StartFailed("not_executable", f"{shown}: cannot be executed: {os.strerror(number)}")


def _child(stdio: tuple[int, int, int], terminal: bool, orders: int, line: int) -> None:
    """In the child, up to exec. Never returns."""
    stage, manifest = "setup", None
    try:
        os.setsid()
        for target, source in enumerate(stdio):
            os.dup2(source, target, inheritable=True)
        _close_all_but(orders, line)
        _raise_oom_score()
        _reset_signals()
        tty = _prepare_terminal() if terminal else ""
        keeper = os.getppid()
        started = kernel.start_time(keeper)
        folder = SessionFolder(os.fsdecode(os.read(orders, _PATH_BYTES)))
        if not folder.path:  # the keeper is gone, or has no need of this
            os._exit(0)
        manifest = read_json(folder.manifest)
        if manifest is None:
            raise OSError(errno.EIO, "its manifest cannot be read")
        wrap = manifest.get("wrap")
        if terminal and not wrap:  # a wrapped program takes the terminal itself
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        if terminal:
            set_size(0, *manifest["size"])
        told = {key: manifest[key] for key in _KEEPERS_OWN if key in manifest}
        os.write(line, json.dumps({**told, "tty": tty, "wrap": bool(wrap)}).encode() + b"\n")
        if manifest.get("cgroup"):  # limits that were asked for hold from the first instruction on
            cgroup.join(manifest["cgroup"], [os.getpid()])
        _write_facts(folder.keeper_lock, manifest, tty, keeper, started)
        for name, (soft, hard) in manifest.get("rlimits", {}).items():
            try:
                resource.setrlimit(getattr(resource, name), (soft, hard))
            except (ValueError, OSError, AttributeError):
                pass  # the caller's limit is higher than ours may be: ours stays
        os.umask(int(manifest.get("umask", 0o022)))
        stage = "cwd"
        os.chdir("/" if wrap else os.fsencode(manifest["cwd"]))
        stage = "exec"
        if wrap:
            bubblewrap_entry.enter(wrap)
        argv = [os.fsencode(a) for a in manifest["command"]]
        own = manifest.get("main_env") or manifest["env"]  # a main program of ours starts the session's in `env`
        env = {os.fsencode(k): os.fsencode(v) for k, v in own.items()}
        _exec(argv, env)
    except OSError as e:
        _tell_failure(line, e, stage, manifest)
    except BaseException:  # noqa: BLE001  (whatever it is, the keeper is told and exec did not happen)
        _tell_failure(line, OSError(errno.EINVAL, os.strerror(errno.EINVAL)), stage, manifest)
    os._exit(127)


def _close_all_but(*kept: int) -> None:
    last = 2
    for fd in sorted(kept):
        os.closerange(last + 1, fd)
        last = fd
    os.closerange(last + 1, _DESCRIPTORS)


def _prepare_terminal() -> str:
    """The mode of the terminal that is our standard input by now; its path."""
    mode = termios.tcgetattr(0)
    mode[0] |= _IUTF8
    termios.tcsetattr(0, termios.TCSANOW, mode)
    return os.ttyname(0)


def _write_facts(lock: str, manifest: Json, tty: str, keeper: int, started: int) -> None:
    """Who keeps this, in the lock's own file: for people and tests; nothing depends on it but what it says."""
    facts = {
        "pid": keeper,
        "started": started,
        "program": os.getpid(),
        "protocol": keeper_frames.VERSION,
        "generation": manifest["generation"],
        "at": time.time(),
        "tty": tty,
    }
    fd = os.open(lock, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    os.write(fd, json.dumps(facts, separators=(",", ":")).encode())
    os.close(fd)


def _tell_failure(line: int, error: OSError, stage: str, manifest: Json | None) -> None:
    if isinstance(error, bubblewrap_entry.CannotEnter):
        failed = StartFailed("failed", f"it cannot be isolated: {error}")
    elif manifest is None or stage == "setup":
        failed = StartFailed("failed", f"the session could not start: {error.strerror}")
    else:
        failed = _explain(error.errno or errno.EIO, stage, manifest)
    os.write(line, json.dumps({"code": failed.code, "message": str(failed)[:_MESSAGE_MAX]}).encode() + b"\n")


def _exec(argv: list[bytes], env: dict[bytes, bytes]) -> None:
    """execvp with the session's own PATH: a file that is there but may not run wins over "not found"."""
    if b"/" in argv[0]:
        os.execve(argv[0], argv, env)
    error = OSError(errno.ENOENT, "not found")
    for folder in env.get(b"PATH", os.fsencode(os.defpath)).split(b":"):
        try:
            os.execve(os.path.join(folder or b".", argv[0]), argv, env)
        except OSError as e:
            if e.errno not in (errno.ENOENT, errno.ENOTDIR):
                error = e
    raise error


def _reset_signals() -> None:
    for number in range(1, signal.NSIG):
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):
            pass  # KILL, STOP and the C library's own two
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _raise_oom_score() -> None:
    try:
        fd = os.open("/proc/self/oom_score_adj", os.O_WRONLY | os.O_CLOEXEC)
        os.write(fd, _OOM_SCORE)
        os.close(fd)
    except OSError:
        pass
