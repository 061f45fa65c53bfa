"""Tokens that are made and ended at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.journal.ledger import Ledger
from holdfast.host.operators.operators import Operator, Operators
from holdfast.host.operators.tokens import Tokens
from holdfast.model.errors import HoldfastError

BOT = Operator("op_bot", "bot", "agent", "", "", 0.0, None)
HASH = "a" * 64


async def test_a_token_made_while_its_agents_tokens_are_ended_is_ended_as_well(tmp_path: Path) -> None:
    operators = Operators(Ledger(str(tmp_path / "host.db")), "hst_one", str(tmp_path))
    operators.by_id[BOT.id] = BOT
    tokens, written = Tokens(operators._ledger, operators), asyncio.Event()

    async def later(work: Any) -> None:
        await written.wait()

    making = asyncio.create_task(tokens.add(HASH, BOT, "op_ada", 1e12, later))
    await asyncio.sleep(0)
    ending = asyncio.create_task(tokens.end(BOT, later))
    await asyncio.sleep(0)
    written.set()
    await asyncio.wait_for(making, 30)
    assert await asyncio.wait_for(ending, 30) == 1
    with pytest.raises(HoldfastError):
        tokens.find(HASH, 0.0)
