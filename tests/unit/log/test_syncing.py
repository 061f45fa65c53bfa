"""What is called durable was synced: in every segment, and by a disk that never refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.log import writer
from holdfast.log.layout import TERMINAL
from holdfast.log.writer import OutputLog


def flooded(folder: Path) -> OutputLog:
    """Three segments full between two syncs, and a fourth begun."""
    log = OutputLog(str(folder), 0, 100, 1 << 20)
    for n in range(35):
        log.add(TERMINAL, b"0123456789", n)
    return log


def test_segments_that_were_filled_since_the_last_sync_are_synced_too(tmp_path: Path) -> None:
    log = flooded(tmp_path / "out")
    names = [os.path.basename(path) for path in log.unsynced()]
    assert len(names) == 6
    assert sorted(names) == sorted(p.name for p in (tmp_path / "out").iterdir() if int(p.stem) < 300)
    log.durable = 250  # as a sync left it
    assert len(log.unsynced()) == 2
    log.durable = 350
    assert log.unsynced() == []
    log.close()


def test_closing_syncs_every_segment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = flooded(tmp_path / "out")
    synced, real = set[str](), os.fdatasync

    def fdatasync(fd: int) -> None:
        synced.add(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))
        real(fd)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    log.close()
    assert synced == {p.name for p in (tmp_path / "out").iterdir()}
    assert log.durable == log.end == 350


def test_after_a_sync_that_failed_nothing_more_is_called_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tells of bytes it could not write once: the next sync would succeed without them."""
    log = flooded(tmp_path / "out")
    log.durable = 200
    log.refused = True
    assert log.sync_targets() == (-1, -1)
    log.close()
    assert log.durable == 200


def test_a_segment_that_is_pruned_meanwhile_need_not_be_synced(tmp_path: Path) -> None:
    log = flooded(tmp_path / "out")
    paths = log.unsynced()
    os.unlink(paths[0])
    writer.sync_paths(paths)
    log.close()
    assert log.durable == log.end
