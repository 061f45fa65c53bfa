"""Fixtures of the tests by behaviour."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from holdfast.client.sync import Host
from tests.support.home import HomeForTests
from tests.support.postgres import Server


@pytest.fixture(params=["sqlite", "postgres"])
def host(request: pytest.FixtureRequest, hold: HomeForTests, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    """A host object whose work is kept in either store."""
    monkeypatch.delenv("HOLDFAST_STORE", raising=False)
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        monkeypatch.setenv("HOLDFAST_STORE", server.url())
        hold.env["HOLDFAST_STORE"] = os.environ["HOLDFAST_STORE"]
    with Host(str(hold.path)) as made:
        yield made
