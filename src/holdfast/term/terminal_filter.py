"""Filters a program's output for a person's terminal: text and allowed whole sequences pass, nothing else.

How a stream is read: every ESC begins a new sequence, whatever was open before, so none needs the context before it.
Control characters inside a sequence act at once and do not end it. A sequence that a chunk leaves open is held back
until it is whole; what is longer than any that is allowed is dropped up to its end. Only pictures are passed on while
they come. So the terminal is never left inside a sequence by one that was taken out.
"""

from __future__ import annotations

import re

from . import allowed_sequences

HOLD_MAX = 64 << 10  # a long link or a written clipboard; more is no sequence that a screen needs
_HEAD_MAX = 1024  # of a picture: its control data

# Half a character before what may be taken away: what follows could complete it to a C1 control. The byte that stands
# for it is in no character, so a terminal shows the same.
_HALF = re.compile(rb"\xc2(?=[\x1b\xc2])")
_NO_CHARACTER = b"\xff"
_C0 = rb"\x00-\x17\x19\x1c-\x1f\x7f"  # act inside a sequence; CAN, SUB and ESC end it
# What needs a look. Numbers with a letter that draws, the bulk of all sequences, are ruled out first, as are the
# commonest of the short ones: that is several times faster. (Longer ones are looked at, and bounded, below.)
_DRAWING = re.escape(allowed_sequences.DRAWING)
_SUSPECTS = rb"\x1b(?!\[[0-9;:]{0,64}+[%b]|\[\?(?:1|7|12|25|2004|2026)[hl]|[78=>DEHM]|\([0AB])" % _DRAWING
_UTF8_SUSPECTS = rb"\xc2(?:[\x80-\x9f]|\Z)"
_SUSPECT = re.compile(_SUSPECTS)
_UTF8_SUSPECT = re.compile(_UTF8_SUSPECTS)
_ANY_SUSPECT = re.compile(_SUSPECTS + b"|" + _UTF8_SUSPECTS)  # for the rare text with C1 controls: it is slower
_INTRODUCER = re.compile(rb"\x1b([%b]*+)([\s\S]?)" % _C0)
_UTF8_INTRODUCERS = {0x9B: b"[", 0x9D: b"]", 0x90: b"P", 0x9F: b"_", 0x98: b"X", 0x9E: b"^"}
_CSI_REST = re.compile(rb"([%b\x20-\x3f]*+)([\x40-\x7e]?)" % _C0)
_SHORT_REST = re.compile(rb"([%b\x20-\x2f]*+)([\x30-\x7e]?)" % _C0)
_CONTROLS = bytes([*range(0x18), 0x19, *range(0x1C, 0x20), 0x7F])
_NOT_CONTROLS = bytes(sorted(set(range(256)) - set(_CONTROLS)))
_OSC_HEAD = re.compile(rb"([0-9]*+)")
_CONSOLE_PALETTE = re.compile(rb"(?:P[0-9a-fA-F]{7}|R)")  # of the Linux console, which has no end
_CONSOLE_BEGUN = re.compile(rb"P[0-9a-fA-F]{0,6}\Z")

# How strings end. An ESC that is not the start of ST ends them too, and belongs to what follows.
_OSC_END = re.compile(rb"\x07|\x18|\x1a|\x1b\\|\xc2\x9c|\x1b(?=[^\\])")
_STRING_END = re.compile(rb"\x18|\x1a|\x1b\\|\xc2\x9c|\x1b(?=[^\\])")
_APC_HEAD = re.compile(rb";|" + _STRING_END.pattern)
_TMUX_END = re.compile(rb"\x18|\x1a|\x1b\\|\x1b(?=[^\\\x1b])")
_TMUX_PART = re.compile(rb"(?:[^\x18\x1a\x1b]++|\x1b\x1b)*+")
_HALF_ENDS = (b"\x1b", b"\xc2")
_ST = b"\x1b\\"
_TMUX = b"tmux;"


class TerminalFilter:
    """Lets through what the table allows of a stream of chunks; text passes unchanged and at once.

    Without `strings`, pictures and what tmux hands through are dropped: then no sequence is passed on before it is
    whole.
    """

    def __init__(
        self, *, clipboard: bool = False, hold_max: int = HOLD_MAX, wrapped: bool = False, strings: bool = True
    ) -> None:
        self._clipboard, self._hold_max, self._wrapped, self._strings = clipboard, hold_max, wrapped, strings
        self._held = b""
        self._inside = ""  # of a "csi", "osc" or "string" that is dropped, a "picture" that is passed, or "tmux"
        self._inner: TerminalFilter | None = None  # of what tmux is to hand through
        self._wrapping = False  # its beginning was passed on
        self._out: list[bytes] = []
        self._seen = self._base = self._began = 0  # in the stream: its length, this chunk's start, a sequence's start

    @property
    def open(self) -> bool:
        """Whether the stream so far ends inside a sequence that is not passed on, or not all of it."""
        return bool(self._held or self._inside)

    @property
    def settled(self) -> int:
        """How far the stream (not counting ENQ) is passed on or dropped for good: up to a sequence that is open."""
        return self._began if self.open else self._seen

    def strip(self, data: bytes) -> bytes:
        """What of the next chunk is for the terminal; the end of it may stay back until the chunk after."""
        if b"\x05" in data:
            data = data.replace(b"\x05", b"")  # ENQ is a question by itself
        self._base = self._seen - len(self._held)
        self._seen += len(data)
        if self._held:
            data, self._held = self._held + data, b""
        wide = b"\xc2" in data
        if not (wide or self._inside or b"\x1b" in data):  # nothing begins or goes on: most of a flood
            return data
        if wide:
            data = _HALF.sub(_NO_CHARACTER, data)
        search = (_ANY_SUSPECT if wide and _UTF8_SUSPECT.search(data) else _SUSPECT).search
        position = self._go_on(data, 0) if self._inside else 0
        suspect = search(data, position)
        if suspect is None and not position and not self._out:
            return data
        while suspect:
            self._out.append(data[position : suspect.start()])
            position = self._sequence(data, suspect.start())
            suspect = search(data, position)
        self._out.append(data[position:])
        result = b"".join(self._out)
        self._out.clear()
        return result

    def flush(self) -> bytes:
        """At the end of the stream: what ends a picture that is not whole. Half a sequence is nothing."""
        self._held = b""
        if self._inside == "picture":
            self._out.append(_ST)
        elif self._inside == "tmux":
            self._end_wrapped()
        self._inside = ""
        result = b"".join(self._out)
        self._out.clear()
        return result

    # Each of these handles one sequence that begins at `start` and returns where reading goes on.

    def _sequence(self, data: bytes, start: int) -> int:
        self._began = self._base + start
        if data[start] == 0x1B:
            match = _INTRODUCER.match(data, start, start + self._hold_max)
            assert match is not None  # the pattern matches any ESC
            controls, kind, body = match[1], match[2], match.end()
        elif start + 1 == len(data):
            return self._hold(data, start)
        else:
            controls, body = b"", start + 2
            kind = _UTF8_INTRODUCERS.get(data[start + 1], b"")
            if not kind:
                self._out.append(data[start:body] if data[start + 1] in allowed_sequences.C1 else b"")
                return body
        if not kind:
            if len(data) - start < self._hold_max:
                return self._hold(data, start)
            self._out.append(controls)  # not a sequence: an ESC and thousands of control characters
            return body
        if kind == b"[":
            return self._csi(data, start, body, controls)
        if kind == b"]":
            return self._osc(data, start, body, controls)
        if kind == b"P":
            return self._dcs(data, start, body, controls)
        if kind == b"_":
            return self._apc(data, start, body, controls)
        if kind in b"X^":
            return self._drop(data, body, "string", controls)
        return self._short(data, start, body - 1, controls)

    def _short(self, data: bytes, start: int, body: int, controls: bytes) -> int:
        match = _SHORT_REST.match(data, body, start + self._hold_max)
        assert match is not None
        if not match[2] and match.end() == len(data) and len(data) - start < self._hold_max:
            return self._hold(data, start)
        inside, text = _apart(match[1])
        self._out.append(controls + inside)
        if match[2] and allowed_sequences.ESCAPES.fullmatch(text + match[2]):
            self._out.append(b"\x1b" + text + match[2])
        return match.end()

    def _csi(self, data: bytes, start: int, body: int, controls: bytes) -> int:
        limit = start + self._hold_max
        match = _CSI_REST.match(data, body, limit)
        assert match is not None  # the pattern matches nothing, too
        if match[2] or match.end() < min(limit, len(data)):  # whole, or broken off by what follows
            inside, text = _apart(match[1])
            kept = allowed_sequences.csi(text + match[2])
            self._out.append(controls + inside + (b"" if kept is None else b"\x1b[" + kept))
            return match.end()
        return self._hold(data, start) if len(data) < limit else self._drop(data, body, "csi", controls)

    def _osc(self, data: bytes, start: int, body: int, controls: bytes) -> int:
        limit = start + self._hold_max
        match = _OSC_HEAD.match(data, body)
        assert match is not None
        end = match.end()
        if end == len(data) and end < limit:
            return self._hold(data, start)
        if not match[0]:
            if console := _CONSOLE_PALETTE.match(data, end):
                self._out.append(controls)
                return console.end()
            if _CONSOLE_BEGUN.match(data, end):
                return self._hold(data, start)
        number = int(match[0][-9:] or b"-1") if len(match[0].lstrip(b"0")) < 9 else -1
        if number not in allowed_sequences.OSC and not (number == allowed_sequences.CLIPBOARD and self._clipboard):
            return self._drop(data, end, "osc", controls)
        found = _OSC_END.search(data, end, limit)
        if found is None:
            return self._hold(data, start) if len(data) < limit else self._drop(data, end, "osc", controls)
        self._out.append(controls)
        whole = found[0] in (b"\x07", _ST, b"\xc2\x9c")
        kept = allowed_sequences.osc(number, data[end : found.start()], clipboard=self._clipboard) if whole else None
        if kept is not None:
            self._out.append(b"\x1b]%d%b%b" % (number, kept, b"\x07" if found[0] == b"\x07" else _ST))
        return found.end() if whole or found[0] != b"\x1b" else found.start()

    def _dcs(self, data: bytes, start: int, body: int, controls: bytes) -> int:
        if data.startswith(_TMUX, body) and not self._wrapped:
            self._out.append(controls)
            self._inside = "tmux"
            self._inner = TerminalFilter(clipboard=self._clipboard, wrapped=True) if self._strings else None
            return self._go_on(data, body + len(_TMUX))
        head = allowed_sequences.SIXEL.match(data, body)
        if head and head.end() - start <= _HEAD_MAX:
            return self._picture(data, head.end(), controls, b"\x1bP" + head[0])
        rest = data[body : body + _HEAD_MAX]
        undecided = not rest.strip(b"0123456789;") or (_TMUX.startswith(rest) and not self._wrapped)
        if undecided and body + len(rest) == len(data) and len(data) - start < _HEAD_MAX:
            return self._hold(data, start)
        return self._drop(data, body, "string", controls)

    def _apc(self, data: bytes, start: int, body: int, controls: bytes) -> int:
        if body < len(data) and not data.startswith(b"G", body):
            return self._drop(data, body, "string", controls)
        head = _APC_HEAD.search(data, body, start + _HEAD_MAX)
        if head is None:
            undecided = len(data) - start < _HEAD_MAX
            return self._hold(data, start) if undecided else self._drop(data, body, "string", controls)
        kept = allowed_sequences.kitty(data[body : head.start()])
        if kept is None:
            return self._drop(data, head.start(), "string", controls)
        return self._picture(data, head.start(), controls, b"\x1b_" + kept)

    # Strings that are gone through without being held

    def _picture(self, data: bytes, position: int, controls: bytes, head: bytes) -> int:
        if not self._strings:
            return self._drop(data, position, "string", controls)
        self._out.append(controls + head)
        self._inside = "picture"
        return self._go_on(data, position)

    def _drop(self, data: bytes, position: int, inside: str, controls: bytes) -> int:
        self._out.append(controls)
        self._inside = inside
        return self._go_on(data, position)

    def _go_on(self, data: bytes, position: int) -> int:
        """Pass over the rest of what is dropped or passed on, as far as this chunk goes."""
        if self._inside == "csi":
            match = _CSI_REST.match(data, position)
            assert match is not None
            self._out.append(_apart(match[1])[0])
            self._inside = "" if match[2] or match.end() < len(data) else "csi"
            return match.end()
        if self._inside == "tmux":
            return self._go_on_wrapped(data, position)
        found = (_OSC_END if self._inside == "osc" else _STRING_END).search(data, position)
        stop = found.start() if found else len(data)
        if found is None and data.endswith(_HALF_ENDS, position):
            self._held, stop = data[-1:], len(data) - 1
        if self._inside == "picture":
            self._out.append(
                data[position:stop].translate(None, allowed_sequences.NO_PAYLOAD) + (_ST if found else b"")
            )
        if found is None:
            return len(data)
        self._inside = ""
        return stop if found[0] == b"\x1b" else found.end()

    def _go_on_wrapped(self, data: bytes, position: int) -> int:
        part = _TMUX_PART.match(data, position)
        assert part is not None
        passed = self._inner.strip(part[0].replace(b"\x1b\x1b", b"\x1b")) if self._inner else b""
        if passed:
            self._out.append((b"" if self._wrapping else b"\x1bP" + _TMUX) + passed.replace(b"\x1b", b"\x1b\x1b"))
            self._wrapping = True
        found = _TMUX_END.match(data, part.end())
        if found is None:
            self._held = data[part.end() :]  # half of what ends it, or of a pair
            return len(data)
        self._inside = ""
        self._end_wrapped()
        return found.start() if found[0] == b"\x1b" else found.end()

    def _end_wrapped(self) -> None:
        if self._inner and self._wrapping:
            self._out.append(self._inner.flush().replace(b"\x1b", b"\x1b\x1b") + _ST)
        self._inner, self._wrapping = None, False

    def _hold(self, data: bytes, start: int) -> int:
        self._held = data[start:]
        return len(data)


def _apart(between: bytes) -> tuple[bytes, bytes]:
    """The control characters in a sequence, which act by themselves, and its own bytes."""
    return between.translate(None, _NOT_CONTROLS), between.translate(None, _CONTROLS)
