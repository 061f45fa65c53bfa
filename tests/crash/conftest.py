"""Fixtures of the tests that kill."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

import pytest

from tests.support.postgres import Server


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """A new store of either kind."""
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        yield server.url()
        return
    # In memory where there is such a file system: a kill cannot tell, and thousands of flushes take minutes.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="hf-kill-", dir=memory) as folder:
        yield f"sqlite:///{folder}/work.db"
