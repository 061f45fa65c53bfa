"""Shells for the tests in this folder, each ended with its test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.ptyshell import PtyShell


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., PtyShell]]:
    """`start("bash", rc=…)`: an interactive shell at its prompt, in a folder of its own."""
    with ExitStack() as stack:
        yield lambda shell, **options: stack.enter_context(PtyShell(shell, tmp_path, **options))
