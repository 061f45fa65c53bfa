"""Play a session's output again as it happened. q or Ctrl-C stops, space pauses.

  hold replay build
  hold replay build --speed 4 --max-idle 1
"""

from __future__ import annotations

import itertools
import os
import select
import sys
import time

from ..client.sync import Host
from ..model.errors import HoldfastError
from ..term.reset import reset_sequence
from . import arguments, output
from .recordings import events
from .several import seconds
from .terminal import RawTerminal, window_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from ..term.cast import Event

_QUIT = b"qQ\x03\x04"  # q, Ctrl-C, Ctrl-D
_BEHIND_S_MAX = 1.0  # what a slow terminal is behind is caught up with, up to this


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    parser.add_argument("--speed", type=float, default=1.0, metavar="X", help="2 is twice as fast")
    parser.add_argument("--max-idle", type=seconds, metavar="S", help="no pause is longer than this")


def run(args: argparse.Namespace) -> int:
    if not 0 < args.speed < float("inf"):
        raise HoldfastError("usage", f"a speed of {args.speed:g} is not possible", "--speed 2 plays twice as fast")
    host = Host()
    status = host.call("status", session=args.session)
    played = events(host, status["id"], lines=status["kind"] == "pipes")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _play(played, args.speed, args.max_idle, _sleep)
    played = _say_if_too_small(played)
    with RawTerminal(reset_sequence()):
        code = _play(played, args.speed, args.max_idle, _keyboard)
    output.note(f"[end of {output.safe(status['name'])}]" if code == 0 else "[stopped]")
    return 0


def _say_if_too_small(played: Iterator[Event]) -> Iterator[Event]:
    """A recording begins with its size: a smaller terminal shows it torn, and its owner should know why."""
    first = list(itertools.islice(played, 1))
    cols, rows = window_size(sys.stdout.fileno())
    for _, code, size in first:
        if code == "r" and isinstance(size, tuple) and (size[0] > cols or size[1] > rows):
            output.note(f"hold: recorded at {size[0]}x{size[1]}, this terminal has {cols}x{rows}")
    return itertools.chain(first, played)


def delays(played: Iterator[Event], speed: float, max_idle: float | None) -> Iterator[tuple[float, Event]]:
    """Each event with the pause before it. A clock that was set back makes no pause."""
    before: float | None = None
    for event in played:
        pause = 0.0 if before is None else max(0.0, event[0] - before)
        before = event[0]
        yield (pause if max_idle is None else min(pause, max_idle)) / speed, event


def _play(
    played: Iterator[Event], speed: float, max_idle: float | None, wait: Callable[[float], float | None]
) -> int:
    """To the end (0), or until `wait` says stop (1). Pauses add up to moments, so that drawing takes no extra time."""
    out, due = sys.stdout.fileno(), time.monotonic()
    for pause, (_, code, data) in delays(played, speed, max_idle):
        due = max(due + pause, time.monotonic() - _BEHIND_S_MAX)
        paused = wait(due)
        if paused is None:
            return 1
        due += paused
        if code == "o":
            _write(out, data)  # type: ignore[arg-type]
    return 0


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _sleep(due: float) -> float:
    left = due - time.monotonic()
    if left > 0:
        time.sleep(left)
    return 0.0


def _keyboard(due: float) -> float | None:
    """Wait for a moment, watching the keys: how long it was paused, None to stop."""
    keyboard, paused, paused_at = sys.stdin.fileno(), 0.0, 0.0
    while True:
        timeout = None if paused_at else max(0.0, due + paused - time.monotonic())
        if not select.select([keyboard], [], [], timeout)[0]:
            return paused
        try:
            typed = os.read(keyboard, 64)
        except OSError:
            return None
        if not typed or any(key in _QUIT for key in typed):
            return None
        if b" " in typed and paused_at:
            paused += time.monotonic() - paused_at
            paused_at = 0.0
        elif b" " in typed:
            paused_at = time.monotonic()
