"""Adds, finds and removes one table in TOML text without changing other bytes. Pure.

Text is split by lines, which a multi-line string could mislead. So the caller parses the text before and after, and
discards an edit that changed more than it should.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .json_edit import Splice

_HEADER = re.compile(r"[ \t]*\[")


def put(text: str, path: Sequence[str], table: dict[str, Any], there: bool = False) -> list[Splice]:
    """Add the table at the end of the file, or replace the one at `there`."""
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[{'.'.join(map(_key, path))}]", *(f"{_key(k)} = {_value(v)}" for k, v in table.items())]
    written = newline.join(lines) + newline
    found = _span(text, path) if there else None
    if found is not None:
        return [(found[0], text[found[0] : found[1]], written)]
    before = "" if not text or text.endswith("\n") else newline
    return [(len(text), "", before + (newline if text else "") + written)]


def take(text: str, path: Sequence[str]) -> list[Splice]:
    """Remove the table and the empty line before it."""
    found = _span(text, path)
    if found is None:
        return []
    start, end = found
    for gap in ("\r\n", "\n"):
        if text[:start].endswith("\n" + gap):
            start -= len(gap)
            break
    return [(start, text[start:end], "")]


def _span(text: str, path: Sequence[str]) -> tuple[int, int] | None:
    """The lines from the table's header to its last line, with its subtables."""
    name = r"\s*\.\s*".join(f"(?:{re.escape(k)}|\"{re.escape(k)}\"|'{re.escape(k)}')" for k in path)
    own = re.compile(rf"[ \t]*\[\s*{name}\s*(?:\.[^\]]*)?\]")
    at, start, end, inside = 0, None, 0, False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            inside = bool(own.match(line))
            start = at if inside and start is None else start
        if inside and line.strip() and not line.lstrip().startswith("#"):
            end = at + len(line)
        at += len(line)
    return None if start is None else (start, end)


def _key(word: str) -> str:
    return word if re.fullmatch(r"[A-Za-z0-9_-]+", word) else json.dumps(word)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_value(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
