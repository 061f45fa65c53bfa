"""Browsers come in and are put out: in whatever order that happens, nobody stays who was put out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.host.operators import browser_logins
from holdfast.host.operators.browser_logins import Logins
from holdfast.model.errors import HoldfastError

LINK, LOGIN = "a" * 64, "b" * 64


def person(name: str) -> Any:
    return SimpleNamespace(id=f"op_{name}", name=name, kind="human", revoked_at=None)


def made(*people: Any) -> Logins:
    operators = SimpleNamespace(first=people[0].id, by_id={one.id: one for one in people})
    return Logins(cast("Any", None), cast("Any", operators))


async def at_once(work: Callable[[Any], Any]) -> None:
    """Written down, as far as anybody here can tell."""


def in_a_while(gate: asyncio.Event) -> Any:
    async def commit(work: Callable[[Any], Any]) -> None:
        await gate.wait()

    return commit


async def _put_out(known: Logins, coming: Any, gate: asyncio.Event) -> None:
    """Everybody is logged out while `coming` is being written down."""
    first = asyncio.ensure_future(coming)
    await asyncio.sleep(0)
    everybody = asyncio.ensure_future(known.end(None, at_once))
    for _ in range(5):
        await asyncio.sleep(0)
    gate.set()
    await asyncio.wait_for(asyncio.gather(first, everybody), 30)


async def test_a_browser_that_comes_in_while_all_are_put_out_is_out() -> None:
    ada, gate = person("ada"), asyncio.Event()
    known = made(ada)
    await known.add(LINK, ada, at_once)
    await _put_out(known, known.use(LINK, LOGIN, in_a_while(gate)), gate)
    with pytest.raises(HoldfastError, match="not logged in"):
        known.check(LOGIN, 0.0)


async def test_a_link_that_is_made_while_all_are_put_out_is_over() -> None:
    ada, gate = person("ada"), asyncio.Event()
    known = made(ada)
    await _put_out(known, known.add(LINK, ada, in_a_while(gate)), gate)
    with pytest.raises(HoldfastError, match="is over"):
        await known.use(LINK, LOGIN, at_once)


async def test_one_persons_links_leave_room_for_those_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_logins, "LOGINS_MAX", 2)
    ada, bob = person("ada"), person("bob")
    known = made(ada, bob)
    for n in range(2):
        await known.add(f"{n:064}", bob, at_once)
    with pytest.raises(HoldfastError, match="of bob are known"):
        await known.add("2" * 64, bob, at_once)
    await known.add(LINK, ada, at_once)
    await known.use(LINK, LOGIN, at_once)
    assert known.check(LOGIN, 0.0)[0] is ada
