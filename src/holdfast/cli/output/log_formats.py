"""The output formats of `hold logs`: exact bytes, terminal colours, plain text, records, matching lines."""

from __future__ import annotations

import base64
import json
import sys

from ...client.terminal_output import reset_sequence, shown_on, to_text
from ..ui import printing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO, Protocol

    from ...client.types import Chunk
    from ...model.home import Home
    from ...model.patterns import Pattern

    class Writer(Protocol):
        def chunk(self, chunk: Chunk) -> None: ...
        def close(self) -> None: ...


_LINE_BYTES_MAX = 1 << 20  # a longer line is split: progress bars run for hours without a line end


def choose(
    *, as_json: bool, raw: bool, pipes: bool, grep: Pattern | None, tail: int | None, end: int, home: Home | None = None
) -> Writer:
    if grep is not None:
        form: _Form = _Records() if as_json else _Exact() if raw else _Words()
        return Matching(form, grep, tail, end)
    if as_json:
        return Whole(_Records())
    if raw:
        return Whole(_Exact())
    return Whole(_Shown(home)) if pipes or sys.stdout.isatty() else ByLine(_Words())


class _Form:
    """Prints a range of output in one format."""

    def put(self, offset: int, data: bytes, stream: str) -> None:
        raise NotImplementedError

    def gap(self, start: int, end: int) -> None:
        printing.note(f"hold: output {start} to {end} is gone")

    def close(self) -> None:
        sys.stdout.flush()


class _Exact(_Form):
    def put(self, offset: int, data: bytes, stream: str) -> None:
        _stream(stream).write(data)
        _stream(stream).flush()


class _Words(_Exact):
    def put(self, offset: int, data: bytes, stream: str) -> None:
        super().put(offset, to_text(data).encode("utf-8", "replace"), stream)


class _Shown(_Exact):
    """Filters output for a terminal and restores its modes at the end; a file or pipe gets the exact bytes."""

    def __init__(self, home: Home | None) -> None:
        self._filters = {name: shown_on(_stream(name).fileno(), home) for name in ("terminal", "stdout", "stderr")}
        self._dressed = False

    def put(self, offset: int, data: bytes, stream: str) -> None:
        self._dressed = self._dressed or (b"\x1b" in data and _stream(stream).isatty())
        super().put(offset, self._filters[stream].strip(data), stream)

    def close(self) -> None:
        for stream, held in ((name, f.flush()) for name, f in self._filters.items()):
            super().put(0, held, stream)
        if self._dressed:
            super().put(0, reset_sequence(), "terminal")


class _Records(_Form):
    def put(self, offset: int, data: bytes, stream: str) -> None:
        self._print(offset, data, None, stream)

    def gap(self, start: int, end: int) -> None:
        self._print(start, b"", {"from": start, "to": end}, "terminal")

    @staticmethod
    def _print(offset: int, data: bytes, gap: dict[str, int] | None, stream: str) -> None:
        record = {"offset": offset, "bytes_base64": base64.b64encode(data).decode(), "gap": gap, "stream": stream}
        sys.stdout.write(json.dumps(record) + "\n")
        sys.stdout.flush()


class Whole:
    """Prints each chunk as it arrives."""

    def __init__(self, form: _Form) -> None:
        self._form = form

    def chunk(self, chunk: Chunk) -> None:
        if chunk.gap:
            self._form.gap(*chunk.gap)
        else:
            self._form.put(chunk.offset, chunk.data, chunk.stream)

    def close(self) -> None:
        self._form.close()


class ByLine:
    """Prints whole lines only, per stream: a line's text is not known before its end."""

    def __init__(self, form: _Form) -> None:
        self._form = form
        self._held: dict[str, tuple[int, bytes]] = {}  # stream -> offset and bytes of its unfinished line

    def chunk(self, chunk: Chunk) -> None:
        if chunk.gap:
            self._finish()
            self._form.gap(*chunk.gap)
            return
        offset, held = self._held.pop(chunk.stream, (chunk.offset, b""))
        data = held + chunk.data
        cut = data.rfind(b"\n", len(held)) + 1 or (len(data) if len(data) > _LINE_BYTES_MAX else 0)
        if cut:
            self._lines(offset, data[:cut], chunk.stream)
            offset = chunk.offset + cut - len(held)
        if cut < len(data):
            self._held[chunk.stream] = (offset, data[cut:])

    def _lines(self, offset: int, data: bytes, stream: str) -> None:
        self._form.put(offset, data, stream)

    def _finish(self) -> None:
        """Print the unfinished last lines."""
        for stream, (offset, data) in self._held.items():
            self._lines(offset, data, stream)
        self._held.clear()

    def close(self) -> None:
        self._finish()
        self._form.close()


class Matching(ByLine):
    """Prints only matching lines; of the existing ones only the last `tail`."""

    def __init__(self, form: _Form, pattern: Pattern, tail: int | None, end: int) -> None:
        super().__init__(form)
        self._pattern = pattern
        self._tail, self._end = tail, end
        self._kept: list[tuple[int, bytes, str]] = []

    def _lines(self, offset: int, data: bytes, stream: str) -> None:
        for line in _split(data):
            if self._pattern.matches(to_text(line).rstrip("\n").encode("utf-8", "surrogateescape")):
                if self._tail is not None and offset < self._end:
                    self._kept.append((offset, line, stream))
                    del self._kept[: -self._tail or len(self._kept)]
                else:
                    self._release()
                    self._put(offset, line, stream)
            offset += len(line)

    def _put(self, offset: int, line: bytes, stream: str) -> None:
        self._form.put(offset, line if line.endswith(b"\n") else line + b"\n", stream)

    def _release(self) -> None:
        kept, self._kept = self._kept, []
        for item in kept:
            self._put(*item)

    def chunk(self, chunk: Chunk) -> None:
        super().chunk(chunk)
        if chunk.end >= self._end:
            self._release()

    def close(self) -> None:
        self._finish()
        self._release()
        self._form.close()


def _split(data: bytes) -> list[bytes]:
    """Lines with their ends; a terminal's CR is part of a line, not the end of one."""
    parts = data.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _stream(stream: str) -> BinaryIO:
    return sys.stderr.buffer if stream == "stderr" else sys.stdout.buffer
