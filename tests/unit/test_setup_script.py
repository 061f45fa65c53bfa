"""scripts/setup on a machine where nothing can be installed: it says what is missing, and goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.needs import needs

ROOT = Path(__file__).parents[2]
NOBODY = "65534"


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that another user can be given: pytest's own are for one user alone."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@needs("setpriv", "dpkg-query")
def test_a_package_that_cannot_be_installed_is_named_and_the_rest_goes_on(place: Path) -> None:
    tree = place / "tree"
    for folder in ("scripts", "web", "src/holdfast", ".venv/bin"):
        (tree / folder).mkdir(parents=True)
    for name in ("setup", "console_hook.py"):
        shutil.copy(ROOT / "scripts" / name, tree / "scripts" / name)
    (tree / "scripts" / "debian-packages.txt").write_text("no-such-package-here  # a reason\n")
    (tree / "pyproject.toml").touch()
    (tree / "web" / "page").touch()
    python = tree / ".venv" / "bin" / "python"  # an environment that has everything already
    python.write_text('#!/bin/sh\necho "$@" >> calls\n')
    python.chmod(0o755)
    become: list[str] = []
    if os.geteuid() == 0:
        become = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
        for path in [place, *place.rglob("*")]:
            shutil.chown(path, int(NOBODY), int(NOBODY))
    done = subprocess.run(
        [*become, "bash", "scripts/setup", "dev"],
        cwd=tree,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(place)},
    )
    assert done.returncode == 0, done.stderr
    assert "apt-get install no-such-package-here" in done.stderr
    assert "tests that need them are skipped" in done.stderr
    assert "pip install" in (tree / "calls").read_text()
