"""What stays in the shell after a command: nothing of ours, and in its history the source instead of our line."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

import pytest

from tests.support.ptyshell import PROMPT, PtyShell

Start = Callable[..., PtyShell]
EVERY = ["bash", "zsh", "sh", "fish"]
STATE = {
    "bash": b"set; declare -f; declare -p; env; trap; set -o; shopt; alias",
    "zsh": b"set; functions; typeset -p; env; trap; setopt; alias; hash -L",
    "sh": b"set; env; trap; set -o; alias",
    "fish": b"set; functions -a; env",
}


def shown(session: PtyShell, line: bytes) -> bytes:
    """What a typed line printed."""
    return session.command(line).partition(b"\n")[2].partition(PROMPT)[0]


@pytest.mark.parametrize("shell", EVERY)
def test_nothing_of_ours_stays_in_the_shell(start: Start, shell: str) -> None:
    session = start(shell)
    session.exec(b"echo one; sh -c 'exit 3'", env={b"DISPLAY": b":1"})
    session.exec(b"echo )")
    running = session.start(b"sleep 100")
    running.begun()
    session.wait_program("sleep")
    session.type(b"\x03")
    running.finish()
    session.probe()  # dash cannot clean up after Ctrl-C by itself
    state = shown(session, STATE[shell])
    assert b"PATH" in state
    assert b"__hf" not in state


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_no_descriptor_stays_open(start: Start, shell: str) -> None:
    session = start(shell)
    session.exec(b":")
    folder = f"/proc/{session.pid}/fd"
    before = sorted(os.listdir(folder))
    for _ in range(5):
        session.exec(b"true")
    session.until(lambda: sorted(os.listdir(folder)) == before, "the same descriptors")


@pytest.mark.parametrize("shell", EVERY)
def test_programs_inherit_nothing_of_ours(start: Start, shell: str) -> None:
    session = start(shell)
    assert b"__hf" not in session.exec(b"env").output
    if shell != "fish":
        session.exec(b"set -a")
        session.exec(b"true")
        assert b"__hf" not in session.exec(b"env").output


def history_of(session: PtyShell) -> list[bytes]:
    """The entries, without their numbers and without the line that asks."""
    command = {"bash": b"history >listed", "zsh": b"fc -l 1 >listed", "fish": b"history --reverse >listed"}[
        session.shell
    ]
    session.command(command)
    lines = (session.folder / "listed").read_bytes().splitlines()
    entries = [re.sub(rb"^ *\d+\*? {1,2}", b"", line) for line in lines]
    return [entry for entry in entries if entry != command]


@pytest.mark.parametrize(
    "control", ["", "ignorespace", "ignoredups", "ignoreboth", "erasedups", "ignorespace:erasedups"]
)
def test_the_history_of_bash_holds_the_source_and_not_our_line(start: Start, control: str) -> None:
    session = start("bash", rc=f"HISTCONTROL={control}")
    session.command(b"echo typed")
    session.exec(b"echo first")
    session.exec(b"for i in 1 2\ndo echo $i\ndone")
    session.exec(b"echo )")
    session.probe()
    session.exec(b"true " + b"x" * 5000)
    session.exec(b"echo '\xff'")
    session.exec(b"")
    session.exec(b"echo last")
    assert history_of(session) == [
        b"echo typed",
        b"echo first",
        b"for i in 1 2",
        b"do echo $i",
        b"done",
        b"echo )",
        b"echo last",
    ]


@pytest.mark.parametrize(
    "rc",
    [
        "HISTIGNORE='echo sec*'",
        "HISTIGNORE='[ ]*'",
        "HISTIGNORE='&:[ ]*:exit'",
        "HISTTIMEFORMAT='%F %T '",
        "HISTSIZE=2",
        "HISTSIZE=0",
    ],
)
def test_no_setting_of_bash_makes_us_lose_an_entry_of_the_user(start: Start, rc: str) -> None:
    session = start("bash", rc=rc)
    session.command(b"echo typed")
    session.probe()
    session.exec(b"echo '\xff'")
    left = history_of(session)
    assert not any(b"__hf" in entry or b"exec" in entry for entry in left)
    assert any(b"echo typed" in entry for entry in left) == ("HISTSIZE=0" not in rc)


def test_a_bash_without_history_keeps_none(start: Start) -> None:
    session = start("bash")
    session.exec(b"set +o history")
    session.exec(b"echo secret")
    session.exec(b"set -o history")
    assert b"echo secret" not in history_of(session)


def test_a_source_that_starts_with_a_space_stays_out_where_the_user_says_so(start: Start) -> None:
    session = start("bash", rc="HISTCONTROL=ignorespace")
    session.exec(b" echo secret")
    session.exec(b"echo open")
    assert history_of(session) == [b"echo open"]


def test_the_history_of_zsh_holds_the_source_and_not_our_line(start: Start) -> None:
    session = start("zsh", rc="setopt histignorespace; HISTSIZE=50")
    session.command(b"echo typed")
    session.exec(b"echo first")
    session.exec(b"for i in 1 2\ndo echo $i\ndone")
    session.probe()
    session.exec(b"echo '\xff'")
    session.exec(b"echo last")
    assert history_of(session) == [b"echo typed", b"echo first", b"for i in 1 2\\ndo echo $i\\ndone", b"echo last"]


def test_the_history_of_fish_does_not_hold_our_line(start: Start) -> None:
    session = start("fish")
    session.command(b"echo typed")
    session.exec(b"echo first")
    session.probe()
    assert not any(b"__hf" in entry for entry in history_of(session))
