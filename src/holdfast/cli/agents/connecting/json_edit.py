"""Edits JSON text by splices: adds and removes values. Each edit can be undone byte for byte. Pure."""

from __future__ import annotations

import json
import re

from .json_positions import BrokenError, Node, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

Splice = tuple[int, str, str]  # (position, old text, new text)
_SAME_LINE = re.compile(r"[ \t]*(?://[^\n]*|/\*[^\n]*?\*/)")


def apply(text: str, splices: Sequence[Splice]) -> str:
    for at, old, new in splices:
        assert text[at : at + len(old)] == old
        text = text[:at] + new + text[at + len(old) :]
    return text


def undo(text: str, splices: Sequence[Splice]) -> str:
    """The text before `apply`; raises BrokenError where it is not what `apply` left."""
    for at, old, new in reversed(splices):
        if text[at : at + len(new)] != new:
            raise BrokenError("it was changed since")
        text = text[:at] + old + text[at + len(new) :]
    return text


def put(text: str, path: Sequence[str], value: Any, comments: bool, *, append: bool = False) -> list[Splice]:
    """Set `path` to a value (or, with `append`, add it to the array there); missing parents are created."""
    node = scan(text, comments)
    if node.kind != "object":
        raise BrokenError("an object expected, at the top")
    for depth, key in enumerate(path):
        last = depth == len(path) - 1
        found = node.member(key)
        if found is None:
            made: Any = [value] if append else value
            for name in reversed(path[depth + 1 :]):
                made = {name: made}
            return _insert(text, node, key, made, comments)
        if last and not append:
            return [(found.start, text[found.start : found.end], _written(text, node, value, found.start))]
        if found.kind != ("array" if last else "object"):
            raise BrokenError(f"{'.'.join(path[: depth + 1])} is not {'an array' if last else 'an object'}")
        node = found
    return _insert(text, node, None, value, comments)


def take(text: str, path: Sequence[str], index: int | None, comments: bool) -> list[Splice]:
    """Remove the member at `path`, or item `index` of the array there."""
    node = scan(text, comments)
    for key in path[:-1] if index is None else path:
        found = node.member(key)
        if found is None:
            return []
        node = found
    if index is None:
        names = [name for name, _ in node.keys]
        if path[-1] not in names:
            return []
        index = len(names) - 1 - names[::-1].index(path[-1])
    return _remove(text, node, index, comments)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _indent_at(text: str, at: int) -> str:
    """The leading white space of the line at `at`."""
    start = text.rfind("\n", 0, at) + 1
    found = re.match(r"[ \t]*", text[start:at])
    return found.group() if found else ""


def _unit(text: str) -> str:
    """One level of this file's indentation; two spaces where it shows none."""
    found = re.search(r"\n([ \t]+)\S", text)
    return "\t" if found and found.group(1).startswith("\t") else found.group(1) if found else "  "


def _on_own_line(text: str, at: int) -> bool:
    return text[text.rfind("\n", 0, at) + 1 : at].strip() == "" and "\n" in text[:at]


def _written(text: str, parent: Node, value: Any, at: int) -> str:
    """A value formatted for this place: on one line if its neighbours are."""
    if parent.items and not _on_own_line(text, parent.begins(0)):
        return json.dumps(value, ensure_ascii=False)
    return _lines(text, value, _indent_at(text, at))


def _lines(text: str, value: Any, indent: str) -> str:
    return json.dumps(value, indent=_unit(text), ensure_ascii=False).replace("\n", _newline(text) + indent)


def _insert(text: str, node: Node, key: str | None, value: Any, comments: bool) -> list[Splice]:
    """A new last member or item."""
    name = "" if key is None else json.dumps(key, ensure_ascii=False) + ": "
    newline = _newline(text)
    if not node.items:
        outer = _indent_at(text, node.start)
        inner = outer + _unit(text)
        inside = text[node.start + 1 : node.end - 1]
        kept = inside.rstrip()  # comments stay, the white space around nothing goes
        written = f"{newline}{inner}{name}{_lines(text, value, inner)}{newline}{outer}"
        return [(node.start + 1 + len(kept), inside[len(kept) :], written)]
    last = node.items[-1]
    comma = _comma_after(text, last.end, node.end, comments)
    at = last.end if comma is None else comma + 1
    splices: list[Splice] = [] if comma is not None else [(at, "", ",")]
    at += 0 if comma is not None else 1
    if not _on_own_line(text, node.begins(0)):
        return [*splices, (at, "", f" {name}{json.dumps(value, ensure_ascii=False)}")]
    behind = _SAME_LINE.match(text, at - len(splices))  # a comment behind the last value stays with it
    if comments and behind and behind.end() + len(splices) > at:
        at = behind.end() + len(splices)
    indent = _indent_at(text, node.begins(0))
    return [*splices, (at, "", f"{newline}{indent}{name}{_lines(text, value, indent)}")]


def _comma_after(text: str, at: int, end: int, comments: bool) -> int | None:
    """The position of the comma after a value, past comments."""
    pattern = r"(?:\s|//[^\n]*|/\*.*?\*/)*," if comments else r"\s*,"
    found = re.compile(pattern, re.DOTALL).match(text, at, end)
    return found.end() - 1 if found else None


def _remove(text: str, node: Node, index: int, comments: bool) -> list[Splice]:
    item, first = node.items[index], node.begins(index)
    if len(node.items) == 1 and text[node.start + 1 : first].strip() == "":
        comma = _comma_after(text, item.end, node.end, comments)
        rest = text[item.end if comma is None else comma + 1 : node.end - 1]
        if rest.strip() == "":
            return [(node.start + 1, text[node.start + 1 : node.end - 1], "")]
    start = first
    while start > node.start + 1 and text[start - 1] in " \t\r\n":
        start -= 1
    end, comma = item.end, _comma_after(text, item.end, node.end, comments)
    if comma is not None and text[item.end : comma].strip() == "":
        end = comma + 1
    splices: list[Splice] = [(start, text[start:end], "")]
    if index == len(node.items) - 1 and index > 0 and comma is None:
        before = _comma_after(text, node.items[index - 1].end, node.end, comments)
        assert before is not None
        splices.append((before, ",", ""))
    return splices
