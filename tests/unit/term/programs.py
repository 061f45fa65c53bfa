"""Real programs in real PTYs, recorded: what they wrote, and at which points they were waiting for their user."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast.term.screen import Screen

DEADLINE_S = 30.0  # how long a program may take to show something on a machine busy with other tests


class Program:
    """A program in a PTY of a given size, drawn on a `Screen` that also answers its queries."""

    def __init__(self, argv: Sequence[str], size: tuple[int, int], cwd: Path) -> None:
        cols, rows = size
        self.screen = Screen(cols, rows)
        self.output = bytearray()
        self.checkpoints: list[int] = []
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(cwd),
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "LESSHISTFILE": "-",
            "PS1": "$ ",
        }
        self._process = subprocess.Popen(
            argv,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env=environment,
            start_new_session=True,
            preexec_fn=_take_terminal,  # noqa: PLW1509 - one ioctl, and no locks of ours that it could meet
        )
        os.close(slave)

    def until(self, condition: Callable[[Screen], bool]) -> None:
        """Let the program run until its screen shows what is waited for; that is a checkpoint of the recording."""
        deadline = time.monotonic() + DEADLINE_S
        while not (self.screen.at_ground and condition(self.screen)):
            if not self._pump(deadline - time.monotonic()):
                raise AssertionError(f"not seen in time; the screen is\n{self.screen.text()}")
        self.checkpoints.append(len(self.output))

    def shows(self, text: str) -> None:
        self.until(lambda screen: text in screen.text())

    def type(self, data: bytes) -> None:
        os.write(self._master, data)

    def finish(self) -> None:
        """Read until the program has ended."""
        deadline = time.monotonic() + DEADLINE_S
        while self._pump(deadline - time.monotonic()):
            pass
        self._process.wait(timeout=DEADLINE_S)

    def close(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(timeout=DEADLINE_S)
        os.close(self._master)
        self.screen.close()

    def _pump(self, wait_s: float) -> bool:
        """Take one chunk of output; False when there is none in time or the program has ended."""
        if not select.select([self._master], [], [], max(wait_s, 0))[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # the last holder of the other end has gone
            return False
        self.output += data
        replies = self.screen.feed(data)
        if replies:
            os.write(self._master, replies)
        return bool(data)

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Recording(NamedTuple):
    output: bytes
    checkpoints: list[int]  # offsets at which the program was waiting


def record(name: str, size: tuple[int, int], cwd: Path) -> Recording:
    start, drive = PROGRAMS[name]
    with Program(start(cwd), size, cwd) as program:
        drive(program)
        program.finish()
        return Recording(bytes(program.output), program.checkpoints)


def _start_vim(cwd: Path) -> list[str]:
    source = cwd / "main.c"
    source.write_text("".join(f'int f{n}(void) {{ return {n}; }} /* "text" {n} */\n' for n in range(1, 80)))
    return ["vim", "-u", "NONE", "-i", "NONE", "-n", "-N", str(source)]


def _drive_vim(program: Program) -> None:
    program.shows("int f1(")
    program.type(b":syntax on | set number cursorline mouse=a background=dark ruler\r")
    program.until(lambda screen: "  1 int f1(" in screen.text() and screen.modes()["mouse"] != "off")
    program.type(b":split | 40\r")
    program.shows(" 40 int f40")
    program.type("Owide 漢字 and 😀\x1b".encode())
    program.shows("漢字")
    program.type(b"gg/f5\r")
    program.shows("int f5(")
    program.type(b":qa!\r")
    program.until(lambda screen: not screen.alternate)


def _start_less(cwd: Path) -> list[str]:
    book = cwd / "book.txt"
    lines = (f"\x1b[1;3{n % 8}mline {n}\x1b[m \x1b[4munderlined\x1b[24m 漢字 {'long ' * (n % 30)}" for n in range(200))
    book.write_text("\n".join(lines))
    return ["less", "-R", str(book)]


def _drive_less(program: Program) -> None:
    program.shows("line 1 ")
    program.type(b" ")
    program.until(lambda screen: "line 0 " not in screen.text())
    program.type(b"/line 99\r")
    program.shows("line 99 ")
    program.type(b"q")
    program.until(lambda screen: not screen.alternate)


def _start_monitor(_cwd: Path) -> list[str]:
    return ["htop", "-d", "10"] if shutil.which("htop") else ["top", "-d", "1"]


def _drive_monitor(program: Program) -> None:
    program.shows("PID")
    program.type(b"h")
    program.until(_shows_help)
    program.type(b"q")
    program.until(lambda screen: "PID" in screen.text() and not _shows_help(screen))
    program.type(b"q")


def _shows_help(screen: Screen) -> bool:
    return "(C)" in screen.text() or "Help for" in screen.text()  # htop's first line, or top's


# Colours, a progress line that erases with a background, wide text, and more lines than the screen has.
_BUILD = r"""
    i=0
    while [ $i -lt 90 ]; do
        i=$((i + 1))
        printf '\033[1;32m   Compiling\033[0m package-%d v0.%d \033[38;5;%dm(path)\033[0m\n' $i $i $i
        printf '\033[48;5;%dmwarning\033[K\033[0m: \033[38;2;%d;100;200m%s\033[0m\n' $i $i 'unused 変数 naïve ⚠️ 👩‍💻'
        printf '\r\033[44;97m[%d/90]\033[K\033[m' $i
    done
    printf '\r\033[2K\033[7mdone\033[27m \033]8;;https://example.org/log\033\\the log\033]8;;\033\\\n'
    printf '\033]2;build finished\007\033[?2004h> '
    read answer
"""


def _drive_build(program: Program) -> None:
    program.until(lambda screen: screen.cursor_line() == ">")
    program.type(b"ok\r")


def _drive_shell(program: Program) -> None:
    program.until(lambda screen: screen.cursor_line() == "$" and screen.modes()["bracketed_paste"] is True)
    program.type(b"seq 1 60; tput bold; tput setab 4; printf 'colour '; tput el; echo\r")
    program.until(lambda screen: "60\ncolour" in screen.text() and screen.cursor_line().startswith("$"))
    program.type(b"tput sgr0; tabs 4 > /dev/null; tput smcup; printf 'over it'; tput csr 2 5; read x\r")
    program.until(lambda screen: "over it" in screen.text() and screen.dump()["modes"]["margins"]["bottom"] == 5)
    program.type(b"\r")
    program.until(lambda screen: "$" in screen.cursor_line())
    program.type(b"tput rmcup; exit\r")


PROGRAMS: dict[str, tuple[Callable[[Path], list[str]], Callable[[Program], None]]] = {
    "vim": (_start_vim, _drive_vim),
    "less": (_start_less, _drive_less),
    "monitor": (_start_monitor, _drive_monitor),
    "build": (lambda _cwd: ["sh", "-c", _BUILD], _drive_build),
    "shell": (lambda _cwd: ["bash", "--norc", "--noprofile"], _drive_shell),
}
NEEDS = {"vim": "vim", "less": "less", "monitor": "top", "build": "sh", "shell": "tput"}
