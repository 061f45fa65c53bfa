"""Watch all sessions live: what each is doing, its CPU and memory. q or Ctrl-C quits.

hold top
hold top --once                one table, then exit
hold top --json                the same as one JSON document
"""

from __future__ import annotations

import os
import select
import sys
import time

from ...client._sync.host import Host
from ..ui import arguments, printing
from . import ls

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

    Json = dict[str, Any]
    Usage = dict[str, tuple[float, dict[int, float]]]  # session -> (observed at, pid -> CPU seconds so far)

_PERIOD_S = 1.0  # as fast as numbers can be read
_FIRST_S = 0.25  # the first CPU% needs two observations, and should not take a second
_QUIT = b"qQ\x03\x04"  # q, Ctrl-C, Ctrl-D
_HEADERS = ("NAME", "STATE", "ACTIVITY", "CPU%", "MEMORY", "PROCS", "PORTS", "ATTACHED", "AGE", "COMMAND")
# Alternate screen, no cursor, no wrapping: a long line is cut by the terminal, whatever its letters' widths.
_ENTER = b"\x1b[?1049h\x1b[?25l\x1b[?7l"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="one table, then exit")
    arguments.json_flag(parser)


def run(args: argparse.Namespace) -> int:
    host = Host()
    before = usage(observe(host))
    if not (args.once or args.json) and sys.stdin.isatty() and sys.stdout.isatty():
        return _live(host, before)
    time.sleep(_FIRST_S)
    sessions = observe(host)
    if args.json:
        printing.print_json([{**s, "cpu_percent": percent(s, before)} for s in sessions])
    elif not sessions:
        printing.note("no sessions; start one: hold run")
    else:
        printing.table(_HEADERS, rows(sessions, before, time.time()), styles(sessions))
    return 0


def _live(host: Host, before: Usage) -> int:
    from ...client.terminal_output import reset_sequence
    from ..terminal.raw_terminal import RawTerminal, window_size

    out = sys.stdout.fileno()
    with RawTerminal(reset_sequence()):
        _write(out, _ENTER)
        if _quit_within(_FIRST_S):
            return 0
        while True:
            sessions = observe(host)
            screen = frame(sessions, before, time.time(), window_size(out), colour=printing.colours())
            _write(out, screen.encode("utf-8", "replace"))
            before = usage(sessions)
            if _quit_within(_PERIOD_S):
                return 0


def _write(fd: int, data: bytes) -> None:
    while data:
        data = data[os.write(fd, data) :]


def _quit_within(period_s: float) -> bool:
    """Whether a quit key was pressed before the next frame, or the terminal is gone."""
    keyboard, until = sys.stdin.fileno(), time.monotonic() + period_s
    while (left := until - time.monotonic()) > 0:
        if select.select([keyboard], [], [], left)[0]:
            try:
                typed = os.read(keyboard, 64)
            except OSError:
                return True
            if not typed or any(key in _QUIT for key in typed):
                return True
    return False


def observe(host: Host) -> list[Json]:
    return host.call("ls", processes=True)  # type: ignore[no-any-return]


def usage(sessions: list[Json]) -> Usage:
    """CPU seconds of each process of each session, with the time of the observation."""
    return {
        s["id"]: (_moment(s["observed_at"]), {p["pid"]: p["cpu_s"] for p in s.get("processes", [])}) for s in sessions
    }


def percent(s: Json, before: Usage) -> float | None:
    """CPU percent of one core since the last observation; above 100 if several cores are busy. Computed per process,
    because the seconds of an ended process disappear."""
    if s["id"] not in before or s["state"] != "live":
        return None
    at, spent = before[s["id"]]
    seconds = _moment(s["observed_at"]) - at
    if seconds <= 0:
        return None
    used: float = sum(max(0.0, p["cpu_s"] - spent.get(p["pid"], 0.0)) for p in s.get("processes", []))
    return round(used / seconds * 100, 1)


def _moment(rfc3339: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(rfc3339).timestamp()


def rows(sessions: list[Json], before: Usage, now: float) -> list[tuple[object, ...]]:
    out: list[tuple[object, ...]] = []
    for s in sessions:
        processes = s.get("processes", [])
        cpu = percent(s, before)
        waiting = s["activity"]["prompt"] if s["activity"]["kind"].startswith("waiting") else None
        out.append(
            (
                s["name"],
                ls.state(s),
                ls.doing(s),
                "-" if cpu is None else f"{cpu:.0f}",
                printing.size(sum(p["rss"] for p in processes)),
                len(processes),
                ",".join(str(p["port"]) for p in s["ports"]) or "-",
                s["attached_count"] or "-",
                printing.age(s["created_at"], now),
                f"> {waiting}" if waiting else " ".join(s["command"])[:200],
            )
        )
    return out


def styles(sessions: list[Json]) -> list[tuple[str, ...]]:
    out: list[tuple[str, ...]] = []
    for s in sessions:
        waits = s["activity"]["kind"].startswith("waiting")
        doing = "yellow" if waits else "red" if s["activity"]["kind"] == "unknown" else ""
        out.append(
            (
                "bold",
                "green" if s["state"] == "live" else "red",
                doing,
                "",
                "",
                "",
                "cyan",
                "",
                "dim",
                "yellow" if waits else "",
            )
        )
    return out


def frame(sessions: list[Json], before: Usage, now: float, size: tuple[int, int], colour: bool) -> str:
    """One screen: a heading, and as many sessions as fit."""
    cols, lines = size
    waiting = sum(s["activity"]["kind"].startswith("waiting") for s in sessions)
    clock = time.strftime("%H:%M:%S", time.localtime(now))
    heading = f"holdfast  {clock}  {len(sessions)} sessions" + (f", {waiting} waiting for input" if waiting else "")
    fits = max(0, lines - 5)  # heading, blank, header, how many are left out, and the cursor's own line
    shown = sessions[:fits]
    text = [printing.paint(heading[: max(0, cols - 9)].ljust(max(0, cols - 8)), "bold", colour) + "q quits", ""]
    text += _aligned(rows(shown, before, now), styles(shown), colour)
    if len(sessions) > fits:
        text.append(f"… and {len(sessions) - fits} more: hold ls")
    return "\x1b[H" + "".join(f"{line}\x1b[K\r\n" for line in text[: lines - 1]) + "\x1b[J"


def _aligned(cells: list[tuple[object, ...]], style: list[tuple[str, ...]], colour: bool) -> list[str]:
    table = [_HEADERS, *(tuple(printing.safe(c) for c in row) for row in cells)]
    widths = [max(len(row[i]) for row in table) for i in range(len(_HEADERS))]
    dressed = [("dim",) * len(_HEADERS), *style]
    return [
        "  ".join(printing.paint(c.ljust(w), look, colour) for c, w, look in zip(row, widths, looks, strict=True))
        for row, looks in zip(table, dressed, strict=True)
    ]
