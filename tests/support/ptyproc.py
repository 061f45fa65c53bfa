"""A program in a real PTY under a small subreaper of its own, with kernel facts sampled from inside it.

The parent half (`PtyProgram`) is what tests use. The child half is this same file run as a script: like a
keeper it uses the standard library alone, is an ancestor of the program, holds a slave descriptor, and drains
the master all the time. Requests and answers are JSON lines.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    from holdfast.keeper.observe import terminal_facts
    from holdfast.system import process_tree

SRC = Path(__file__).parents[2] / "src"
DEADLINE_S = 30.0  # how long a condition may take on a machine that is busy with other tests
SAMPLE_S = 0.025  # the pace at which a pending wait samples

_ALTERNATE = re.compile(rb"\x1b\[\?(?:1049|1047|47)([hl])")
_CURSOR = re.compile(rb"\x1b\[\?25([hl])")
_PASTE = re.compile(rb"\x1b\[\?2004([hl])")
# Absolute addressing beyond the first row; a bare home is what `clear` sends and says nothing.
_ADDRESSED = re.compile(rb"\x1b\[(?:[2-9]|\d{2,3})(?:;\d*)?[Hd]")
_ESCAPES = re.compile(
    rb"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-9;?<=>!]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b[=>78A-Z]"
)
_PR_SET_CHILD_SUBREAPER = 36
_CARRY = 32  # longer than any sequence above: one that is cut by a chunk border is seen whole next time
_TAIL = 4096  # output kept to find the cursor's line


class PtyProgram:
    """Start `argv` in a PTY; sample it; type into it; end it and everything it started."""

    def __init__(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str] | None = None, uid: int | None = None
    ) -> None:
        # PYTHONPATH is for the child half alone, which takes it out before it starts the program.
        self._process = subprocess.Popen(
            [sys.executable, "-s", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SRC)},
        )
        environment = {
            "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
            "HOME": str(cwd),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "LINES": "24",
            "COLUMNS": "80",
            **(env or {}),
        }
        self.leader = int(self._ask(op="start", argv=list(argv), cwd=str(cwd), env=environment, uid=uid)["leader"])

    def __enter__(self) -> PtyProgram:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def sample(self) -> dict[str, Any]:
        """{"facts", "alternate", "addressed", "hidden", "pastes", "age", "line", "exited", "members"}, all of one moment."""
        return self._ask(op="sample")

    def send(self, data: bytes) -> None:
        self._ask(op="send", data=data.decode("latin-1"))

    def output(self) -> bytes:
        """The last 64 KB the program wrote."""
        return str(self._ask(op="output")["data"]).encode("latin-1")

    def until(self, condition: Callable[[dict[str, Any]], object], deadline_s: float = DEADLINE_S) -> dict[str, Any]:
        """Sample until the condition holds; the last sample, also when time ran out."""
        end = time.monotonic() + deadline_s
        while True:
            sample = self.sample()
            if condition(sample) or time.monotonic() > end:
                return sample
            time.sleep(SAMPLE_S)

    def until_output(self, text: bytes, deadline_s: float = DEADLINE_S) -> None:
        end = time.monotonic() + deadline_s
        while text not in self.output():
            if time.monotonic() > end:
                raise AssertionError(f"no {text!r} in {self.output()!r}")
            time.sleep(SAMPLE_S)

    def pause(self) -> None:
        """Let one sampling interval pass."""
        time.sleep(SAMPLE_S)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()  # the child half ends everything, then itself
        self._process.wait(timeout=DEADLINE_S)
        self._process.stdout.close()

    def _ask(self, **request: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise AssertionError("the process that holds the PTY ended")
        return dict(json.loads(answer))


class _Holder:
    """The child half: one PTY, one program, and the loop that drains and answers."""

    def __init__(self, argv: list[str], cwd: str, env: dict[str, str], uid: int | None) -> None:
        if uid is not None:
            os.setgroups([])
            os.setresuid(uid, uid, uid)
        self.master, self.slave = pty.openpty()
        self.tty = os.ttyname(self.slave)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.set_blocking(self.master, False)
        self.leader = os.fork()
        if self.leader == 0:
            self._become(argv, cwd, env)
        self.exited = self.alternate = self.addressed = self.hidden = self.pastes = False
        self.foreground = 0
        self.kept = b""
        self.last_output: float | None = None

    def _become(self, argv: list[str], cwd: str, env: dict[str, str]) -> None:
        try:
            os.login_tty(self.slave)
            os.closerange(3, 256)
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            os.chdir(cwd)
            os.execvpe(argv[0], argv, env)
        except BaseException as error:  # noqa: BLE001 - nothing of the parent's may run in the child
            os.write(2, f"cannot start: {error}\n".encode())
        finally:
            os._exit(127)

    def drain(self) -> None:
        try:
            while data := os.read(self.master, 65536):
                self._note(data)
        except BlockingIOError:
            pass

    def _note(self, data: bytes) -> None:
        foreground = _foreground(self.master)
        if foreground != self.foreground:
            self.foreground, self.addressed = foreground, False
        fresh = self.kept[-_CARRY:] + data
        for match in _ALTERNATE.finditer(fresh):
            self.alternate = match[1] == b"h"
        for match in _CURSOR.finditer(fresh):
            self.hidden = match[1] == b"l"
        for match in _PASTE.finditer(fresh):
            self.pastes = match[1] == b"h"
        self.addressed = self.addressed or _ADDRESSED.search(fresh) is not None
        self.kept = (self.kept + data)[-65536:]
        self.last_output = time.monotonic()

    def sample(self) -> dict[str, Any]:
        self.drain()
        self.reap()
        members = [pid for pid, _, _, _ in process_tree.descendants(os.getpid())]
        age = None if self.last_output is None else time.monotonic() - self.last_output
        line = _ESCAPES.sub(b"", self.kept[-_TAIL:]).replace(b"\r\n", b"\n").rpartition(b"\n")[2]
        return {
            "facts": terminal_facts.sample(self.master, self.tty, members),
            "alternate": self.alternate,
            "addressed": self.addressed,
            "hidden": self.hidden,
            "pastes": self.pastes,
            "age": age,
            "line": line.rpartition(b"\r")[2].decode("utf-8", "replace"),
            "exited": self.exited,
            "members": members,
        }

    def reap(self) -> None:
        try:
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                self.exited = self.exited or found[0] == self.leader
        except ChildProcessError:
            pass

    def end(self) -> None:
        """Kill the tree until nothing is left of it: orphans come to us, being their subreaper."""
        while True:
            for pid, _, _, _ in process_tree.descendants(os.getpid()):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            try:
                os.waitpid(-1, 0)
            except ChildProcessError:
                return


def _serve() -> None:
    """Answer requests until the test closes our stdin; drain the PTY meanwhile."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
    requests = open(0, "rb", buffering=0)  # noqa: SIM115 - it is this process's own, to its end
    holder: _Holder | None = None
    while True:
        readable = select.select([requests] + ([holder.master] if holder else []), [], [])[0]
        if holder and holder.master in readable:
            holder.drain()
        if requests not in readable:
            continue
        line = requests.readline()
        if not line:
            break
        request = json.loads(line)
        answer: dict[str, Any] = {}
        match request.pop("op"):
            case "start":
                holder = _Holder(**request)
                answer = {"leader": holder.leader}
            case "sample" if holder:
                answer = holder.sample()
            case "send" if holder:
                os.write(holder.master, request["data"].encode("latin-1"))
            case "output" if holder:
                holder.drain()
                answer = {"data": holder.kept.decode("latin-1")}
        os.write(1, json.dumps(answer).encode() + b"\n")
    if holder:
        holder.end()


def _foreground(master: int) -> int:
    return int(struct.unpack("i", fcntl.ioctl(master, termios.TIOCGPGRP, bytes(4)))[0])


if __name__ == "__main__":
    _serve()
