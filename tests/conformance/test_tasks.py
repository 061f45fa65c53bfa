"""Tasks keep their rules on both stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.testing.task_attempts import TaskLivesSuite
from holdfast.testing.tasks import TasksSuite
from tests.support.postgres import Server


class TestSqlite(TasksSuite, TaskLivesSuite):
    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/work.db"


class TestPostgres(TasksSuite, TaskLivesSuite):
    @pytest.fixture
    def store_url(self, postgres: Server) -> str:
        return postgres.url()
