"""Starting the session's program: a PTY or pipes, and a child that has nothing of ours but what it was promised."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import struct
import termios

from . import wrapped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


_OOM_SCORE = "300"  # the kernel's killer takes the program before its keeper
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


def set_size(fd: int, cols: int, rows: int) -> None:
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))


def start(manifest: Json) -> Program:
    """Fork and exec what the manifest describes; raise StartFailed when exec did not happen."""
    program = Program()
    child_ends: list[int] = []
    if manifest["kind"] == "pipes":
        stdin, program.stdin = os.pipe2(os.O_CLOEXEC)
        program.stdout, stdout = os.pipe2(os.O_CLOEXEC)
        program.stderr, stderr = os.pipe2(os.O_CLOEXEC)
        child_ends, stdio = [stdin, stdout, stderr], (stdin, stdout, stderr)
    else:
        program.master, program.slave = os.openpty()
        program.tty = os.ttyname(program.slave)
        cols, rows = manifest["size"]
        set_size(program.slave, cols, rows)
        mode = termios.tcgetattr(program.slave)
        mode[0] |= _IUTF8
        termios.tcsetattr(program.slave, termios.TCSANOW, mode)
        stdio = (program.slave,) * 3
    failed_read, failed_write = os.pipe2(os.O_CLOEXEC)
    program.pid = os.fork()
    if program.pid == 0:
        _child(manifest, stdio, program.slave >= 0, failed_write)
    for fd in (failed_write, *child_ends):
        os.close(fd)
    report = b""
    while data := os.read(failed_read, 4096):
        report += data
    os.close(failed_read)
    if report:
        os.waitpid(program.pid, 0)
        number, _, stage = report.partition(b":")
        raise _explain(int(number), stage.decode(), manifest)
    for fd in (program.master, program.stdin, program.stdout, program.stderr):
        if fd >= 0:
            os.set_blocking(fd, False)
    return program


def _explain(number: int, stage: str, manifest: Json) -> StartFailed:
    argv: list[str] = manifest["command"]
    shown = argv[0][:200]
    if stage == "cwd":
        return StartFailed("not_found", f"cannot enter {manifest['cwd']!s}: {os.strerror(number)}")
    if number == errno.ENOENT:
        return StartFailed("no_program", f"{shown}: command not found")
    if number == errno.E2BIG:
        return StartFailed(
            "not_executable", f"{shown}: its arguments and environment are longer than the kernel takes"
        )
    return StartFailed("not_executable", f"{shown}: cannot be executed: {os.strerror(number)}")


def _child(manifest: Json, stdio: tuple[int, ...], terminal: bool, failed: int) -> None:
    """In the child, up to exec. Never returns."""
    stage = "setup"
    try:
        os.setsid()
        wrap = manifest.get("wrap")
        if terminal and not wrap:  # a wrapped program takes the terminal itself
            fcntl.ioctl(stdio[0], termios.TIOCSCTTY, 0)
        for target, source in enumerate(stdio):
            os.dup2(source, target, inheritable=True)
        _quietly("/proc/self/oom_score_adj", _OOM_SCORE)
        _reset_signals()
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
            wrapped.enter(wrap)
        argv = [os.fsencode(a) for a in manifest["command"]]
        env = {os.fsencode(k): os.fsencode(v) for k, v in manifest["env"].items()}
        _exec(argv, env)
    except OSError as e:
        os.write(failed, f"{e.errno or errno.EIO}:{stage}".encode())
    except BaseException:  # noqa: BLE001  (whatever it is, the parent is told and exec did not happen)
        os.write(failed, f"{errno.EINVAL}:{stage}".encode())
    os._exit(127)


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


def _quietly(path: str, value: str) -> None:
    try:
        with open(path, "w", encoding="ascii") as f:
            f.write(value)
    except OSError:
        pass
