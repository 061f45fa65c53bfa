"""The suite's own rules: a pure test starts nothing, a soak run is longer, seeded, and leaves a report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = """
import subprocess, pytest
from hypothesis import given, settings, strategies as st
from tests.support.soak import examples

seen = []

@given(st.integers())
@settings(max_examples=examples(7))
def test_property(n):
    seen.append(n)

def test_loop(rounds):
    for n in range(rounds.count(3)):
        print("round", n, rounds.random.random())
    assert rounds.factor == 1 or len(set(seen)) > 7

def test_other():
    pass
"""


def pytest_in(folder: Path, source: str, *words: str) -> subprocess.CompletedProcess[str]:
    """A run of its own, with the suite's conftest as a plugin."""
    (folder / "test_it.py").write_text(source)
    plugins = ["-p", "tests.conftest", "-p", "no:cacheprovider"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        *plugins,
        "-c",
        str(ROOT / "pyproject.toml"),
        "--rootdir",
        str(folder),
        "-s",
        *words,
        "test_it.py",
    ]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=120)


def test_a_pure_test_that_starts_a_process_fails_and_says_what_to_do(tmp_path: Path) -> None:
    source = "import subprocess, pytest\n\n@pytest.mark.pure\ndef test_it():\n    try:\n        subprocess.run(['true'])\n    except Exception:\n        pass\n"
    done = pytest_in(tmp_path, source)
    assert done.returncode == 1, done.stdout
    assert "mark it pytest.mark.process" in done.stdout


def test_a_soak_run_is_longer_has_only_loops_and_properties_and_leaves_the_same_report_again(tmp_path: Path) -> None:
    words = ["--soak", "4", "--seed", "7", "--hypothesis-seed", "7", "--soak-report", str(tmp_path / "soak.md")]
    done = pytest_in(tmp_path, TESTS, *words)
    assert (done.returncode, "2 passed, 1 deselected" in done.stdout) == (0, True), done.stdout
    told = (tmp_path / "soak.md").read_text()
    assert "make soak FACTOR=4 SEED=7" in told
    assert "| `test_it.py::test_loop` | 12 rounds | passed |" in told
    assert "| `test_it.py::test_property` | 4 times the examples | passed |" in told
    again = pytest_in(tmp_path, TESTS, *words)
    assert (tmp_path / "soak.md").read_text() == told
    drawn = [[line for line in run.stdout.splitlines() if "round " in line] for run in (done, again)]
    assert len(drawn[0]) == 12
    assert drawn[0] == drawn[1]


def test_a_loop_is_short_otherwise(tmp_path: Path) -> None:
    done = pytest_in(tmp_path, TESTS)
    assert done.stdout.count("round ") == 3
    assert "3 passed" in done.stdout
