"""asciinema recordings (version 3, or 2 for older players) as a pure function of events."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator

# An event as it is recorded: (seconds since 1970, code, value). `o` is output, `r` a new size (cols, rows),
# `m` a mark with its label, `x` the exit status.
Event = tuple[float, str, bytes | str | int | tuple[int, int]]

_SIZE_DEFAULT = (80, 24)  # a recording that never says its size (a program on pipes)


def cast(
    events: Iterable[Event], *, version: int = 3, title: str = "", command: str = "", term: str = "xterm-256color"
) -> Iterator[str]:
    """The lines of a recording, each with its line end. The first size becomes the header's.

    Time begins with the first event. Output is cut anywhere in the log, so UTF-8 is put together across events;
    what is not UTF-8 becomes replacement characters, because the format is text.
    """
    pending = iter(events)
    head, size = _until_output(pending)
    began = head[0][0] if head else 0.0
    yield _line(_header(version, size, began, title, command, term))
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    before = began
    for at, code, value in (e for part in (head, pending) for e in part):
        now = max(at, before)  # clocks are set back now and then; a recording only goes on
        if code == "r" and value == size:
            continue
        text = _value(code, value, decoder)
        if text is None or (code == "x" and version == 2):
            continue
        if code == "r":
            size = value  # type: ignore[assignment]
        yield _line([round(now - (before if version == 3 else began), 6), code, text])
        before = now
    rest = decoder.decode(b"", final=True)
    if rest:
        yield _line([0.0 if version == 3 else round(before - began, 6), "o", rest])


def _until_output(events: Iterator[Event]) -> tuple[list[Event], tuple[int, int]]:
    """The first output event with what comes before it, less the sizes, and the size it was made for."""
    size, head = _SIZE_DEFAULT, []
    for event in events:
        if event[1] == "r":
            size = event[2]  # type: ignore[assignment]
            continue
        head.append(event)
        if event[1] == "o":
            break
    return head, size


def _header(
    version: int, size: tuple[int, int], began: float, title: str, command: str, term: str
) -> dict[str, object]:
    cols, rows = size
    header: dict[str, object] = {"version": version}
    if version == 3:
        header["term"] = {"cols": cols, "rows": rows, "type": term}
    else:
        header.update(width=cols, height=rows, env={"TERM": term})
    header["timestamp"] = int(began)
    # A command line may hold bytes that are not UTF-8; the file is.
    words = {"title": title, "command": command}
    header |= {k: v.encode("utf-8", "replace").decode() for k, v in words.items() if v}
    return header


def _value(code: str, value: object, decoder: codecs.IncrementalDecoder) -> str | None:
    """The event's text; None where there is none yet (half a character)."""
    if code == "o":
        assert isinstance(value, bytes)
        return decoder.decode(value) or None
    if code == "r":
        assert isinstance(value, tuple)
        return f"{value[0]}x{value[1]}"
    return str(value)


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(", ", ": ")) + "\n"
