"""The record of an isolated shell's command: whatever lies in its place, reading it neither hangs nor leads elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.host.exec.shell_record import read_record

TOKEN = "0123456789abcdef" * 2
RECORD = f"holdfast-exec 1 {TOKEN} 3 2\n/srv\nend {TOKEN}\n".encode()


def test_a_record_is_found_at_the_end_of_whatever_came_before(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(b"x" * 300_000 + b"\n" + RECORD)
    found = read_record(str(tmp_path / "r"))
    assert found is not None
    assert (found.exit_code, found.pid, found.cwd) == (3, 2, b"/srv")


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(RECORD)
    (tmp_path / "r").symlink_to(tmp_path / "elsewhere")
    assert read_record(str(tmp_path / "r")) is None


def test_a_pipe_with_nobody_behind_it_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "r")
    assert read_record(str(tmp_path / "r")) is None


def test_a_folder_and_a_missing_file_are_no_record(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    assert read_record(str(tmp_path / "r")) is None
    assert read_record(str(tmp_path / "missing")) is None


def test_a_file_of_a_terabyte_costs_one_small_read(tmp_path: Path) -> None:
    with open(tmp_path / "r", "wb") as f:
        f.truncate(1 << 40)
    assert read_record(str(tmp_path / "r")) is None
