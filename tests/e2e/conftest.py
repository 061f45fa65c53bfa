"""Fixtures of the tests by behaviour."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.client._sync.host import Host
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


@pytest.fixture
def shop(hold: HomeForTests, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the one project of a home: `shop`, with the phases `build` and `ship`."""
    for name in ("HOLDFAST_STORE", "HOLDFAST_PROJECT", "HOLDFAST_OPERATOR"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "shop"
    folder.mkdir()
    made = hold("project", "init", "shop", "--root", str(folder), "--phase", "build", "--phase", "ship")
    assert made.code == 0, made.err
    return folder
