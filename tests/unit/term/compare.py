"""Where two screen descriptions differ, by path."""

from __future__ import annotations

from typing import Any

from holdfast.term.screen import Screen


def differences(expected: Any, actual: Any, path: str = "") -> list[str]:
    if isinstance(expected, dict) and isinstance(actual, dict):
        keys = sorted(expected.keys() | actual.keys())
        return [line for key in keys for line in differences(expected.get(key), actual.get(key), f"{path}/{key}")]
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        return [line for index, (a, b) in pairs for line in differences(a, b, f"{path}/{index}")]
    return [] if expected == actual else [f"{path}: expected {expected!r}, got {actual!r}"]


def assert_same(expected: Screen, actual: Screen, when: str) -> None:
    found = differences(expected.dump(), actual.dump())
    assert not found, "\n".join([when, *found[:20]])


def restored(screen: Screen) -> Screen:
    """A new screen that was drawn from what `restore` gives."""
    copy = Screen(*screen.size)
    copy.feed(screen.restore())
    return copy
