"""Browsers and tokens that are let in and ended at the same time."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.ledger import Ledger
from holdfast.host.logins import Logins
from holdfast.host.operators import Operator, Operators
from holdfast.host.tokens import Tokens
from holdfast.model.errors import HoldfastError

ADA = Operator("op_ada", "ada", "human", "", "", 0.0, None)
BOT = Operator("op_bot", "bot", "agent", "", "", 0.0, None)
LINK, LOGIN = "a" * 64, "b" * 64


async def done(work: Any) -> None:
    """Written down at once."""


async def test_who_comes_in_while_everybody_is_put_out_is_put_out_as_well(tmp_path: Path) -> None:
    """Both are on their way to the disk: first the login, then the end of all that are there."""
    operators = Operators(Ledger(str(tmp_path / "host.db")), "hst_one", str(tmp_path))
    operators.by_id[ADA.id] = ADA
    logins, written = Logins(operators._ledger, operators), asyncio.Event()

    async def later(work: Any) -> None:
        await written.wait()

    await logins.add(LINK, ADA, done)
    coming = asyncio.create_task(logins.use(LINK, LOGIN, later))
    await asyncio.sleep(0)
    ending = asyncio.create_task(logins.end(None, later))
    await asyncio.sleep(0)
    written.set()
    await asyncio.wait_for(coming, 30)
    assert await asyncio.wait_for(ending, 30) == 1
    with pytest.raises(HoldfastError, match="not logged in"):
        logins.check(LOGIN, 0.0)


async def test_a_token_made_while_its_agents_tokens_are_ended_is_ended_as_well(tmp_path: Path) -> None:
    operators = Operators(Ledger(str(tmp_path / "host.db")), "hst_one", str(tmp_path))
    operators.by_id[BOT.id] = BOT
    tokens, written = Tokens(operators._ledger, operators), asyncio.Event()

    async def later(work: Any) -> None:
        await written.wait()

    making = asyncio.create_task(tokens.add(LINK, BOT, ADA.id, 1e12, later))
    await asyncio.sleep(0)
    ending = asyncio.create_task(tokens.end(BOT, later))
    await asyncio.sleep(0)
    written.set()
    await asyncio.wait_for(making, 30)
    assert await asyncio.wait_for(ending, 30) == 1
    with pytest.raises(HoldfastError):
        tokens.find(LINK, 0.0)
