"""An agent that asks for permission as Claude Code does: a dialog on its terminal, and its hook beside it.

    agent.py            in a terminal: idle, then (a key) the dialog; it says what it does (OSC 7501)
    agent.py --alone    without a terminal: only the hook is called, and the agent waits

As seen of Claude Code 2.1.326: the hook is started through a shell, together with the dialog. What the hook prints decides
like the person at the terminal. A yes at the terminal leaves the hook running, and the hook for PostToolUse follows when
the command has ended; a no ends the hook (SIGTERM), and nothing follows. `ran` is written where the command ran.
"""

from __future__ import annotations

import os
import select
import shlex
import signal
import subprocess
import sys
import termios
import tty
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.support.hook_events import event

HOLD = shlex.join([sys.executable, "-m", "holdfast.cli.main", "hook", "claude"])
OPTIONS = ("1. Yes", "2. No")


def hook(name: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        ["/bin/sh", "-c", f"{HOLD}; :"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    )
    assert process.stdin is not None
    process.stdin.write(event(name))
    process.stdin.close()
    return process


def say(state: str) -> None:
    os.write(1, f"\x1b]7501;state={state}:app=agent.py\x1b\\".encode())


def draw(chosen: int) -> None:
    lines = ["Do you want to proceed?", *((" > " if n == chosen else "   ") + o for n, o in enumerate(OPTIONS))]
    os.write(1, "".join(f"\x1b[{5 + n};1H{line}\x1b[K" for n, line in enumerate(lines)).encode())


def dialog() -> tuple[str, subprocess.Popen[bytes]]:
    """(yes or no, by hook or terminal) and the hook's process."""
    say("blocked:kind=permission")
    chosen, asking = 0, hook("PermissionRequest")
    assert asking.stdout is not None
    watched = [0, asking.stdout.fileno()]
    while True:
        draw(chosen)
        ready = select.select(watched, [], [])[0]
        if 0 in ready:
            before, enter, _ = os.read(0, 64).partition(b"\r")
            chosen = 1 if b"\x1b[B" in before else 0 if b"\x1b[A" in before else chosen
            if enter:
                return ("no" if chosen else "yes") + " at the terminal", asking
            continue
        said = os.read(watched[1], 65536)
        if b'"behavior"' in said:
            return ("no" if b'"deny"' in said else "yes") + " by the hook", asking
        watched = [0]  # nobody answered there: the dialog stays


def in_terminal() -> None:
    before = termios.tcgetattr(0)
    tty.setraw(0)
    os.write(1, b"\x1b[?25l\x1b]7501;?\x07")
    answer = b""
    while not answer.endswith(b"\x1b\\"):
        answer += os.read(0, 64)
    while True:
        say("idle")
        os.write(1, b"\r\n> ")
        if os.read(0, 64) == b"q":
            break
        decided, asking = dialog()
        say("working")
        os.write(1, f"\r\n{decided}\r\n".encode())
        if decided.startswith("yes"):
            Path("ran").touch()
            while not os.path.exists("done"):  # the command runs for as long as the test wants
                select.select([], [], [], 0.02)
            hook("PostToolUse").wait()
        else:
            os.killpg(asking.pid, signal.SIGTERM)
        asking.wait()
    termios.tcsetattr(0, termios.TCSADRAIN, before)


if __name__ == "__main__":
    if "--alone" in sys.argv:
        hook("PermissionRequest").wait()
    else:
        in_terminal()
