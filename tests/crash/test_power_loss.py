"""The machine loses power: what SQLite was told to keep is there when it is back. And a check that can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import powercut
from tests.support.soak import Rounds

pytestmark = pytest.mark.skipif(powercut.missing() is not None, reason=powercut.missing() or "")
_TIMEOUT_S = 110.0  # below the test's own; a cut takes a fifth of a second on an idle machine
_CUTS = 36


def cut(folder: Path, synchronous: str, cuts: int, seed: int, first: bool = False, longer: int = 1) -> powercut.Json:
    found = powercut.run(folder, synchronous, cuts, seed, longer * _TIMEOUT_S, first_loss=first)
    if "cannot" in found:
        pytest.skip(f"mounting is not allowed here: {found['cannot']}")
    assert "failed" not in found, found["failed"]
    return found


def test_nothing_acknowledged_is_lost_with_the_power(tmp_path: Path, rounds: Rounds) -> None:
    cuts = rounds.count(12)
    found = cut(tmp_path, "as-shipped", cuts, rounds.seed, longer=rounds.factor)
    assert (found["cuts"], found["lost"], found["damaged"]) == (cuts, [], [])
    assert found["acknowledged"] > cuts


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_a_store_that_does_not_flush_each_commit_is_caught(tmp_path: Path, synchronous: str) -> None:
    found = cut(tmp_path, synchronous, _CUTS, seed=2, first=True)
    assert found["lost"] or found["damaged"], found
