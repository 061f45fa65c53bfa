"""What `hold ls` costs end to end, next to a Python that does nothing."""

from __future__ import annotations

import compileall
import statistics
import subprocess
import sys
import time
from pathlib import Path

import holdfast

from .ours import HOLD, Ours
from .result import Result, Target, ratio, spread

KEY = "ls"
_SESSIONS = 5
_WARM_UP = 3


def measure(quick: bool) -> list[Result]:
    rounds = 20 if quick else 60
    # Installing compiles. A checkout may run where PYTHONDONTWRITEBYTECODE keeps Python from doing so by itself.
    compileall.compile_dir(str(Path(holdfast.__file__).parent), quiet=1)
    ours_ms, python_ms = [], []
    with Ours() as ours:
        for _ in range(_SESSIONS):
            ours.run("cat")
        for i in range(rounds + _WARM_UP):
            took = _timed([HOLD, "ls"], ours.env)
            floor = _timed([sys.executable, "-c", "pass"], ours.env)
            if i >= _WARM_UP:
                ours_ms.append(took)
                python_ms.append(floor)
    times = ratio(ours_ms, python_ms)
    return [
        Result(
            key=KEY,
            name=f"`hold ls` with {_SESSIONS} sessions, end to end",
            unit="ms",
            ours=statistics.median(ours_ms),
            peers={"python -c pass": statistics.median(python_ms)},
            ratios={"python -c pass": times},
            targets=(Target("ours ÷ python -c pass", times, 4.0, "lower"),),
            notes=(
                f"medians of {rounds}, in turn; the installed command, the same interpreter, bytecode compiled before",
                f"ours: {spread(ours_ms)}",
                f"python -c pass: {spread(python_ms)}",
            ),
        )
    ]


def _timed(words: list[str], env: dict[str, str]) -> float:
    began = time.monotonic()
    subprocess.run(words, env=env, check=True, stdout=subprocess.PIPE)
    return (time.monotonic() - began) * 1e3
