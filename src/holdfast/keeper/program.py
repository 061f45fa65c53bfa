"""Starting the session's program: a PTY or pipes, and a child that has nothing of ours but what it was promised."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import resource
import signal
import socket
import struct
import termios

from ..system import cgroup
from ..system.files import read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]


_OOM_SCORE = b"300"  # the kernel's killer takes the program before its keeper
_TOLD_BYTES = 64 << 10  # a few short facts, or one line about what failed
_MESSAGE_MAX = 8 << 10  # characters of that line: the longest path, and with every one escaped it still fits
# What the keeper itself needs of a manifest; the rest, environment and command, is the child's alone.
_KEEPERS_OWN = ("id", "token", "generation", "kind", "size", "offset", "retain_bytes", "cgroup")
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


class Launch:
    """A program on its way: a disposable child that sets everything up and then becomes it by exec.

    The child reads the manifest, opens the terminal and makes the environment, so that the memory this takes is its own
    and gone with exec: the keeper's pages stay shared with the zygote's.
    """

    __slots__ = ("_line", "pid")

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid, self._line = pid, line

    @classmethod
    def begin(cls, manifest_path: str) -> Launch:
        line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pid = os.fork()
        if pid == 0:
            line.close()
            _child(manifest_path, theirs)
        theirs.close()
        return cls(pid, line)

    def ready(self) -> tuple[Program, Json]:
        """The descriptors to the program, and what a keeper must know of the manifest. The exec is still to come."""
        told, fds = self._receive(5)
        program = Program()
        program.pid = self.pid
        if told["tty"]:
            program.tty = told["tty"]
            program.master, program.slave = fds
        else:
            program.stdin, program.stdout, program.stderr = fds
        return program, told

    def confirm(self) -> None:
        """Return when exec has happened; raise StartFailed when it has not."""
        try:
            self._receive(0)
        except EOFError:  # exec closed the child's end
            self._line.close()

    def abandon(self) -> None:
        """Something else went wrong meanwhile: nothing of it may be left running."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)

    def _receive(self, fds_max: int) -> tuple[Json, list[int]]:
        data, fds, _, _ = socket.recv_fds(self._line, _TOLD_BYTES, fds_max, socket.MSG_CMSG_CLOEXEC)
        if not data:
            raise EOFError
        told: Json = json.loads(data)
        if "code" in told:
            os.waitpid(self.pid, 0)
            self.pid = 0
            raise StartFailed(told["code"], told["message"])
        return told, fds


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


def _child(manifest_path: str, line: socket.socket) -> None:
    """In the child, up to exec. Never returns."""
    stage, manifest = "setup", None
    try:
        manifest = read_json(manifest_path)
        if manifest is None:
            raise OSError(errno.EIO, "its manifest cannot be read")
        stdio = open_ends(manifest, line)
        os.setsid()
        if manifest["kind"] != "pipes":
            fcntl.ioctl(stdio[0], termios.TIOCSCTTY, 0)
        for target, source in enumerate(stdio):
            os.dup2(source, target, inheritable=True)
        if manifest.get("cgroup"):  # limits that were asked for hold from the first instruction on
            cgroup.join(manifest["cgroup"], [os.getpid()])
        _raise_oom_score()
        _reset_signals()
        for name, (soft, hard) in manifest.get("rlimits", {}).items():
            try:
                resource.setrlimit(getattr(resource, name), (soft, hard))
            except (ValueError, OSError, AttributeError):
                pass  # the caller's limit is higher than ours may be: ours stays
        os.umask(int(manifest.get("umask", 0o022)))
        stage = "cwd"
        os.chdir(os.fsencode(manifest["cwd"]))
        stage = "exec"
        argv = [os.fsencode(a) for a in manifest["command"]]
        env = {os.fsencode(k): os.fsencode(v) for k, v in manifest["env"].items()}
        _exec(argv, env)
    except OSError as e:
        _tell_failure(line, e, stage, manifest)
    except BaseException:  # noqa: BLE001  (whatever it is, the keeper is told and exec did not happen)
        _tell_failure(line, OSError(errno.EINVAL, os.strerror(errno.EINVAL)), stage, manifest)
    os._exit(127)


def open_ends(manifest: Json, line: socket.socket) -> tuple[int, ...]:
    """Make the terminal or the pipes, hand the keeper its ends, and return the program's."""
    told = {key: manifest[key] for key in _KEEPERS_OWN if key in manifest}
    if manifest["kind"] == "pipes":
        (stdin, to_stdin), (from_stdout, stdout), (from_stderr, stderr) = (os.pipe2(os.O_CLOEXEC) for _ in range(3))
        ends, stdio = [to_stdin, from_stdout, from_stderr], (stdin, stdout, stderr)
        told["tty"] = ""
    else:
        master, slave = os.openpty()
        ends, stdio = [master, slave], (slave,) * 3
        told["tty"] = os.ttyname(slave)
        set_size(slave, *manifest["size"])
        mode = termios.tcgetattr(slave)
        mode[0] |= _IUTF8
        termios.tcsetattr(slave, termios.TCSANOW, mode)
    for fd in ends:
        if fd not in stdio:  # the program's own ends block, as any program expects
            os.set_blocking(fd, False)
    socket.send_fds(line, [json.dumps(told).encode()], ends)
    return stdio


def _tell_failure(line: socket.socket, error: OSError, stage: str, manifest: Json | None) -> None:
    if manifest is None or stage == "setup":
        failed = StartFailed("failed", f"the session could not start: {error.strerror}")
    else:
        failed = _explain(error.errno or errno.EIO, stage, manifest)
    line.send(json.dumps({"code": failed.code, "message": str(failed)[:_MESSAGE_MAX]}).encode())


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
