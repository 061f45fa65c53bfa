"""A real ledger for the tests of the inbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from holdfast.host.journal.ledger import Ledger


@pytest_asyncio.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    made = Ledger(str(tmp_path / "host.db"))
    await made.open()
    yield made
    made.close()
