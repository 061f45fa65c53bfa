"""A broken connection: the reader of stdout that leaves is no failure; every other one is."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

BROKEN = "import sys; from holdfast.cli import main; from holdfast.cli.sessions import ls; ls.run = lambda args: {body}; sys.exit(main.main(['ls', *sys.argv[1:]]))"
RAISES = "(_ for _ in ()).throw({error}(32, 'Broken pipe'))"


@pytest.mark.parametrize("error", ["BrokenPipeError", "ConnectionResetError", "ConnectionRefusedError"])
@pytest.mark.parametrize("words", [[], ["--json"]])
def test_a_connection_that_breaks_is_an_error_in_one_line(error: str, words: list[str]) -> None:
    source = BROKEN.format(body=RAISES.format(error=error))
    done = subprocess.run(
        [sys.executable, "-c", source, *words], capture_output=True, text=True, timeout=60, check=False
    )
    said = done.stdout if words else done.stderr
    assert (done.returncode, said.count("\n")) == (1, 1), done
    assert "a connection broke" in said


def test_a_reader_of_stdout_that_leaves_is_no_error() -> None:
    source = BROKEN.format(body="(print('x' * 100_000), sys.stdout.flush())")
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-c", source], stdout=theirs, stderr=subprocess.PIPE, timeout=60, check=False
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (0, b"")
