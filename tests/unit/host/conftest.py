"""What several of the host's unit tests start from."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.host.sessions.session import Session
from holdfast.model.home import Home


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """One on a terminal that no keeper holds."""
    folder = Home(str(tmp_path)).session("ses_one")
    Path(folder.path).mkdir(parents=True)
    return Session(folder, {"id": "ses_one", "name": "one", "generation": 1, "size": [80, 24], "kind": "terminal"})
