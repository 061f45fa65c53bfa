"""What changed in a folder since a time, within limits that are told."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from holdfast.client.files import changed_since
from tests.support.home import until


def _later(path: Path) -> float:
    """A time after all that is in a folder: clocks of file systems are coarse."""
    mark = path / "mark"
    mark.touch()
    at = mark.stat().st_ctime

    def passed() -> bool:
        mark.touch()
        return mark.stat().st_ctime > at

    until(passed, 30)
    found = mark.stat().st_ctime
    mark.unlink()
    return found


def test_only_what_changed_since_is_told_and_no_program_sets_that_back(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (work / "old").write_text("x")
    (work / "sub/edited").write_text("x")
    since = _later(work)
    (work / "sub/edited").write_text("xyz")
    (work / "new").write_text("12")
    os.utime(work / "new", (0, 0))  # the time that programs may set says 1970
    found = changed_since.changed(str(work), since, str(tmp_path / "home"))
    assert {(f["path"], f["size"]) for f in found["files"]} == {("new", 2), ("sub/edited", 3)}
    assert found["whole"]


def test_caches_the_home_and_links_out_are_not_entered(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    outside.mkdir(parents=True)
    (outside / "secret").touch()
    for name in (".git", "node_modules", "home"):
        (work / name).mkdir(parents=True)
        (work / name / "file").touch()
    (work / "link").symlink_to(outside)
    (work / b"odd\xff".decode("utf-8", "surrogateescape")).touch()
    found = changed_since.changed(str(work), 0.0, str(work / "home"))
    assert [f["path"] for f in found["files"]] == ["odd\\xff"]


def test_a_large_folder_is_cut_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(30):
        (tmp_path / f"d{n}").mkdir()
        (tmp_path / f"d{n}" / "file").touch()
    monkeypatch.setattr(changed_since, "FOLDER_TOLD_MAX", 5)
    found = changed_since.changed(str(tmp_path), 0.0, "/nowhere")
    assert (len(found["files"]), found["whole"]) == (5, False)
    monkeypatch.setattr(changed_since, "FOLDER_LOOKED_MAX", 10)
    assert changed_since.changed(str(tmp_path), 0.0, "/nowhere")["whole"] is False
    assert changed_since.changed(str(tmp_path / "gone"), time.time(), "/nowhere") | {"since": ""} == {
        "root": str(tmp_path / "gone"),
        "since": "",
        "files": [],
        "whole": True,
        "skipped": sorted(changed_since.SKIPPED),
    }


def test_one_folder_of_very_many_files_is_cut_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(30):
        (tmp_path / f"f{n}").touch()
    looks: list[str] = []

    class Entry:
        """Counts how many files are looked at."""

        def __init__(self, entry: os.DirEntry[str]) -> None:
            self.name, self.path, self._entry = entry.name, entry.path, entry

        def stat(self, *, follow_symlinks: bool) -> os.stat_result:
            looks.append(self.name)
            return self._entry.stat(follow_symlinks=follow_symlinks)

    entries = changed_since._entries
    monkeypatch.setattr(changed_since, "_entries", lambda path: map(Entry, entries(path)))
    monkeypatch.setattr(changed_since, "FOLDER_LOOKED_MAX", 10)
    found = changed_since.changed(str(tmp_path), 0.0, "/nowhere")
    assert (len(looks), len(found["files"]), found["whole"]) == (10, 10, False)
    monkeypatch.setattr(changed_since, "FOLDER_LOOKED_MAX", 30)
    assert changed_since.changed(str(tmp_path), 0.0, "/nowhere")["whole"] is True
    monkeypatch.setattr(changed_since, "FOLDER_LOOK_S", 0.0)
    assert changed_since.changed(str(tmp_path), 0.0, "/nowhere") | {"since": ""} == {
        "root": str(tmp_path),
        "since": "",
        "files": [],
        "whole": False,
        "skipped": sorted(changed_since.SKIPPED),
    }
