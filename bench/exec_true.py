"""What `exec` adds to the shell's own time, for the smallest command there is."""

from __future__ import annotations

import statistics
import time

from .ours import SHELL, Ours, clean_env
from .result import Result, Target, spread
from .terminal import Terminal

KEY = "exec"
_PROMPT = b"bench-prompt> "
_WARM_UP = 5


def measure(quick: bool) -> list[Result]:
    rounds = 40 if quick else 200
    ours_ms, shell_ms = [], []
    shell = Terminal((*SHELL, "-i"), clean_env(PS1=_PROMPT.decode()))
    try:
        with Ours() as ours:
            session = ours.run(*SHELL)
            shell.until(_PROMPT, 10)
            for i in range(rounds + _WARM_UP):
                began = time.monotonic()
                done = session.exec("true", timeout=30)
                took = time.monotonic() - began
                if done.exit_code != 0:
                    raise RuntimeError(f"exec true ended as {done}")
                typed = _typed(shell)
                if i >= _WARM_UP:
                    ours_ms.append(took * 1e3)
                    shell_ms.append(typed * 1e3)
    finally:
        shell.close()
    ours_median, shell_median = statistics.median(ours_ms), statistics.median(shell_ms)
    return [
        Result(
            key=KEY,
            name="exec of `true` in a bash session, through the SDK",
            unit="ms",
            ours=ours_median,
            peers={"bash on a PTY": shell_median},
            ratios={"bash on a PTY": ours_median / shell_median},
            targets=(Target("ours minus bash itself", ours_median - shell_median, 5.0, "lower", "ms"),),
            notes=(
                f"medians of {rounds}, in turn; bash itself: `true` typed on a bare PTY until the next prompt is there",
                f"ours: {spread(ours_ms)}",
                f"bash on a PTY: {spread(shell_ms)}",
            ),
        )
    ]


def _typed(shell: Terminal) -> float:
    shell.drain()
    began = time.monotonic()
    shell.write(b"true\r")
    return shell.until(_PROMPT, 10) - began
