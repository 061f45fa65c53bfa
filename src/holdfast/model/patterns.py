"""Regular expressions of callers: RE2 over bytes, with a bounded cost per search.

RE2 is linear in the text, but not free: if its cache of states is too small, it walks through the pattern's
instructions for each byte. So what one search may cost is the product of both, MATCH_STEPS_MAX: a larger pattern gets
a smaller window, and one that is left with too small a window is refused.
"""

from __future__ import annotations

from .errors import invalid
from .limits import (
    MATCH_MEMORY_BYTES,
    MATCH_SPAN_BYTES,
    MATCH_STEPS_MAX,
    MATCH_WINDOW_BYTES,
    MATCH_WINDOW_BYTES_MIN,
    PATTERN_MAX,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Pattern:
    """A compiled expression, how many bytes are searched at once, and how many of them a match may span."""

    __slots__ = ("_compiled", "span_bytes", "window_bytes")

    def __init__(self, compiled: Any, window_bytes: int) -> None:
        self._compiled, self.window_bytes = compiled, window_bytes
        self.span_bytes = min(MATCH_SPAN_BYTES, window_bytes // 2)

    def search(self, window: bytes) -> tuple[int, int] | None:
        """The first match in one window: its start and end."""
        if len(window) > self.window_bytes:
            raise ValueError(f"{len(window)} bytes are more than one window")
        match = self._compiled.search(window)
        return match.span() if match else None

    def matches(self, data: bytes) -> bool:
        """Whether it matches anywhere, window by window; a match longer than a span may be missed."""
        step = self.window_bytes - self.span_bytes
        return any(self.search(data[at : at + self.window_bytes]) for at in range(0, max(len(data), 1), step))


def pattern(text: str) -> Pattern:
    """Compile a caller's expression; raises if it is not valid."""
    import re2  # here: few commands need it

    if len(text) > PATTERN_MAX:
        raise invalid(f"the pattern has {len(text)} characters", f"the limit is {PATTERN_MAX}")
    options = re2.Options()
    options.max_mem = MATCH_MEMORY_BYTES
    options.log_errors = False
    try:
        try:
            raw = text.encode()
        except UnicodeEncodeError:  # bytes that are no UTF-8, as a command line gives them: they stand for themselves
            raw, options.encoding = text.encode("utf-8", "surrogateescape"), re2.Options.Encoding.LATIN1
        compiled = re2.compile(raw, options=options)
    except (re2.error, UnicodeEncodeError) as e:
        why = e.args[0].decode("utf-8", "replace") if isinstance(e.args[0], bytes) else str(e)
        if "too large" in why:
            raise _too_large(text) from None
        hint = "RE2 syntax: no backreferences or lookaround"
        raise invalid(f"{text[:80]!r} is not a regular expression: {why}", hint) from None
    size = max(compiled.programsize, compiled.reverseprogramsize)
    window = min(MATCH_WINDOW_BYTES, MATCH_STEPS_MAX // size)
    if window < MATCH_WINDOW_BYTES_MIN:
        raise _too_large(text)
    return Pattern(compiled, window)


def _too_large(text: str) -> Exception:
    most = MATCH_STEPS_MAX // MATCH_WINDOW_BYTES_MIN
    return invalid(
        f"{text[:80]!r} compiles to more than {most:,} instructions, too many to search for",
        "repeat less: .* for .{1000}, [a-z] for \\pL",
    )
