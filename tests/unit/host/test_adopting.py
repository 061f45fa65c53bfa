"""Sessions that a new host finds on disk."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import pytest

from holdfast.host.sessions import late_start
from holdfast.host.sessions.registry import Registry
from holdfast.host.sessions.zygote import Zygote
from holdfast.model.home import Home
from holdfast.system.atomic_files import write_json
from tests.support.home import until_async


async def test_a_start_that_is_taken_in_the_moment_it_is_looked_for_is_not_told_as_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody held its lock, then nobody was on the way any more: in between it became somebody's."""
    home = Home(str(tmp_path))
    folder = home.session("ses_late")
    os.makedirs(folder.path)
    os.makedirs(home.roles)
    manifest = {
        "id": "ses_late",
        "name": "late",
        "generation": 1,
        "token": "t",
        "size": [80, 24],
        "kind": "terminal",
        "cwd": "/",
        "command": ["cat"],
        "env": {},
        "created_at": 1.0,
        "started_at": 1.0,
        "started_by": "op_a",
        "acts_as": "op_a",
        "restart": "never",
        "idle_ttl_s": None,
    }
    write_json(folder.manifest, manifest)
    lock = os.open(folder.keeper_lock, os.O_RDWR | os.O_CREAT, 0o600)
    looked = late_start.on_its_way

    def taken(roles: str, zygote: int | None) -> list[tuple[int, int]]:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return looked(roles, zygote)

    monkeypatch.setattr(late_start, "on_its_way", taken)
    registry = Registry(home, Zygote(home.roles), lambda session, event: None, lambda session: None)
    try:
        await registry.adopt_all()
        session = registry.sessions["ses_late"]
        assert (session.state, session.unreachable) == ("live", True)
    finally:
        os.close(lock)
    await until_async(lambda: session.reach is None, timeout=60)
    assert session.state == "lost"  # whoever had it is gone
