"""Reads a session's recording from the host page by page: output with times, and who acted."""

from __future__ import annotations

import base64
import heapq
import itertools

from ...client.terminal_output import TerminalFilter
from ...model import timeline_text
from ..operators.timeline import fetch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ...client._sync.host import Host
    from ...client.terminal_output import Event, Exact

    Shown = TerminalFilter | Exact

    Placed = tuple[int, Event]  # the output offset after the event, and the event


_UNTOLD = ("resize", "ended", "refuse")  # sizes and the end are in the recording already; refused acts did not happen


def events(host: Host, session: str, *, lines: bool, actors: bool = True) -> Iterator[Event]:
    """The `o`, `r` and `m` events of all stored output."""
    return (event for _, event in placed(host, session, lines=lines, actors=actors))


def placed(
    host: Host, session: str, *, lines: bool, actors: bool = True, shown: Callable[[], Shown] = TerminalFilter
) -> Iterator[Placed]:
    """Output, and operators' acts as marks at their times, each with its offset."""
    printed = output(host, session, lines=lines, shown=shown)
    if not actors:
        return printed
    first = list(itertools.islice(printed, 1))
    marks = acts(host, session, first[0][1][0] if first else None)
    return heapq.merge(marks, itertools.chain(first, printed), key=lambda p: p[1][0])


def acts(host: Host, session: str, began: float | None) -> Iterator[Placed]:
    """Operators' acts as marks; equal marks within a second are merged."""
    last = ("", 0.0)
    for entry in fetch(host, session, None, 0):
        if entry["kind"] in _UNTOLD:
            continue
        at = _seconds(entry["at"])
        if entry["kind"] == "start" and began is not None:
            at = min(at, began)  # it is written down when the program runs, which may have printed by then
        for words in timeline_text.tell([entry], names=False):
            if words.text != last[0] or at - last[1] >= 1.0:
                yield int(entry["offset"] or 0), (at, "m", words.text)
            last = (words.text, at)


def _seconds(rfc3339: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(rfc3339).timestamp()


def output(host: Host, session: str, *, lines: bool, shown: Callable[[], Shown]) -> Iterator[Placed]:
    """Output, sizes, and marks for pruned output.

    `shown` makes the filter for the output: a recording is played on a terminal, so by default it gets only what the
    filter table allows. With `lines` (a session on pipes) line ends become those of a terminal.
    """
    at: int | None = None
    filters, time_s, offset = {"o": shown(), "e": shown()}, 0.0, 0
    while True:
        page = host.call("recording", session=session, start=at)
        offset = page["start"]
        for time_s, code, value in page["events"]:
            if code in filters:
                raw = base64.b64decode(value)
                offset += len(raw)
                data = filters[code].strip(raw)
                if data:
                    yield offset, (time_s, "o", data.replace(b"\n", b"\r\n") if lines else data)
            elif code == "r":
                cols, _, rows = value.partition("x")
                yield offset, (time_s, "r", (int(cols), int(rows)))
            else:
                offset = int(value.partition("-")[2])
                yield offset, (time_s, "m", f"output {value} is gone")
        at = page["next"]
        if at is None:
            break
    for held in (f.flush() for f in filters.values()):  # half an escape sequence at the end
        if held:
            yield offset, (time_s, "o", held)
