"""Which calls lengthen a run's log, and by about how much: what a checkpoint by the log's length is counted by."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.work.checkpoints.ops import grown


@pytest.mark.parametrize(
    ("name", "args", "size"),
    [
        ("log_append", {"body": "abcd"}, 4),
        ("memory_append", {"message": "abc"}, 3),
        ("memory_set", {"name": "a", "value": "12345"}, 5),
        ("memory_set", {"name": "a"}, 0),
        ("step_begin", {"key": "k"}, 0),
        ("artifact_put", {"name": "a", "why": "asked for"}, 9),
        ("artifact_put", {"name": "a"}, None),
        ("artifact_rm", {"name": "a", "why": "old"}, 3),
        ("artifact_rm", {"name": "a", "why": None}, None),
        ("run_status", {}, None),
        ("nosuch", {}, None),
    ],
)
def test_a_call_that_adds_to_the_log_is_counted(name: str, args: dict[str, Any], size: int | None) -> None:
    assert grown(name, {"run": "r", **args}) == size
