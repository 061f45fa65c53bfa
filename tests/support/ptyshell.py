"""An interactive shell in a real PTY, and commands run in it as the host does it: script, typed line, marks, record."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import select
import shutil
import signal
import struct
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from holdfast.host.exec.marks import Mark, MarkScanner
from holdfast.host.exec.shell_record import Record, parse_record
from holdfast.host.exec.shells.dialect import Wrapped
from holdfast.host.exec.shells.wrap import probe, wrap

PROMPT = b"<ready> "  # printed by every shell here, and by nothing else
DEADLINE_S = 30.0  # how long a condition may take on a machine that is busy with other tests
_PROGRAMS = {"bash": "bash", "zsh": "zsh", "fish": "fish", "sh": "dash"}


@dataclass(frozen=True)
class Result:
    """What one command left: its output between the marks, and its record where there is one."""

    output: bytes
    record: Record | None
    marks: tuple[Mark, ...]

    @property
    def code(self) -> int:
        assert self.record is not None, f"no record; output {self.output!r}"
        return self.record.exit_code

    @property
    def text(self) -> bytes:
        """The output with the line ends the program wrote: ONLCR put a CR before each."""
        return self.output.replace(b"\r\n", b"\n")


class PtyShell:
    """One shell. Use as a context manager: leaving ends everything that runs in its session."""

    def __init__(
        self,
        shell: str,
        folder: Path,
        *,
        rc: str = "",
        argv: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
    ) -> None:
        if shutil.which(_PROGRAMS[shell]) is None:
            pytest.skip(f"{_PROGRAMS[shell]} is not installed")
        self.shell = shell
        self.folder = folder
        self.output = bytearray()
        self.exit_status: int | None = None
        self._running: list[Running] = []
        self._count = 0
        command, extra = _start(shell, folder, rc)
        command[1:1] = argv
        environment = {
            "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
            "HOME": str(folder),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            **extra,
            **(env or {}),
        }
        self.master, slave = os.openpty()
        # Before the shell is there: a change of size later makes line editors draw their prompt again.
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.pid = os.fork()
        if self.pid == 0:
            _become(command, slave, folder, environment)
        os.close(slave)
        self.wait_prompt(0)

    def __enter__(self) -> PtyShell:
        return self

    def __exit__(self, *_: object) -> None:
        for pid in _session_members(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        os.close(self.master)
        if self.exit_status is None:
            os.waitpid(self.pid, 0)

    def type(self, data: bytes) -> None:
        """Write to the PTY, reading meanwhile: a shell that cannot write does not read either."""
        while data:
            if select.select([self.master], [self.master], [])[0]:
                self._read()
            data = data[os.write(self.master, data[:1024]) :]

    def until(self, condition: Callable[[], object], what: str) -> None:
        end = time.monotonic() + DEADLINE_S
        while not condition():
            left = end - time.monotonic()
            assert left > 0, f"not within {DEADLINE_S:.0f} s: {what}; output {bytes(self.output[-2000:])!r}"
            # A short wait, because a condition may also be a fact of the kernel, which no output announces.
            if self.exit_status is not None or select.select([self.master], [], [], min(left, 0.02))[0]:
                assert self.exit_status is None, f"the shell ended before: {what}; {bytes(self.output[-2000:])!r}"
                self._read()

    def until_output(self, text: bytes, since: int) -> None:
        self.until(lambda: text in self.output[since:], f"output {text!r}")

    def wait_prompt(self, since: int) -> None:
        self.until_output(PROMPT, since)

    def wait_program(self, name: str) -> None:
        """Until that program runs in the session. Between fork and exec a child of bash loses a Ctrl-C."""
        self.until(lambda: name in map(_name, _session_members(self.pid)), f"{name} is running")

    def wait_exit(self) -> int:
        """The shell's wait status as an exit code."""
        end = time.monotonic() + DEADLINE_S
        while self.exit_status is None:
            assert time.monotonic() < end, f"the shell goes on; output {bytes(self.output[-2000:])!r}"
            if select.select([self.master], [], [], 0.1)[0]:
                self._read()
        return os.waitstatus_to_exitcode(self.exit_status)

    def command(self, line: bytes) -> bytes:
        """Type a line as a person would; what came until the next prompt."""
        since = len(self.output)
        self.type(line + (b"\n" if self.shell == "sh" else b"\r"))
        self.wait_prompt(since)
        return bytes(self.output[since:])

    def start(self, source: bytes, *, before: bytes = b"", env: Mapping[bytes, bytes] | None = None) -> Running:
        """Begin a command; the shell must be at its prompt. `before` goes out in one write with the typed line."""
        return self._begin(lambda **given: wrap(self.shell, source=source, env=env or {}, **given), before)

    def exec(self, source: bytes, *, env: Mapping[bytes, bytes] | None = None) -> Result:
        """One command from prompt to prompt."""
        return self.start(source, env=env).finish()

    def probe(self) -> Result:
        return self._begin(lambda **given: probe(self.shell, **given)).finish()

    def _begin(self, make: Callable[..., Wrapped], before: bytes = b"") -> Running:
        self._count += 1
        script, record = self.folder / f"exec {self._count}", self.folder / f"exec {self._count}.record"
        running = Running(self, secrets.token_hex(16), script, record)
        wrapped = make(token=running.token, script=str(script), record=str(record))
        descriptor = os.open(script, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as file:
            file.write(wrapped.script)
        self._running.append(running)
        self.type(before + wrapped.typed)
        return running

    def _read(self) -> None:
        try:
            data = os.read(self.master, 65536)
        except OSError:  # EIO: nobody holds the other side any more
            self.exit_status = os.waitpid(self.pid, 0)[1]
            return
        for running in self._running:
            running.feed(len(self.output), data)
        self.output += data


class Running:
    """A command that was typed and has not been seen to end."""

    def __init__(self, shell: PtyShell, token: str, script: Path, record: Path) -> None:
        self.token = token
        self.marks: list[Mark] = []
        self._shell, self._script, self._record = shell, script, record
        self._scanner = MarkScanner(token)

    def feed(self, offset: int, data: bytes) -> None:
        self.marks += self._scanner.feed(offset, data)

    def begun(self) -> None:
        self._shell.until(lambda: self.marks, "the first mark")

    def ended(self) -> bool:
        return any(mark.kind == "e" for mark in self.marks)

    def finish(self) -> Result:
        """Wait for the second mark and the prompt after it; the host's order of things."""
        self._shell.until(self.ended, "the second mark")
        result = self.result()
        self._shell.wait_prompt(result.marks[-1].end)
        return result

    def result(self) -> Result:
        """What there is now; the end may not be known."""
        record = parse_record(self._record.read_bytes()) if self._record.exists() else None
        assert record is None or record.token == self.token
        start = next((mark.end for mark in self.marks if mark.kind == "b"), None)
        end = next((mark.start for mark in self.marks if mark.kind == "e"), len(self._shell.output))
        self._script.unlink(missing_ok=True)
        self._record.unlink(missing_ok=True)
        output = b"" if start is None else bytes(self._shell.output[start:end])
        return Result(output, record, tuple(self.marks))


def _start(shell: str, folder: Path, rc: str) -> tuple[list[str], dict[str, str]]:
    """The command and environment that make `shell` interactive with `rc` as its only start-up file."""
    file = folder / ".zshrc"
    prompt = PROMPT.decode()
    own_prompt = f"\nPS1='{prompt}'\n" if shell != "fish" else ""  # a system-wide file may have set another
    file.write_text(rc + own_prompt)
    match shell:
        case "bash":
            return ["bash", "--noprofile", "--rcfile", str(file), "-i"], {}
        case "zsh":
            return ["zsh", "-d", "-i"], {"ZDOTDIR": str(folder)}
        case "fish":
            show = f"function fish_prompt; builtin printf '{prompt}'; end"
            return ["fish", "--no-config", "-i", "-C", f"{show}; source {file}"], {}
        case _:
            return ["dash", "-i"], {"ENV": str(file)}


def _become(command: Sequence[str], slave: int, folder: Path, environment: Mapping[str, str]) -> None:
    try:
        os.login_tty(slave)
        os.closerange(3, 256)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.chdir(folder)
        os.execvpe(command[0], list(command), environment)
    finally:
        os._exit(127)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().rstrip("\n")
    except OSError:  # it ended meanwhile
        return ""


def _session_members(leader: int) -> list[int]:
    """Every process of the shell's session, jobs in the background included."""
    members = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                fields = Path(f"/proc/{entry}/stat").read_bytes().rpartition(b")")[2].split()
                if int(fields[3]) == leader:
                    members.append(int(entry))
    return members
