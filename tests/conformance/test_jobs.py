"""Workers find their runs by the same rules on both stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.testing.jobs import JobsSuite
from tests.support.postgres import Server


class TestSqlite(JobsSuite):
    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/work.db"


class TestPostgres(JobsSuite):
    @pytest.fixture
    def store_url(self, postgres: Server) -> str:
        return postgres.url()
