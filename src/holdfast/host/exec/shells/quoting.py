"""Words, values and paths as shell source."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SAFE = re.compile(rb"[A-Za-z0-9_@%+:,./-]+")
_UNSAFE = re.compile(rb"[^A-Za-z0-9_@%+:,./-]")
# Syntax of one shell or another where a command's name stands; in fish quotes do not change that, `command` does.
_KEYWORDS = frozenset(
    b"! [[ { } and begin case coproc do done elif else end esac fi for foreach function if in nocorrect not or repeat"
    b" select switch then time until while".split()
)


def quote(words: Sequence[str | bytes]) -> bytes:
    """`exec -- CMD ARG…` as source: one argument is source already, several are words that mean themselves."""
    if not words:
        raise ValueError("no command")
    raw = [item.encode("utf-8", "surrogateescape") if isinstance(item, str) else item for item in words]
    if len(raw) == 1:
        return _without_nul(raw[0])
    return (b"command " if raw[0] in _KEYWORDS else b"") + b" ".join(map(word, raw))


def word(value: bytes) -> bytes:
    """One word that means itself in every shell we speak. Backslashes stand outside quotes: fish reads them inside."""
    if _SAFE.fullmatch(value):
        return value
    return b"'" + re.sub(rb"(['\\])", rb"'\\\1'", _without_nul(value)) + b"'"


def literal(value: bytes) -> bytes:
    """Any value for bash, zsh and dash."""
    return b"'" + _without_nul(value).replace(b"'", rb"'\''") + b"'"


def fish_literal(value: bytes) -> bytes:
    """Any value for fish, in whose single quotes a backslash escapes."""
    return b"'" + _without_nul(value).replace(b"\\", rb"\\").replace(b"'", rb"\'") + b"'"


def typeable(value: bytes) -> bytes:
    """One word for bash and zsh without any byte that a line editor or a tty acts on."""
    if _SAFE.fullmatch(value):
        return value
    return b"$'" + _UNSAFE.sub(lambda match: b"\\%03o" % match[0][0], _without_nul(value)) + b"'"


def fish_typeable(value: bytes) -> bytes:
    """The same for fish, which spells raw bytes \\XHH outside quotes."""
    return _UNSAFE.sub(lambda match: b"\\X%02x" % match[0][0], _without_nul(value))


def _without_nul(value: bytes) -> bytes:
    if b"\0" in value:
        raise ValueError("a NUL byte cannot be part of a command")
    return value
