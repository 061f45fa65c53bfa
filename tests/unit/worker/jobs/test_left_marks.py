"""Marks of workers that could not tell that they left."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.worker.jobs import left_marks


def test_a_mark_is_seen_for_a_week_and_a_home_without_one_has_none(tmp_path: Path) -> None:
    home = str(tmp_path / "home")
    assert left_marks.marks(home, 1e9) == []
    left_marks.mark(home, "p1")
    left_marks.mark(home, "p2")
    for name, at in (("p1", 1000), ("p2", 2000)):
        os.utime(tmp_path / "home" / "left" / name, (at, at))
    assert left_marks.marks(home, 3000.0) == ["p1", "p2"]
    assert left_marks.marks(home, 1500.0 + 7 * 86400) == ["p2"]
    assert os.listdir(tmp_path / "home" / "left") == ["p2"]


def test_a_home_that_cannot_be_written_keeps_nobody_from_leaving(tmp_path: Path) -> None:
    (tmp_path / "left").write_text("a file")
    left_marks.mark(str(tmp_path), "p1")
    assert left_marks.marks(str(tmp_path), 0.0) == []
