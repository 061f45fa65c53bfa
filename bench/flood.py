"""How fast a flood passes through a session that one client is attached to, until that client has the last line."""

from __future__ import annotations

import os
import pty
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from holdfast.log.layout import TERMINAL
from holdfast.log.writer import OutputLog
from holdfast.model import limits

from .ours import Ours, clean_env
from .peers import Dtach, Tmux
from .result import Result, Target, ratio, spread
from .terminal import Terminal, TooSlow, reap

KEY = "flood"
_END = b"flood-has-ended"
_PATIENCE_S = 120.0
# Answers `ping`, so that the harness knows when the whole path stands. Neither answer is in what is typed or shown.
_PROGRAM = (
    'while read w; do case $w in ping) echo po"ng";; go) cat "$0"; printf "\\nflood-has-%s\\n" ended;; esac; done'
)


def measure(quick: bool) -> list[Result]:
    megabytes, rounds = (16, 3) if quick else (64, 7)
    results = []
    for columns in (80, 1000):
        folder = Path(tempfile.mkdtemp(prefix="hold-bench-flood-"))
        try:
            text = folder / "text"
            size = write_lines(text, columns, megabytes)
            results.append(_side_by_side(text, size, columns, rounds, folder))
        finally:
            shutil.rmtree(folder)
    return results


def write_lines(path: Path, columns: int, megabytes: int) -> int:
    """Plain text, every line `columns` bytes with its newline; the size."""
    letters = b"abcdefghijklmnopqrstuvwxyz0123456789 " * (columns // 30 + 1)
    block = b"".join(letters[i % 37 :][: columns - 1] + b"\n" for i in range(10_000_000 // columns))
    with open(path, "wb") as f:
        while f.tell() < megabytes * 1_000_000:
            f.write(block)
        return f.tell()


def _side_by_side(text: Path, size: int, columns: int, rounds: int, folder: Path) -> Result:
    program = ("sh", "-c", _PROGRAM, str(text))
    rates: dict[str, list[float]] = {"ours": [], "tmux": [], "dtach": [], "bare reader": []}
    with Ours() as ours, Tmux() as tmux, Dtach() as dtach:

        def holdfast() -> float:
            session = ours.run(*program)
            seconds = _through_client(ours.attach_words(session), ours.env)
            session.stop(0)
            session.remove()
            return seconds

        def through_tmux() -> float:
            name = tmux.hold(*program)
            seconds = _through_client(tmux.attach_words(name), tmux.env)
            tmux.end(name)
            return seconds

        ways: dict[str, Callable[[], float]] = {
            "ours": holdfast,
            "tmux": through_tmux,
            "dtach": lambda: _through_client(dtach.attach_words(dtach.hold(*program)), dtach.env),
            "bare reader": lambda: _bare(program, folder),
        }
        for _ in range(rounds):
            for name, way in ways.items():
                rates[name].append(size / 1e6 / way())
    return _result(rates, size, columns)


def _result(rates: dict[str, list[float]], size: int, columns: int) -> Result:
    ratios = {peer: ratio(rates["ours"], rates[peer]) for peer in rates if peer != "ours"}
    return Result(
        key=f"{KEY}-{columns}",
        name=f"flood, {columns}-column lines, one client attached",
        unit="MB/s",
        ours=statistics.median(rates["ours"]),
        peers={peer: statistics.median(rates[peer]) for peer in ratios},
        ratios=ratios,
        targets=(
            Target("ours ÷ tmux", ratios["tmux"], 2.0, "higher"),
            Target("ours ÷ bare reader", ratios["bare reader"], 0.75, "higher"),
        ),
        notes=(
            f"{size / 1e6:.0f} MB of cached file through `cat`, {len(rates['ours'])} rounds, each way in turn",
            "ours, tmux and dtach: from the first byte to the last line in the attached client's terminal",
            "bare reader: `os.read` of the program's PTY into the same log with its index, no client",
            *(f"{name}: {spread(values)}" for name, values in rates.items()),
        ),
    )


def _through_client(attach: Sequence[str], env: Mapping[str, str]) -> float:
    """Seconds from `go` to the end mark, read as a terminal emulator reads."""
    terminal = Terminal(attach, env)
    try:
        _connected(terminal)
        began = time.monotonic()
        terminal.write(b"go\r")
        return terminal.until(_END, _PATIENCE_S) - began
    finally:
        terminal.close()


def _connected(terminal: Terminal) -> None:
    """Until an answer has come all the way back; a client that is still starting may drop what is typed."""
    for _ in range(40):
        terminal.write(b"ping\r")
        try:
            terminal.until(b"pong", 0.5)
            return
        except TooSlow:
            continue
    raise TooSlow("the attached client never answered")


def _bare(program: Sequence[str], folder: Path) -> float:
    """The least that keeps output at all: read, append, index; nobody is told."""
    pid, fd = pty.fork()
    if pid == 0:
        try:
            os.execvpe(program[0], list(program), clean_env())
        finally:
            os._exit(127)
    log = OutputLog(str(folder / "bare"), 0, limits.SEGMENT_BYTES, limits.RETAIN_BYTES)
    try:
        began = time.monotonic()
        os.write(fd, b"go\n")
        tail = b""
        while _END not in tail:
            data = os.read(fd, limits.READ_BYTES)
            log.add(TERMINAL, data, int(time.time() * 1e6))
            tail = tail[-len(_END) :] + data if len(data) < 200 else data[-200:]
        return time.monotonic() - began
    finally:
        os.close(fd)  # hangs the program up
        log.close()
        shutil.rmtree(folder / "bare")
        reap(pid, 5.0)
