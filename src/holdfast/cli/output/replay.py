"""Replay a session's output at its original speed, showing who acted. q or Ctrl-C quits, space pauses.

  hold replay build
  hold replay build --speed 4 --max-idle 1
  hold replay build --search 'error:'          begin where this was printed, or at such an act
  hold replay build --from 18233               begin at an output offset, or a time: 10m (ago), 2026-01-31T12:00:00Z

Who typed, took over or answered is shown briefly on the last line, and in the window's title. In a pipe, the output
goes to stdout unchanged, and the acts to stderr.
"""

from __future__ import annotations

import os
import select
import sys
import time

from ...client._sync.host import Host
from ...client.terminal_output import reset_sequence, shown_on
from ...model.durations import moment_s
from ...model.errors import HoldfastError, not_found
from ..terminal.raw_terminal import RawTerminal, window_size
from ..ui import arguments, printing
from ..ui.each_session import seconds
from .recording_pages import placed
from .replay_screen import Pipe, ReplayScreen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from ...client.terminal_output import Event
    from .recording_pages import Placed

_QUIT = b"qQ\x03\x04"  # q, Ctrl-C, Ctrl-D
_BEHIND_S_MAX = 1.0  # a slow terminal may lag by this much and still catch up


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    parser.add_argument(
        "--speed", type=float, default=1.0, metavar="X", help="playback speed; 2 is twice as fast (default: 1)"
    )
    parser.add_argument("--max-idle", type=seconds, metavar="S", help="shorten pauses to at most this")
    parser.add_argument("--from", dest="start", metavar="OFFSET|T", help="begin at this output offset or time")
    parser.add_argument("--search", metavar="TEXT", help="begin where this was printed, or is in the text of an act")
    parser.add_argument("--no-actors", action="store_true", help="show the output only, without who acted")
    parser.add_argument(
        "--raw", action="store_true", help="do not filter escape sequences that this terminal would act on or answer"
    )


def run(args: argparse.Namespace) -> int:
    if not 0 < args.speed < float("inf"):
        raise HoldfastError(
            "usage", f"--speed must be a number above 0 (got {args.speed:g})", "--speed 2 plays twice as fast"
        )
    if args.search == "":
        raise HoldfastError("usage", "--search is empty", "--search TEXT")
    begins = beginning(args.start, args.search, time.time())
    host = Host()
    status = host.call("status", session=args.session)
    played = placed(
        host,
        status["id"],
        lines=status["kind"] == "pipes",
        actors=not args.no_actors,
        shown=lambda: shown_on(sys.stdout.fileno(), host.home, raw=args.raw),
    )
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return _play(_from(played, begins, Pipe()), args.speed, args.max_idle, _sleep, Pipe())
    played = _say_if_too_small(played)
    with RawTerminal(reset_sequence()), ReplayScreen(sys.stdout.fileno(), window_size(sys.stdout.fileno())) as stage:
        code = _play(_from(played, begins, stage), args.speed, args.max_idle, _keyboard, stage)
    printing.note(f"[end of {printing.safe(status['name'])}]" if code == 0 else "[stopped]")
    return 0


def _say_if_too_small(played: Iterator[Placed]) -> Iterator[Placed]:
    """Warn if this terminal is smaller than the recorded size."""
    cols, rows = window_size(sys.stdout.fileno())
    said = False
    for one in played:
        offset, (at, code, size) = one
        if code == "r" and not said and isinstance(size, tuple):
            said = True
            if size[0] > cols or size[1] > rows:
                yield offset, (at, "m", f"recorded at {size[0]}x{size[1]}, this terminal has {cols}x{rows}")
        yield one


# -- where to begin


def beginning(start: str | None, search: str | None, now: float) -> Callable[[Placed], bool] | None:
    """The test for the first event to play; None to play from the start."""
    if start is None and search is None:
        return None
    tests: list[Callable[[Placed], bool]] = []
    if start is not None and start.isdigit():
        offset = int(start)
        tests.append(lambda p: p[0] > offset or offset == 0)
    elif start is not None:
        moment = moment_s(start, now)
        tests.append(lambda p: p[1][0] >= moment)
    if search is not None:
        tests.append(Finder(search))

    def begins(one: Placed) -> bool:
        while tests and tests[0](one):  # the search begins where the offset or time is reached
            tests.pop(0)
        return not tests

    return begins


class Finder:
    """Finds a text in the output, also across two events, or in a mark."""

    def __init__(self, text: str) -> None:
        self._text, self._raw = text, text.encode("utf-8", "surrogateescape")
        self._tail = b""

    def __call__(self, one: Placed) -> bool:
        _, (_, code, value) = one
        if code == "m":
            return self._text in str(value)
        if code != "o" or not isinstance(value, bytes):
            return False
        seen = self._tail + value
        self._tail = seen[-(len(self._raw) - 1) :] if len(self._raw) > 1 else b""
        return self._raw in seen


def _from(
    played: Iterator[Placed], begins: Callable[[Placed], bool] | None, stage: ReplayScreen | Pipe
) -> Iterator[Event]:
    """The events to play; earlier ones are drawn at once, so that the screen is complete."""
    if begins is None:
        yield from (event for _, event in played)
        return
    for one in played:
        if begins(one):
            stage.begin()
            yield one[1]
            break
        stage.skip(one[1])
    else:
        raise not_found("no match in the recording", "search the output: hold logs SESSION --grep")
    yield from (event for _, event in played)


# -- playing


def delays(played: Iterator[Event], speed: float, max_idle: float | None) -> Iterator[tuple[float, Event]]:
    """Each event with the pause before it; a clock that was set back makes no pause."""
    before: float | None = None
    for event in played:
        pause = 0.0 if before is None else max(0.0, event[0] - before)
        before = event[0]
        yield (pause if max_idle is None else min(pause, max_idle)) / speed, event


def _play(
    played: Iterator[Event],
    speed: float,
    max_idle: float | None,
    wait: Callable[[float], float | None],
    stage: ReplayScreen | Pipe,
) -> int:
    """Play to the end (0), or until `wait` says stop (1). Pauses end at absolute times: drawing adds no delay."""
    due = time.monotonic()
    for pause, event in delays(played, speed, max_idle):
        due = max(due + pause, time.monotonic() - _BEHIND_S_MAX)
        paused = wait(due)
        if paused is None:
            return 1
        due += paused
        shown_s = stage.show(event)
        if shown_s:  # an act is shown on the last line: restore the screen before drawing anything else
            due = max(due, time.monotonic()) + shown_s
            paused = wait(due)
            stage.clear()
            if paused is None:
                return 1
            due += paused
    return 0


def _sleep(due: float) -> float:
    left = due - time.monotonic()
    if left > 0:
        time.sleep(left)
    return 0.0


def _keyboard(due: float) -> float | None:
    """Wait until a time, reading keys; returns how long it was paused, None to stop."""
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
