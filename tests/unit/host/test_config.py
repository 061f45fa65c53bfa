"""config.toml as the host reads it: at once when it changes, and strictly when it is wrong."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.host.config import SettingsFile
from holdfast.model.config_toml import Settings
from holdfast.model.home import Home


def test_a_change_is_seen_at_the_next_use_and_told_once(tmp_path: Path) -> None:
    heard: list[Settings] = []
    file = SettingsFile(Home(str(tmp_path)), heard.append)
    assert (file.current().rules, len(heard)) == ([], 1)
    file.current()
    assert len(heard) == 1
    config = tmp_path / "config.toml"
    config.write_text('[[approve]]\npattern = "a"\n')
    assert [r.pattern for r in file.current().rules] == ["a"]
    before = config.stat()
    config.write_text('[[approve]]\npattern = "b"\n')
    os.utime(config, ns=(before.st_atime_ns, before.st_mtime_ns + 1))  # as fast a change as the clock can tell
    assert [r.pattern for r in file.current().rules] == ["b"]
    config.unlink()
    assert file.current().rules == []
    assert len(heard) == 4


def test_what_cannot_be_read_is_broken_not_empty(tmp_path: Path) -> None:
    file = SettingsFile(Home(str(tmp_path)), lambda settings: None)
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe")
    assert file.current().broken is not None
    (tmp_path / "config.toml").write_text("#" * (2 << 20))
    assert file.current().broken is not None
    (tmp_path / "config.toml").unlink()
    (tmp_path / "config.toml").mkdir()
    assert file.current().broken is not None
    (tmp_path / "config.toml").rmdir()
    (tmp_path / "config.toml").write_text('[[approve]]\npattern = "("\n')
    assert file.current().broken is not None


def test_a_pattern_is_re2_over_bytes(tmp_path: Path) -> None:
    file = SettingsFile(Home(str(tmp_path)), lambda settings: None)
    (tmp_path / "config.toml").write_text("[[approve]]\npattern = '(?i)drop\\s+table'\n")
    (rule,) = file.current().rules
    assert rule.matcher.search(b"echo 'DROP  table x' \xff")
    assert not rule.matcher.search(b"echo drop")
