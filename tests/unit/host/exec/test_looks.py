"""What a look at the kernel makes of a command that runs: certain at once, likely when it is seen twice."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.host.exec.monitor import Watching
from holdfast.model.sessions.activity import Activity

DRAWING = Activity("full_screen", "likely", "raw mode, and the cursor is placed by row and column")
MENU = Activity("menu", "likely", "python reads the terminal")
ASKS = Activity("waiting_for_input", "certain", "python reads a line")
RUNS = Activity("running", "certain", "python runs")


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        ([ASKS], ["waiting_for_input"]),
        ([MENU], []),
        ([MENU, MENU], ["menu"]),
        ([DRAWING, MENU, MENU], ["menu"]),  # it had drawn its menu, and did not read yet
        ([MENU, RUNS, MENU], []),
    ],
)
async def test_what_is_likely_is_told_when_it_is_seen_twice(seen: list[Activity], told: list[str]) -> None:
    left, states = iter(seen), []

    async def observe(session: Any, whole: bool) -> tuple[dict[str, Any], Activity]:
        return {}, next(left)

    command: Any = SimpleNamespace(session=None, suspected="", blocked_as="", answered_at=0.0)
    command.update = lambda state, prompt: states.append(state)
    for _ in seen:
        assert await Watching(observe)._look(command, 0) == 0
    assert states == told
