"""A menu as agents show one: raw mode, redrawn in place, moved through with arrow keys, Enter takes what is highlighted.

    menu.py [--relative] [--loop [--ticks]] [--status] [--times N]

Without --relative the cursor is placed by row and column; with it the menu is redrawn where it stands, with the cursor
hidden. --loop waits in poll() with a timeout, as an event loop does, and with --ticks draws at each. --status speaks OSC 7501: it asks whether it is
listened to, and reports idle, blocked and working; before each menu it is idle at a prompt of its own until a key comes.
What was chosen is printed as `chose: …`; any other key is ignored, as text is by such a menu.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import tty

OPTIONS = ("1. Yes", "2. No")
HEARD = b"\x1b]7501;?\x1b\\"
UP, DOWN = (b"\x1b[A", b"\x1bOA"), (b"\x1b[B", b"\x1bOB")
RELATIVE, LOOP, STATUS, TICKS = (flag in sys.argv for flag in ("--relative", "--loop", "--status", "--ticks"))


def put(text: str) -> None:
    os.write(1, text.encode())


def keys() -> bytes:
    while LOOP and not select.select([0], [], [], 0.3)[0]:
        put("\x1b7\x1b[1;70H.\x1b8" if TICKS else "")
    return os.read(0, 64)


def say(state: str) -> None:
    if STATUS:
        put(f"\x1b]7501;state={state}:app=menu.py\x1b\\")


def draw(chosen: int, again: bool) -> None:
    lines = ["Do you want to proceed?", *((" > " if n == chosen else "   ") + o for n, o in enumerate(OPTIONS))]
    if RELATIVE:
        put(("\x1b[3A" if again else "\x1b[?25l") + "".join(f"\r{line}\x1b[K\r\n" for line in lines))
    else:
        put("".join(f"\x1b[{5 + n};1H{line}\x1b[K" for n, line in enumerate(lines)))


def choose() -> str:
    chosen, again = 0, False
    say("blocked:kind=permission")
    while True:
        draw(chosen, again)
        again = True
        before, enter, _ = keys().replace(b"\n", b"\r").partition(b"\r")  # keys that follow each other come as one
        chosen = 1 if any(key in before for key in DOWN) else 0 if any(key in before for key in UP) else chosen
        if enter:
            return OPTIONS[chosen]


def main() -> None:
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        if STATUS:
            put("\x1b[?25l\x1b]7501;?\x07")
            answer = b""
            while not answer.endswith(b"\x1b\\"):
                answer += os.read(0, 64)
            put(f"heard: {answer == HEARD}\r\n")
        for _ in range(int(sys.argv[sys.argv.index("--times") + 1]) if "--times" in sys.argv else 1):
            if STATUS:
                say("idle")
                put("> ")
                keys()
            picked = choose()
            say("working")
            put(f"\x1b[?25h\r\nchose: {picked}\r\n")
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
