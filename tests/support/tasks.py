"""Tasks for tests: a command that must work, and what one line of refusal looks like."""

from __future__ import annotations

from typing import Any

from tests.support.home import HomeForTests

Json = dict[str, Any]


def ok(hold: HomeForTests, *words: str) -> Json:
    """What a command says with --json; it must succeed."""
    done = hold(words[0], "--json", *words[1:])
    assert done.code == 0, done.out + done.err
    found: Json = done.json
    return found


def one_line(text: str) -> bool:
    return text.startswith("hold: ") and text.count("\n") == 1 and "Traceback" not in text
