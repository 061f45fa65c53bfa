"""A keeper holds what its session needs, and nothing that the zygote left open."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.ownkeeper import OwnKeeper


def test_a_keeper_inherits_no_file_of_the_rehearsal(tmp_path: Path) -> None:
    with OwnKeeper(tmp_path, "sleep", "600") as keeper:
        folder = f"/proc/{keeper.pid}/fd"
        held = [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)]
    assert [path for path in held if "rehearsal" in path] == []
