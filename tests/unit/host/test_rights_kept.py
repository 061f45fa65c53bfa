"""What an operator may do is looked up once, by several threads; a change holds from its moment on for all of them."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from holdfast.host.journal.ledger import Ledger
from holdfast.host.operators.caller import Identities
from holdfast.host.operators.operators import Operator, Operators
from holdfast.model.home import Home
from holdfast.model.operators import grants
from holdfast.model.operators.grants import Grant

ADA = Operator("op_ada", "ada", "human", "", "hst_one", 0.0, None)


async def no_commit(work: Any) -> None:
    """The change is in memory before it is written; here it is not written."""


@pytest.fixture
async def operators(tmp_path: Path) -> Operators:
    """Ada, the first human, with the root grant."""
    found = Operators(Ledger(str(tmp_path / "host.db")), "hst_one", str(tmp_path))
    found.first = ADA.id
    found.by_id[ADA.id] = Operator("op_ada", "ada", "human", "", "hst_one", 0.0, None)
    found.grants["grt_root"] = root(None)
    return found


def root(until: float | None) -> Grant:
    return Grant(
        id="grt_root",
        operator=ADA.id,
        parent=None,
        verbs=grants.VERBS,
        sessions=["*"],
        until=until,
        depth=3,
        by="hst_one",
        at=0.0,
    )


async def test_who_may_work_is_known_until_the_grant_is_revoked(operators: Operators) -> None:
    now = time.time()
    assert operators.worker(ADA.id, now) == "ada"
    assert operators.worker("op_nobody", now) is None
    await operators.revoke_grant(operators.grants["grt_root"], ADA.id, no_commit)
    assert operators.worker(ADA.id, now) is None


async def test_who_may_work_is_known_until_the_operator_is_revoked(operators: Operators) -> None:
    assert operators.worker(ADA.id, time.time()) == "ada"
    await operators.revoke_operator(operators.by_id[ADA.id], no_commit)
    assert operators.worker(ADA.id, time.time()) is None


async def test_who_may_work_is_known_until_the_grant_ends(operators: Operators) -> None:
    operators.grants["grt_root"] = root(until=1000.0)
    assert operators.worker(ADA.id, 999.0) == "ada"
    assert operators.worker(ADA.id, 1000.0) is None


@pytest.mark.parametrize("asked", ["chains", "worker"])
async def test_a_look_that_was_overtaken_by_a_revocation_does_not_put_the_right_back(
    operators: Operators, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    """A thread looked the chains up, the loop revoked one, and then the thread kept what it had found, for good."""
    plain = grants.chain_of

    def overtaken(grant: Grant, *rest: Any) -> Any:
        found = plain(grant, *rest)
        monkeypatch.setattr(grants, "chain_of", plain)
        operators.revoked[grant.id] = 1.0  # as `revoke_grant` does it
        operators._changes += 1
        return found

    monkeypatch.setattr(grants, "chain_of", overtaken)
    if asked == "chains":
        assert operators.chains(ADA.id)  # it began before
    else:
        operators.worker(ADA.id, time.time())
    assert operators.chains(ADA.id) == []
    assert operators.worker(ADA.id, time.time()) is None


async def test_a_look_into_grants_that_change_meanwhile_is_left_to_the_loop_and_costs_nobody_the_connection(
    operators: Operators, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = SimpleNamespace(inside=None, proven=None)
    identities = Identities(Home(str(tmp_path)), cast(Any, None), operators, lambda: None)
    assert identities.worker(cast(Any, peer)) == "ada"

    def changing(*_: Any) -> Any:
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr(operators, "worker", changing)
    assert identities.worker(cast(Any, peer)) is None
