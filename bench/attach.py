"""How soon a client has the first full screen of a session with 10 MB of history."""

from __future__ import annotations

import base64
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.client._sync.host import Session

from . import proc
from .flood import write_lines
from .ours import Ours, until
from .peers import Tmux
from .result import Result, Target, number, spread
from .terminal import Terminal

KEY = "attach"
_MEGABYTES = 10
_MARK = b"history-is-complete"
_PROGRAM = 'cat "$0"; printf "history-is-%s" complete; exec cat'
_PATIENCE_S = 60.0
_SETTLED_S = 0.5  # nothing to do for so long: the output is history


def measure(quick: bool) -> list[Result]:
    rounds = 3 if quick else 9
    folder = Path(tempfile.mkdtemp(prefix="hold-bench-attach-"))
    try:
        plain, colour = folder / "plain", folder / "colour"
        write_lines(plain, 80, _MEGABYTES)
        _write_colours(colour)
        return [_one("plain", plain, rounds), _one("colour", colour, rounds)]
    finally:
        shutil.rmtree(folder)


def _write_colours(path: Path) -> None:
    """A build log: several colours in every line, as compilers and test runners print them."""
    with open(path, "wb") as f:
        i = 0
        while f.tell() < _MEGABYTES * 1_000_000:
            i += 1
            f.write(
                b"\x1b[90m12:%02d:%02d\x1b[0m \x1b[1;3%dmmodule_%04d\x1b[0m \x1b[38;5;%dmcompiled\x1b[0m in "
                b"\x1b[33m%d ms\x1b[0m\n" % (i // 60 % 60, i % 60, 1 + i % 6, i % 9999, i % 256, i % 1000)
            )


def _one(kind: str, text: Path, rounds: int) -> Result:
    program = ("sh", "-c", _PROGRAM, str(text))
    kinds = ("first", "at once", "again", "cold", "command", "tmux attach")
    times: dict[str, list[float]] = {name: [] for name in kinds}
    with Ours() as ours, Tmux() as tmux:
        for _ in range(rounds):
            times["at once"].append(_attach(ours, hurried := _printed(ours, program)))
            hurried.stop(0)
            session = _printed(ours, program)
            proc.settle([ours.daemon_pid(), ours.keeper_pid(session)], _SETTLED_S)
            times["first"].append(_attach(ours, session))
            times["again"].append(_attach(ours, session))
            times["command"].append(_command(ours.attach_words(session), ours.env))
            ours.kill_daemon()
            times["cold"].append(_attach(ours, session))
            session.stop(0)
            name = tmux.hold(*program)
            until(lambda name=name: _MARK.decode() in tmux.screen(name))  # type: ignore[misc]
            times["tmux attach"].append(_command(tmux.attach_words(name), tmux.env))
            tmux.end(name)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return Result(
        key=f"{KEY}-{kind}",
        name=f"attach to a session with {_MEGABYTES} MB of {kind} history",
        unit="ms",
        ours=medians["first"],
        peers={"tmux attach": medians["tmux attach"]},
        ratios={"tmux attach": medians["first"] / medians["tmux attach"]},
        targets=(Target("first full screen", medians["first"], 50.0, "lower", "ms"),),
        notes=(
            f"medians of {rounds}; from the SDK's request to the bytes that draw the screen, nobody attached before",
            "tmux: the command on a PTY, until the last line of the screen is drawn",
            f"while the host may still be reading what was just printed: {number(medians['at once'])} ms",
            f"again, once the host has drawn it before: {number(medians['again'])} ms",
            f"after `kill -9` of the daemon, its start included: {number(medians['cold'])} ms",
            f"`hold attach` on a PTY, Python's start included: {number(medians['command'])} ms",
            f"first: {spread(times['first'])}",
        ),
    )


def _printed(ours: Ours, program: Sequence[str]) -> Session:
    """A session that has printed its history, and that nobody has looked at."""
    session = ours.run(*program)
    folder = Path(ours.path, "sessions", session.id, "out")
    # By its log on disk, not by asking: a question could make the host look at the screen.
    until(lambda: _tail(folder).endswith(_MARK), timeout=_PATIENCE_S)
    return session


def _tail(folder: Path) -> bytes:
    logs = sorted(folder.glob("*.out"))
    return logs[-1].read_bytes()[-len(_MARK) :] if logs else b""


def _attach(ours: Ours, session: Session) -> float:
    """Milliseconds until the bytes that restore the screen are here; checked, because a blank screen is fast too."""
    began = time.monotonic()
    about, fd = ours.host.call_fd("attach", session=session.id, via="sdk")
    restore = base64.b64decode(about["restore"])
    took = (time.monotonic() - began) * 1e3
    os.close(fd)
    if _MARK not in restore:
        raise RuntimeError(f"the restored screen lacks its last line: {restore[-200:]!r}")
    return took


def _command(words: Sequence[str], env: Mapping[str, str]) -> float:
    began = time.monotonic()
    terminal = Terminal(words, env)
    try:
        return (terminal.until(_MARK, _PATIENCE_S) - began) * 1e3
    finally:
        terminal.close()
