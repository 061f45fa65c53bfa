"""A home on a disk of a few megabytes, for what happens when it is full."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.home import HomeForTests


@contextmanager
def small_home(folder: Path, megabytes: int) -> Iterator[HomeForTests]:
    """`ballast` beside the home is the test's own to write, and gone before the home is closed."""
    small = folder / "small"
    small.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(small)]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("this machine mounts nothing")
    home = HomeForTests(small / "home")
    try:
        yield home
    finally:
        (small / "ballast").unlink(missing_ok=True)
        home.close()
        subprocess.run(["umount", "-l", str(small)], check=True)


def fill(home: HomeForTests) -> Path:
    """Not a byte is left of its disk until the file that this returns is removed."""
    ballast = home.path.parent / "ballast"
    try:
        with ballast.open("wb", buffering=0) as f:
            while True:
                f.write(bytes(512))
    except OSError:
        return ballast
