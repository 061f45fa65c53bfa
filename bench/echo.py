"""How long one keystroke takes to come back through an attached client."""

from __future__ import annotations

import statistics
import time
from contextlib import ExitStack

from .ours import Ours, clean_env
from .peers import Dtach, Tmux
from .result import Result, Target, spread
from .terminal import Terminal, TooSlow

KEY = "echo"
# It answers with another letter than the one typed: no echo of a line discipline on the way can be taken for it.
# And with letters that end no control sequence, so that neither can a redraw.
KEYS, ANSWERS = b"abcde", b"vwxyz"
PROGRAM = ("sh", "-c", "stty raw -echo; exec stdbuf -o0 tr abcde vwxyz")
WARM_UP = 20


def measure(quick: bool) -> list[Result]:
    strokes = 200 if quick else 1000
    with Ours() as ours, Tmux() as tmux, Dtach() as dtach, ExitStack() as stack:
        terminals = {
            "ours": Terminal(ours.attach_words(ours.run(*PROGRAM)), ours.env),
            "tmux": Terminal(tmux.attach_words(tmux.hold(*PROGRAM)), tmux.env),
            "dtach": Terminal(dtach.attach_words(dtach.hold(*PROGRAM)), dtach.env),
            "direct PTY": Terminal(PROGRAM, clean_env()),
        }
        for terminal in terminals.values():
            stack.callback(terminal.close)
            connected(terminal)
        times: dict[str, list[float]] = {name: [] for name in terminals}
        for i in range(strokes + WARM_UP):
            for name, terminal in terminals.items():
                took = stroke(terminal, i % len(KEYS), 5.0)
                if i >= WARM_UP:
                    times[name].append(took * 1e6)
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratios = {name: medians["ours"] / value for name, value in medians.items() if name != "ours"}
    return [
        Result(
            key=KEY,
            name="echo of one keystroke through an attached client",
            unit="µs",
            ours=medians["ours"],
            peers={name: medians[name] for name in ratios},
            ratios=ratios,
            targets=(Target("ours ÷ tmux", ratios["tmux"], 1.5, "lower"),),
            notes=(
                f"medians of {strokes} keystrokes, one to each in turn; the program is `tr` in raw mode, unbuffered",
                *(f"{name}: {spread(values)}" for name, values in times.items()),
            ),
        )
    ]


def stroke(terminal: Terminal, which: int, timeout: float) -> float:
    terminal.drain()
    began = time.monotonic()
    terminal.write(KEYS[which : which + 1])
    return terminal.until(ANSWERS[which : which + 1], timeout) - began


def connected(terminal: Terminal) -> None:
    for _ in range(40):
        try:
            stroke(terminal, 0, 0.5)
            return
        except TooSlow:
            continue
    raise TooSlow("the attached client never answered")
