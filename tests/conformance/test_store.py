"""Both stores keep what every store promises, and the work plane keeps its rules on both."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.testing.by_hand import ByHandSuite
from holdfast.testing.store import StoreSuite
from holdfast.testing.work import WorkSuite
from tests.support.postgres import Server


class TestSqlite(StoreSuite, WorkSuite, ByHandSuite):
    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/work.db"


class TestPostgres(StoreSuite, WorkSuite, ByHandSuite):
    @pytest.fixture
    def store_url(self, postgres: Server) -> str:
        return postgres.url()
