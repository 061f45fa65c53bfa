"""Kernel sessions for tests: started, ready, and told about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from holdfast.client._sync.host import Session
from tests.support.home import HomeForTests

LONG = 90  # seconds: an interpreter that starts on a loaded machine takes its time


def kernel(hold: HomeForTests, name: str = "calc", **options: Any) -> Session:
    """A session with a Python kernel that has run a cell, so that it is up."""
    session = hold.run(name=name, kernel=options.pop("kernel", "python3"), **options)
    done = session.exec("0", timeout=LONG)
    assert (done.state, done.exit_code) == ("exited", 0), done
    return session


def add_spec(folder: Path, name: str, spec: dict[str, Any] | str) -> str:
    """Put a kernelspec where only this test looks; the JUPYTER_PATH that says so."""
    place = folder / "jupyter" / "kernels" / name
    place.mkdir(parents=True)
    (place / "kernel.json").write_text(spec if isinstance(spec, str) else json.dumps(spec))
    return str(folder / "jupyter")
