"""A host that begins while its forerunner's processes are still going."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.host import daemon
from holdfast.host.daemon import clean_roles, take_lock
from holdfast.model.home import Home
from holdfast.system import kernel
from tests.support.home import until

DEADLINE_S = 60.0


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


def test_a_host_that_is_being_started_is_a_role_before_it_serves_and_none_where_another_one_does(
    tmp_path: Path,
) -> None:
    """So that the session it was started from is not ended with it, nor it with the session."""
    home = Home(str(tmp_path))
    lock = take_lock(home)  # another daemon's, which has no socket yet: this one waits for what becomes of that
    reading, ready = os.pipe()
    entry = Path(daemon.__file__).with_name("__main__.py")
    started = subprocess.Popen([sys.executable, "-I", str(entry), home.path, str(ready)], pass_fds=[ready])
    try:
        os.close(ready)
        assert started.wait(DEADLINE_S) == 0  # it left its starter
        ((pid, since),) = until(lambda: kernel.registered(home.roles), timeout=DEADLINE_S)
        assert kernel.start_time(pid) == since
        Path(home.socket).touch()  # now the other one serves
        assert os.read(reading, 16) == b"there"
        until(lambda: not kernel.registered(home.roles), timeout=DEADLINE_S)
        until(lambda: kernel.start_time(pid) != since, timeout=DEADLINE_S)
    finally:
        os.close(reading)
        os.close(lock)
