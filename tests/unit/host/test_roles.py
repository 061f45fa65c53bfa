"""A host that begins while its forerunner's processes are still going."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.host.daemon import clean_roles
from holdfast.system import kernel


def test_a_registration_that_goes_while_it_is_looked_at_stops_no_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("999999991.1", "999999992.2"):
        (tmp_path / name).touch()
    mine = Path(kernel.register(str(tmp_path)))
    real = kernel.start_time

    def ending(pid: int) -> int:
        if pid == 999999991:  # a zygote whose host was killed takes its own away, and is gone
            (tmp_path / "999999991.1").unlink()
        return real(pid)

    monkeypatch.setattr(kernel, "start_time", ending)
    clean_roles(str(tmp_path))
    assert os.listdir(tmp_path) == [mine.name]
