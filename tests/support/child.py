"""A child process that is ended with the test, however the test ends."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def running(argv: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(argv, **options) as process:
        try:
            yield process
        finally:
            process.kill()


def ended() -> int:
    """The pid of a process that is gone."""
    with subprocess.Popen(["true"]) as process:
        pass
    return process.pid
