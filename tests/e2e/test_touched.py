"""The files that a session has to do with: open now, noted by attempts, changed in its folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console import Browser
from tests.support.home import HomeForTests
from tests.support.runners import Project
from tests.support.web import serve


def test_open_files_and_what_changed_in_the_folder_are_told_apart(hold: HomeForTests, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "before").touch()
    browser = Browser(hold, serve(hold))
    session = hold.run("bash", "-c", "exec 3>held; echo x > made; echo ready; sleep 600", cwd=str(folder))
    assert session.wait(text="ready", timeout=60).event != "timeout"
    found = browser.get(f"/api/sessions/{session.id}/touched")
    assert [f["path"] for f in found["open"] if f["kind"] == "file"] == [str(folder / "held")]
    assert {"held", "made"} <= {f["path"] for f in found["folder"]["files"]}
    assert found["folder"]["root"] == str(folder)
    assert found["noted"] == []
    browser.close()


def test_what_an_attempt_changed_is_told_of_the_session_it_ran_in(
    hold: HomeForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)
    project = Project(hold, tmp_path)
    (project.root / "old.txt").write_text("old")
    (project.root / "gone.txt").write_text("gone")
    project.backend("edits", "echo new > made.txt; echo more >> old.txt; rm gone.txt")
    project.add("1", verification=["test -e made.txt"], backend="edits")
    project.run_once()
    used = project.show()["sessions"][0]["session"]
    browser = Browser(hold, serve(hold))
    (noted,) = browser.get(f"/api/sessions/{used}/touched")["noted"]
    assert (noted["task"], noted["attempt"]) == ("demo/1", 1)
    assert (noted["created"], noted["changed"], noted["deleted"]) == (["made.txt"], ["old.txt"], ["gone.txt"])
    browser.close()
    project.close()
