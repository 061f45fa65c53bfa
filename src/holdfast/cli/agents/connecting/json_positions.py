"""Parses JSON with the position of each value, so that an edit changes no other byte.

Comments and trailing commas are accepted where the file's reader accepts them. Pure.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEPTH_MAX = 200  # levels: a deeper file is not a configuration, and would reach Python's recursion limit
_SPACE = re.compile(r"[ \t\r\n]*")
_TRIVIA = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")


class BrokenError(ValueError):
    """The text is not valid JSON: what was expected, and in which line."""


class Node:
    """A value and its position; an object's members and an array's items are nodes too."""

    __slots__ = ("end", "items", "keys", "kind", "start", "value")

    def __init__(self, kind: str, start: int) -> None:
        self.kind, self.start, self.end = kind, start, start
        self.value: Any = None
        self.items: list[Node] = []
        self.keys: list[tuple[str, int]] = []  # of an object: each item's name, and where the name begins

    def member(self, key: str) -> Node | None:
        """The effective member: of duplicate names, readers take the last."""
        found = [item for (name, _), item in zip(self.keys, self.items, strict=True) if name == key]
        return found[-1] if found else None

    def begins(self, index: int) -> int:
        return self.keys[index][1] if self.kind == "object" else self.items[index].start


def scan(text: str, comments: bool) -> Node:
    """The whole text as nodes; raises BrokenError."""
    scanner = _Scanner(text, comments)
    at = scanner.skip(1 if text.startswith("\ufeff") else 0)
    node = scanner.value(at, 0)
    at = scanner.skip(node.end)
    if at != len(text):
        raise scanner.broken(at, "nothing more")
    return node


class _Scanner:
    def __init__(self, text: str, comments: bool) -> None:
        self.text, self.comments = text, comments
        self._trivia = _TRIVIA if comments else _SPACE

    def skip(self, at: int) -> int:
        found = self._trivia.match(self.text, at)
        return found.end() if found else at

    def broken(self, at: int, wanted: str) -> BrokenError:
        line = self.text.count("\n", 0, at) + 1
        seen = self.text[at : at + 12].split("\n")[0]
        return BrokenError(f"line {line}: {wanted} expected" + (f", not {seen!r}" if seen else ""))

    def value(self, at: int, depth: int) -> Node:
        if depth > DEPTH_MAX:
            raise self.broken(at, f"at most {DEPTH_MAX} levels")
        first = self.text[at : at + 1]
        if first == "{":
            return self._container(Node("object", at), "}", depth)
        if first == "[":
            return self._container(Node("array", at), "]", depth)
        found = _STRING.match(self.text, at) if first == '"' else _PLAIN.match(self.text, at)
        if not found:
            raise self.broken(at, "a value")
        node = Node("string" if first == '"' else "plain", at)
        node.end = found.end()
        node.value = self._plain(found.group(), at)
        return node

    def _plain(self, source: str, at: int) -> Any:
        try:
            return json.loads(source)
        except ValueError:
            raise self.broken(at, "a value") from None

    def _container(self, node: Node, close: str, depth: int) -> Node:
        at = self.skip(node.start + 1)
        while self.text[at : at + 1] != close:
            if node.kind == "object":
                name = _STRING.match(self.text, at)
                if not name:
                    raise self.broken(at, f"a name or {close!r}")
                node.keys.append((self._plain(name.group(), at), at))
                at = self.skip(name.end())
                if self.text[at : at + 1] != ":":
                    raise self.broken(at, "':'")
                at = self.skip(at + 1)
            item = self.value(at, depth + 1)
            node.items.append(item)
            at = self.skip(item.end)
            if self.text[at : at + 1] == ",":
                at = self.skip(at + 1)
                if self.text[at : at + 1] == close and not self.comments:
                    raise self.broken(at, "another value")
            elif self.text[at : at + 1] != close:
                raise self.broken(at, f"',' or {close!r}")
        node.end = at + 1
        values = [i.value for i in node.items]
        node.value = values if node.kind == "array" else {k: v for (k, _), v in zip(node.keys, values, strict=True)}
        return node
