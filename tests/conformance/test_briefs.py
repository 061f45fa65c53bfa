"""Claims, briefs, reports and retention give the same answers on both stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.testing.briefs import BriefsSuite
from tests.support.postgres import Server


class TestSqlite(BriefsSuite):
    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/work.db"


class TestPostgres(BriefsSuite):
    @pytest.fixture
    def store_url(self, postgres: Server) -> str:
        return postgres.url()
