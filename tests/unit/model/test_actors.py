"""Who did what, in a few words."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.model.actors import label

ADA = {"operator": "op_1", "operator_kind": "human", "name": "ada"}
BOT = {"operator": "op_2", "kind": "agent", "name": "bot"}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"kind": "input", **ADA}, "ada (human) typed"),
        ({"kind": "input", "what": "answer", **ADA}, "ada (human) answered the prompt"),
        ({"kind": "preempt", "from": BOT, **ADA}, "ada (human) took over from bot (agent)"),
        ({"kind": "take", "from": None, **ADA}, "ada (human) took the controls"),
        ({"kind": "hand", "to": BOT, "note": "your turn", **ADA}, "ada (human) handed the controls to bot (agent): your turn"),
        ({"kind": "signal", "signal": "SIGINT", **ADA}, "ada (human) sent SIGINT"),
        ({"kind": "exec", "why": "deploy", **ADA}, "ada (human) ran a command: deploy"),
        ({"kind": "expire"}, "the controls became free"),
        ({"kind": "resize", **ADA}, None),
        ({"kind": "ended"}, None),
        ({"kind": "input"}, None),
    ],
)  # fmt: skip
def test_an_entry_reads_as_a_few_words(entry: dict[str, Any], words: str | None) -> None:
    assert label(entry) == words
