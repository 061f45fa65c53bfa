"""Finds the questions that programs ask their terminal, and takes them out of what a client's terminal sees.

A session's own emulator answers; were the client's terminal asked too, its answer would arrive as typed input.
Taken out are: status, attribute, mode, size, colour, capability and keyboard queries; clipboard reads and writes
(OSC 52 and its relatives); pictures (APC G), whose every command is answered; what tmux would hand through; and
the modes that make a terminal report unasked.

How a stream is read: every ESC begins a new sequence, whatever was open before, so none needs the context before
it. Control characters inside a sequence act at once and do not end it: a question with some inside is still a
question. A sequence that a chunk leaves open is held back until it is clear what it is.
"""

from __future__ import annotations

import re

# The most that is held back. Questions are under 100 bytes; what gets longer is defused instead of removed.
HOLD_MAX = 4096

_C0 = rb"\x00-\x17\x19\x1c-\x1f\x7f"  # act inside a sequence; CAN, SUB and ESC end it
_N = rb"[0-9;:]*+"
_CSI_QUESTIONS = (
    rb"(?=0*(?:1[13-689]|2[01])[;:t])" + _N + rb"t"  # window: state, position, sizes, labels
    rb"|" + _N + rb"(?:[cnx]|\$[puw]|\*y|'\||\"v|&u|#\|)"  # attributes, status, modes, checksums, locator
    rb"|[>=]" + _N + rb"c"  # secondary and tertiary attributes
    rb"|>" + _N + rb"q"  # name and version
    rb"|\?" + _N + rb"(?:[nuSm]|\$p)"  # DEC status, keyboard flags, graphics, key modifiers, modes
)
_CSI_QUESTION = re.compile(_CSI_QUESTIONS)
_CSI_QUESTION_ENDS = b"cnxpuwytSmqv|"  # with more than numbers in front; without, the first three and t
_NUMERIC = b"0123456789;:"
_SET_MODES = re.compile(rb"\?([0-9;]*)h")
# Colour scheme, visibility, size and paste reports: the session's emulator sends them where it has them.
_REPORTING_MODES = frozenset({2031, 2033, 2048, 5522})
_ALWAYS = frozenset({52, 60, 61, 5522})  # clipboards; and xterm's list of what it allows
# A question where a value is a question mark: colours; and whether a program's status is heard (model/says.py).
_COLORS = frozenset({4, 5, *range(10, 20), 21, 22, 50, 99, 7501})
_ITERM = 1337
_ITERM_QUESTIONS = (b"Capabilities", b"Copy", b"EndCopy", b"Report", b"Request")
_ITERM_NAME_MAX = max(map(len, _ITERM_QUESTIONS))

# Where a sequence of interest may begin. Colours, the bulk of all sequences, are ruled out first: that is several
# times faster. The other pattern is for the rare text with C1 characters in UTF-8, which many terminals obey too.
_NO_COLOR = rb"\x1b(?!\[[0-9;:]*+m)"
_SUSPECTS = _NO_COLOR + rb"(?:\[[0-9;:]*+(?:[^@-bd-mo-su-wy-~]|\Z)|[\]P_Z\x00-\x1f\x7f]|\Z)"
_UTF8_SUSPECTS = rb"\xc2(?:[\x90\x9a\x9b\x9d\x9f]|\Z)"
_SUSPECT = re.compile(_SUSPECTS)
_UTF8_SUSPECT = re.compile(_UTF8_SUSPECTS)
_ANY_SUSPECT = re.compile(_SUSPECTS + b"|" + _UTF8_SUSPECTS)
_INTRODUCER = re.compile(rb"\x1b([%b]*+)([\s\S]?)" % _C0)
_UTF8_INTRODUCERS = {0x9B: b"[", 0x9D: b"]", 0x90: b"P", 0x9F: b"_", 0x9A: b"Z"}
_CSI_REST = re.compile(rb"([%b\x20-\x3f]*+)([\x40-\x7e]?)" % _C0)
_CONTROLS = bytes([*range(0x18), 0x19, *range(0x1C, 0x20), 0x7F])
_NOT_CONTROLS = bytes(sorted(set(range(256)) - set(_CONTROLS)))
_OSC_NUMBER = re.compile(rb"[0-9]*+")
_DCS_PARAMETERS = re.compile(rb"[0-9;:%b]*+" % _C0)
_ASKED = re.compile(rb"[;=:]\?")

# How strings end. An ESC that is not the start of ST ends them too, and belongs to what follows.
_OSC_END = re.compile(rb"\x07|\x18|\x1a|\x1b\\|\xc2\x9c|\x1b(?=[^\\])")
_STRING_END = re.compile(rb"\x18|\x1a|\x1b\\|\xc2\x9c|\x1b(?=[^\\])")
_HALF_ENDS = (b"\x1b", b"\xc2")
_TMUX_END = re.compile(rb"(?:[^\x18\x1a\x1b]++|\x1b\x1b)*+(\x18|\x1a|\x1b\\|\x1b(?=[^\\\x1b]))")

# Sequences that are over, one way or another. A string that ends with ST is: its ESC begins a sequence of its own.
_UTF8_STRING = re.compile(rb"\xc2[\x90\x98\x9b\x9d-\x9f]")
_CLOSED = re.compile(
    rb"\x1b[%b]*+(?:[\x18\x1a0-OQ-WYZ\\`-\x7e\x80-\xff]|[\x20-\x2f][%b\x20-\x2f]*+[\x18\x1a\x30-\xff])"
    rb"|(?:\x1b[%b]*+\[|\xc2\x9b)[%b\x20-\x3f]*+[\x18\x1a\x40-\xff]"
    rb"|(?:\x1b[%b]*+\]|\xc2\x9d)(?:[^\x07\x18\x1a\xc2]++|\xc2(?!\x9c))*+(?:[\x07\x18\x1a]|\xc2\x9c)"
    rb"|(?:\x1b[%b]*+[PX^_]|\xc2[\x90\x98\x9e\x9f])(?:[^\x18\x1a\xc2]++|\xc2(?!\x9c))*+(?:[\x18\x1a]|\xc2\x9c)"
    % ((_C0,) * 6)
)

MAYBE_QUERY: re.Pattern[bytes] = re.compile(
    _NO_COLOR + rb"(?:\[(?:[\x20-\x3f]*+(?:[%b]|\Z)|%b)|\](?:0*(?:[45]|1[0-9]|21);[^\x07\x1b]*(?:\?|\Z)|[0-9]*\Z)"
    rb"|P[0-9;:%b]*+(?:[$+]|\Z)|[Z%b]|\Z)" % (_C0, _CSI_QUESTIONS, _C0, _C0)
)
"""Whether a chunk may hold a question that the emulator answers, or the beginning of one. When in doubt, yes."""


def whole_before(data: bytes, start: int, end: int) -> bytes:
    """What stands before a sequence. Half a character at its end is left out: were the sequence taken away, what
    follows could complete it to a C1 control."""
    return data[start : end - 1] if end > start and data[end - 1] == 0xC2 else data[start:end]


class QueryFilter:
    """Removes questions from a stream of chunks; everything else passes unchanged and at once."""

    def __init__(self, hold_max: int = HOLD_MAX) -> None:
        self._hold_max = hold_max
        self._held = b""
        self._inside = ""  # of what string: "osc", "string" or "tmux" being removed, "color" or "csi" being defused
        self._numeric = True  # whether an overlong CSI sequence has nothing but numbers so far
        self._open = b""  # the introducer of what was passed and is still open, since the next ESC may be taken away
        self._out: list[bytes] = []
        self._seen = self._base = self._began = 0  # in the stream: its length, this chunk's start, a sequence's start

    @property
    def open(self) -> bool:
        """Whether the stream so far ends inside a sequence that is held back, or being removed."""
        return bool(self._held or self._inside)

    @property
    def settled(self) -> int:
        """How far the stream (not counting ENQ) is passed on or removed for good: up to a sequence that is open."""
        return self._began if self.open else self._seen

    def strip(self, data: bytes) -> bytes:
        """The next chunk without questions; the end of it may stay back until the chunk after."""
        if b"\x05" in data:
            data = data.replace(b"\x05", b"")  # ENQ is a question by itself
        self._base = self._seen - len(self._held)
        self._seen += len(data)
        if self._held:
            data, self._held = self._held + data, b""
        wide = b"\xc2" in data
        if not (wide or self._inside or self._open or b"\x1b" in data):  # nothing begins or goes on: most of a flood
            return data
        pattern = _ANY_SUSPECT if wide and _UTF8_SUSPECT.search(data) else _SUSPECT
        position = self._go_on(data, 0) if self._inside else 0
        suspect = pattern.search(data, position)
        if suspect is None and position == 0 and not self._out:
            self._note(data)
            return data
        while suspect:
            self._pass(whole_before(data, position, suspect.start()))
            position = self._sequence(data, suspect.start())
            suspect = pattern.search(data, position)
        self._pass(data[position:])
        result = b"".join(self._out)
        self._out.clear()
        return result

    def flush(self) -> bytes:
        """What was held back, at the end of the stream."""
        held, self._held = self._held, b""
        removing = self._inside in ("osc", "string", "tmux")
        self._inside = ""
        self._open = b""
        return b"" if removing else held

    def _pass(self, data: bytes) -> None:
        self._out.append(data)
        self._note(data)

    def _note(self, data: bytes) -> None:
        """Follow whether what was passed so far ends inside a sequence."""
        start = data.rfind(b"\x1b")
        if b"\xc2" in data:
            for match in _UTF8_STRING.finditer(data, max(start, 0)):
                start = match.start()
        if start < 0:
            if not self._open:
                return
            data, start = self._open + data, 0
        if _CLOSED.match(data, start):
            self._open = b""
        elif data[start] == 0x1B:
            match_ = _INTRODUCER.match(data, start)
            self._open = b"\x1b" + match_[2] if match_ else b""
        else:
            self._open = data[start : start + 2]

    def _take_away(self, controls: bytes) -> None:
        """Leave out a sequence. If it broke off another one, which then would go on, CAN breaks that off instead."""
        self._pass((b"\x18" if self._open else b"") + controls)

    # Each of these handles one sequence that begins at `start` and returns where reading goes on.

    def _sequence(self, data: bytes, start: int) -> int:
        self._began = self._base + start
        if data[start] == 0x1B:
            match = _INTRODUCER.match(data, start)
            assert match is not None  # the pattern matches any ESC
            controls, kind, body = match[1], match[2], match.end()
        elif start + 1 < len(data):
            controls, kind, body = b"", _UTF8_INTRODUCERS[data[start + 1]], start + 2
        else:
            controls, kind, body = b"", b"", start + 1
        if 1 + len(controls) > self._hold_max:  # nobody's sequence: an ESC and thousands of control characters
            cut = start + self._hold_max
            self._pass(data[start:cut] + b"\x18")
            return cut
        if not kind:
            return self._hold(data, start)
        if kind == b"Z":
            self._take_away(controls)
            return body
        if kind == b"[":
            return self._csi(data, start, body, controls)
        if kind == b"]":
            return self._osc(data, start, body, controls)
        if kind == b"P":
            return self._dcs(data, start, body, controls)
        if kind == b"_":
            return self._apc(data, start, body, controls)
        self._pass(data[start : body - 1])
        return body - 1

    def _csi(self, data: bytes, start: int, body: int, controls: bytes) -> int:
        match = _CSI_REST.match(data, body)
        assert match is not None  # the pattern matches nothing, too
        end = match.end()
        if not match[2] and end == len(data):
            if end - start <= self._hold_max:
                return self._hold(data, start)
            self._inside = "csi"
            self._numeric = not controls and not match[1].strip(_NUMERIC)
            self._pass(data[start:])
            return end
        if end - start > self._hold_max:
            self._pass(data[start : end - len(match[2])])
            self._pass(_defused(match[2], numeric=not controls and not match[1].strip(_NUMERIC)))
            return end
        text = match[1].translate(None, _CONTROLS) + match[2]
        modes = _SET_MODES.fullmatch(text)
        if _CSI_QUESTION.fullmatch(text):
            self._take_away(controls + match[1].translate(None, _NOT_CONTROLS))
        elif modes is not None and not _REPORTING_MODES.isdisjoint(_numbers(modes[1])):
            kept = [number for number in _numbers(modes[1]) if number not in _REPORTING_MODES]
            self._take_away(controls + match[1].translate(None, _NOT_CONTROLS))
            if kept:
                self._pass(b"\x1b[?%bh" % b";".join(b"%d" % number for number in kept))
        else:
            self._pass(data[start:end])
        return end

    def _osc(self, data: bytes, start: int, body: int, controls: bytes) -> int:
        match = _OSC_NUMBER.match(data, body)
        assert match is not None
        end = match.end()
        if end - start > self._hold_max:  # nobody writes a number like that but to get past this filter
            return self._remove(data, end, "osc", controls)
        if end == len(data):
            return self._hold(data, start)
        number = int(match[0] or b"0")
        if number in _ALWAYS:
            return self._remove(data, end, "osc", controls)
        if number in _COLORS:
            return self._color(data, start, end, controls)
        if number == _ITERM:
            name = data[end + 1 : end + 1 + _ITERM_NAME_MAX]
            if name.startswith(_ITERM_QUESTIONS):
                return self._remove(data, end, "osc", controls)
            if end + 1 + len(name) == len(data) and any(known.startswith(name) for known in _ITERM_QUESTIONS):
                return self._hold(data, start)
        self._pass(data[start:end])
        return end

    def _color(self, data: bytes, start: int, body: int, controls: bytes) -> int:
        """A colour, pointer or font, set or asked for: only the end tells which."""
        end = _OSC_END.search(data, body)
        reach = len(data) - data.endswith(_HALF_ENDS) if end is None else end.start()
        if reach - start > self._hold_max:
            self._inside = "color"
            self._pass(data[start:body])
            return self._go_on(data, body)
        if end is None:
            return self._hold(data, start)
        stop = end.start() if end[0] == b"\x1b" else end.end()  # an ESC that breaks it off is looked at next
        if _ASKED.search(data, body, end.start()):
            self._take_away(controls)
        else:
            self._pass(data[start:stop])
        return stop

    def _dcs(self, data: bytes, start: int, body: int, controls: bytes) -> int:
        match = _DCS_PARAMETERS.match(data, body)
        assert match is not None
        end = match.end()
        if end - start > self._hold_max or data.startswith((b"$q", b"+q", b"+Q"), end):
            return self._remove(data, end, "string", controls)
        if data.startswith(b"tmux;", end):  # what tmux would hand through to the terminal outside
            return self._remove(data, end + 5, "tmux", controls)
        rest = data[end : end + 5]
        if end + len(rest) == len(data) and (rest in (b"", b"$", b"+") or b"tmux;".startswith(rest)):
            return self._hold(data, start)
        self._pass(data[start:end])
        return end

    def _apc(self, data: bytes, start: int, body: int, controls: bytes) -> int:
        rest = data[body : body + 5]
        if rest.startswith((b"G", b"25a1;")):  # pictures; glyphs
            return self._remove(data, body, "string", controls)
        if body + len(rest) == len(data) and b"25a1;".startswith(rest):
            return self._hold(data, start)
        self._pass(data[start:body])
        return body

    # Strings that are gone through without being held

    def _remove(self, data: bytes, position: int, inside: str, controls: bytes) -> int:
        self._take_away(controls)
        self._inside = inside
        return self._go_on(data, position)

    def _go_on(self, data: bytes, position: int) -> int:
        """Pass over the rest of what is being removed or defused, as far as this chunk goes."""
        inside = self._inside
        if inside == "csi":
            match = _CSI_REST.match(data, position)
            assert match is not None
            self._numeric = self._numeric and not match[1].strip(_NUMERIC)
            self._pass(data[position : match.end() - len(match[2])])
            if match.end() < len(data) or match[2]:
                self._inside = ""
                self._pass(_defused(match[2], numeric=self._numeric))
            return match.end()
        if inside == "tmux":
            found = _TMUX_END.match(data, position)
            start, end = found.span(1) if found else (len(data), len(data))
        else:
            found = (_STRING_END if inside == "string" else _OSC_END).search(data, position)
            start, end = found.span() if found else (len(data), len(data))
        if found:
            self._inside = ""
            if data[start:end] == b"\x1b":
                end = start
        elif data.endswith(_HALF_ENDS, position):
            # For tmux an ESC counts only where it is not the second of a pair.
            tail = data[position:]
            if inside != "tmux" or (len(tail) - len(tail.rstrip(b"\x1b"))) % 2:
                self._held = data[-1:]
                start = len(data) - 1
        if inside == "color":
            self._pass(data[position:start].replace(b"?", b"") + data[start:end] * (found is not None))
        return end

    def _hold(self, data: bytes, start: int) -> int:
        self._held = data[start:]
        return len(data)


def _numbers(parameters: bytes) -> list[int]:
    return [int(number[-9:]) for number in parameters.split(b";") if number]


def _defused(final: bytes, *, numeric: bool) -> bytes:
    """The end of an overlong sequence: cancelled where it could be a question."""
    return b"\x18" if final and final in (b"cnxt" if numeric else _CSI_QUESTION_ENDS) else final
