"""Pure tests: they start no process and open no connection, so thousands of them run in seconds (`make quick`).

Pure is every unit test of a package that does no IO itself; a test there that starts something is marked `process`.
Elsewhere a file marks itself `pure`. A pure test that does start something fails, and says so.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_UNIT = Path(__file__).parents[1] / "unit"
PACKAGES = [_UNIT / name for name in ("api", "delta", "model", "term", "wire", "work")]
_REFUSED = frozenset(
    [
        "os.fork",
        "os.forkpty",
        "os.posix_spawn",
        "os.exec",
        "subprocess.Popen",
        "socket.bind",
        "socket.connect",
        "sqlite3.connect",
    ]
)

_running = False


class NotPure(BaseException):
    """Not an Exception: code under test must not take it for a refusal of the operating system."""


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    if _running and event in _REFUSED:
        raise NotPure(f"a pure test does {event}: mark it pytest.mark.process")


def mark(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("process") is None and any(p in item.path.parents for p in PACKAGES):
            item.add_marker("pure")
    if any(item.get_closest_marker("pure") for item in items):
        sys.addaudithook(_look)  # cannot be taken away again; it costs nothing where no test is pure


@pytest.fixture(autouse=True)
def _pure(request: pytest.FixtureRequest) -> Iterator[None]:
    global _running
    _running = request.node.get_closest_marker("pure") is not None
    yield
    _running = False
