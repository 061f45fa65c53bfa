"""How long it takes to start a session on a host that is running."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable

from .ours import Ours
from .peers import Tmux
from .result import Result, Target, ratio, spread

KEY = "start"
_WARM_UP = 3
_PAUSE_S = 0.03  # what one still does after it answered must not fall into the next one's time


def measure(quick: bool) -> list[Result]:
    rounds = 20 if quick else 100
    times: dict[str, list[float]] = {"ours": [], "tmux new-session -d": [], "spawning `true`": []}
    with Ours() as ours, Tmux() as tmux:
        names = iter(range(1_000_000))

        def through_tmux() -> None:
            words = tmux.hold_words(f"n{next(names)}", "cat")
            subprocess.run(words, env=tmux.env, cwd="/", check=True)

        ways: dict[str, Callable[[], object]] = {
            "ours": lambda: ours.run("cat"),
            "tmux new-session -d": through_tmux,
            "spawning `true`": lambda: subprocess.run(["true"], env=tmux.env, cwd="/", check=True),
        }
        for i in range(rounds + _WARM_UP):
            for name, way in ways.items():
                began = time.monotonic()
                way()
                took = time.monotonic() - began
                if i >= _WARM_UP:
                    times[name].append(took * 1e3)
                time.sleep(_PAUSE_S)
    peer, floor = "tmux new-session -d", "spawning `true`"
    ratios = {name: ratio(times["ours"], times[name]) for name in (peer, floor)}
    return [
        Result(
            key=KEY,
            name="start of a session (`cat`)",
            unit="ms",
            ours=statistics.median(times["ours"]),
            peers={name: statistics.median(times[name]) for name in (peer, floor)},
            ratios=ratios,
            targets=(Target("ours ÷ tmux", ratios[peer], 1.5, "lower"),),
            notes=(
                f"medians of {rounds}, in turn; ours is one SDK call, the manifest durable before the program starts",
                "a pause after each, so that nobody's after-work falls into another's time",
                "tmux is a command to spawn; what spawning alone costs stands beside it",
                *(f"{name}: {spread(values)}" for name, values in times.items()),
            ),
        )
    ]
