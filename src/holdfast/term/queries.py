"""Finds the queries that programs send to their terminal; the session's emulator answers them."""

from __future__ import annotations

import re

_C0 = rb"\x00-\x17\x19\x1c-\x1f\x7f"  # act inside a sequence; CAN, SUB and ESC end it
_N = rb"[0-9;:]*+"
_CSI_QUESTIONS = (
    rb"(?=0*(?:1[13-689]|2[01])[;:t])" + _N + rb"t"  # window: state, position, sizes, labels
    rb"|" + _N + rb"(?:[cnx]|\$[puw]|\*y|'\||\"v|&u|#\|)"  # attributes, status, modes, checksums, locator
    rb"|[>=]" + _N + rb"c"  # secondary and tertiary attributes
    rb"|>" + _N + rb"q"  # name and version
    rb"|\?" + _N + rb"(?:[nuSm]|\$p)"  # DEC status, keyboard flags, graphics, key modifiers, modes
)
_NO_COLOR = rb"\x1b(?!\[[0-9;:]*+m)"  # colours, the bulk of all sequences, are ruled out first: several times faster

MAYBE_QUERY: re.Pattern[bytes] = re.compile(
    _NO_COLOR + rb"(?:\[(?:[\x20-\x3f]*+(?:[%b]|\Z)|%b)|\](?:0*(?:[45]|1[0-9]|21);[^\x07\x1b]*(?:\?|\Z)|[0-9]*\Z)"
    rb"|P[0-9;:%b]*+(?:[$+]|\Z)|[Z%b]|\Z)" % (_C0, _CSI_QUESTIONS, _C0, _C0)
)
"""Whether a chunk may hold a question that the emulator answers, or the beginning of one. When in doubt, yes."""
