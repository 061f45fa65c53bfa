"""Open files with offsets and locks, of this very process and its children."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.observe.open_files import open_files
from tests.support.child import ended, running


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def entry(fd: int, pid: int | None = None) -> dict[str, Any] | None:
    pid = pid or os.getpid()
    return next((row for row in open_files([pid]).files if row["fd"] == fd), None)


def test_a_file_has_its_path_and_offset(tmp_path: Path, stack: ExitStack) -> None:
    path = tmp_path / "data"
    file = stack.enter_context(path.open("wb", buffering=0))
    file.write(b"x" * 1234)
    assert entry(file.fileno()) == {
        "pid": os.getpid(),
        "fd": file.fileno(),
        "path": str(path),
        "kind": "file",
        "offset": 1234,
        "lock": None,
    }


def test_a_deleted_file_is_still_listed(tmp_path: Path, stack: ExitStack) -> None:
    file = stack.enter_context((tmp_path / "data").open("wb"))
    (tmp_path / "data").unlink()
    found = entry(file.fileno())
    assert found is not None
    assert found["path"].endswith("data (deleted)")


def test_pipes_sockets_and_terminals_are_told_apart(tmp_path: Path, stack: ExitStack) -> None:
    reading, writing = os.pipe()
    stack.callback(os.close, reading)
    stack.callback(os.close, writing)
    sock = stack.enter_context(socket.socket())
    master, slave = pty.openpty()
    stack.callback(os.close, master)
    stack.callback(os.close, slave)
    os.mkfifo(tmp_path / "fifo")
    fifo = os.open(tmp_path / "fifo", os.O_RDWR)
    stack.callback(os.close, fifo)
    null = os.open("/dev/null", os.O_RDONLY)
    stack.callback(os.close, null)
    kinds = {row["fd"]: (row["kind"], row["offset"]) for row in open_files([os.getpid()]).files}
    assert kinds[reading] == kinds[writing] == kinds[fifo] == ("pipe", None)
    assert kinds[sock.fileno()] == ("socket", None)
    assert kinds[slave] == kinds[master] == ("tty", None)
    assert kinds[null] == ("file", 0)


def test_descriptors_with_nothing_behind_them_are_left_out(stack: ExitStack) -> None:
    poll = stack.enter_context(select.epoll())
    assert entry(poll.fileno()) is None


def flock_shared(fd: int) -> None:
    fcntl.flock(fd, fcntl.LOCK_SH)


def flock_exclusive(fd: int) -> None:
    fcntl.flock(fd, fcntl.LOCK_EX)


def posix_read(fd: int) -> None:
    fcntl.lockf(fd, fcntl.LOCK_SH, 10, 5)


def posix_write(fd: int) -> None:
    fcntl.lockf(fd, fcntl.LOCK_EX)


def posix_both(fd: int) -> None:
    fcntl.lockf(fd, fcntl.LOCK_EX, 10, 0)
    fcntl.lockf(fd, fcntl.LOCK_SH, 10, 100)


def open_file_description(fd: int) -> None:
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))


def lease(fd: int) -> None:
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)


@pytest.mark.parametrize(
    ("take", "expected"),
    [
        (flock_shared, "read"),
        (flock_exclusive, "write"),
        (posix_read, "read"),
        (posix_write, "write"),
        (posix_both, "write"),
        (open_file_description, "write"),
        (lease, None),
    ],
)
def test_a_lock_is_shown_on_the_descriptor_it_was_taken_through(
    tmp_path: Path, stack: ExitStack, take: Any, expected: str | None
) -> None:
    path = tmp_path / "data"
    path.touch()
    locked = stack.enter_context(path.open("r+b"))
    take(locked.fileno())
    found = entry(locked.fileno())
    assert found is not None
    assert found["lock"] == expected
    if expected is not None:  # a second open of a leased file would have to wait
        plain = stack.enter_context(path.open("r+b"))
        found = entry(plain.fileno())
        assert found is not None
        assert found["lock"] is None


def test_a_lock_that_is_only_waited_for_is_not_held(tmp_path: Path, stack: ExitStack) -> None:
    held = stack.enter_context((tmp_path / "lock").open("w"))
    fcntl.flock(held, fcntl.LOCK_EX)
    source = "import fcntl, sys; f = open('lock'); print(f.fileno(), flush=True); fcntl.flock(f, fcntl.LOCK_EX)"
    command = [sys.executable, "-c", source]
    with running(command, cwd=tmp_path, stdout=subprocess.PIPE) as waiting:
        assert waiting.stdout is not None
        fd = int(waiting.stdout.readline())
        while b" " + str(waiting.pid).encode() + b" " not in Path("/proc/locks").read_bytes():
            assert waiting.poll() is None  # it appears in the table of waiters
        found = entry(fd, waiting.pid)
        assert found is not None
        assert (found["path"], found["lock"]) == (str(tmp_path / "lock"), None)


def test_more_files_than_the_limit_are_said_to_be_cut() -> None:
    whole = open_files([os.getpid()])
    assert not whole.truncated
    cut = open_files([os.getpid()], limit=2)
    assert cut == (whole.files[:2], True)


def test_the_dead_have_no_files() -> None:
    assert open_files([ended(), 0x7FFFFFFE]) == ([], False)
