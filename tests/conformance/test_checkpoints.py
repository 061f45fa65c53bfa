"""Checkpoints, replay and memory keep their promises on both stores."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.testing.checkpoints import CheckpointSuite
from tests.support.postgres import Server


class TestSqlite(CheckpointSuite):
    @pytest.fixture
    def store_url(self, tmp_path: Path) -> str:
        return f"sqlite:///{tmp_path}/work.db"


class TestPostgres(CheckpointSuite):
    @pytest.fixture
    def store_url(self, postgres: Server) -> str:
        return postgres.url()
