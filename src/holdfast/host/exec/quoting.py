"""Words and paths as shell source: what is quoted here means itself in bash, zsh, dash and fish alike."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SAFE = re.compile(rb"[A-Za-z0-9_@%+:,./-]+")
# Syntax of one shell or another where a command's name stands; in fish quotes do not change that, `command` does.
_KEYWORDS = frozenset(
    b"! [[ { } and begin case coproc do done elif else end esac fi for foreach function if in nocorrect not or repeat"
    b" select switch then time until while".split()
)


def literal(value: bytes) -> bytes:
    """One word in single quotes. Backslashes and quotes stand outside them: fish gives both a meaning inside."""
    _no_nul(value)
    return b"'" + re.sub(rb"(['\\])", rb"'\\\1'", value) + b"'"


def word(value: bytes) -> bytes:
    """One word, quoted only where that is needed."""
    return value if _SAFE.fullmatch(value) else literal(value)


def quote(words: Sequence[str | bytes]) -> bytes:
    """`exec -- CMD ARG…` as source: one argument is source already, several are words that mean themselves."""
    if not words:
        raise ValueError("no command")
    raw = [item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item for item in words]
    if len(raw) == 1:
        _no_nul(raw[0])
        return raw[0]
    return (b"command " if raw[0] in _KEYWORDS else b"") + b" ".join(map(word, raw))


def ansi_c(value: bytes) -> bytes:
    """One word that can be typed: no byte that a line editor or a tty acts on. Known to bash and zsh."""
    _no_nul(value)
    if _SAFE.fullmatch(value):
        return value
    escaped = re.sub(rb"[^A-Za-z0-9_@%+:,./-]", lambda match: b"\\%03o" % match[0][0], value)
    return b"$'" + escaped + b"'"


def fish_escapes(value: bytes) -> bytes:
    """The same for fish, which spells raw bytes \\XHH outside quotes."""
    _no_nul(value)
    return re.sub(rb"[^A-Za-z0-9_@%+:,./-]", lambda match: b"\\X%02x" % match[0][0], value)


def _no_nul(value: bytes) -> None:
    if b"\0" in value:
        raise ValueError("a NUL byte cannot be part of a command")
