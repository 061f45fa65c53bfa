"""What a command gives back: its exit code, its output to the byte, its directory, and what stays for the next one."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.ptyshell import PtyShell

Start = Callable[..., PtyShell]
EVERY = ["bash", "zsh", "sh", "fish"]
POSIX = ["bash", "zsh", "sh"]


@pytest.mark.parametrize("shell", EVERY)
def test_the_exit_code_is_the_commands_own(start: Start, shell: str) -> None:
    session = start(shell)
    assert [session.exec(b"sh -c 'exit %d'" % code).code for code in (0, 1, 7, 126, 255)] == [
        0,
        1,
        7,
        126,
        255,
    ]
    assert session.exec(b"sh -c 'kill -9 $$'").code == 137
    assert session.exec(b"no-such-command-here").code == 127


@pytest.mark.parametrize("shell", EVERY)
def test_the_output_is_exactly_what_stands_between_the_marks(start: Start, shell: str) -> None:
    session = start(shell)
    for written in (
        b"",
        b"one\n",
        b"no line end",
        b"\n\n",
        b"a\tb\x1b[31mred\x1b[0m",
        "größe 😀\n".encode(),
        b"\xff\xfe\x80",
    ):
        (session.folder / "data").write_bytes(written)
        result = session.exec(b"cat data")
        assert (result.text, result.code) == (written, 0)
        assert [mark.kind for mark in result.marks] == ["b", "e"]


@pytest.mark.parametrize("shell", EVERY)
def test_five_megabytes_of_output_come_whole(start: Start, shell: str) -> None:
    session = start(shell)
    written = b"".join(b"%07d %s\n" % (number, b"x" * 71) for number in range(64 * 1024))
    (session.folder / "data").write_bytes(written)
    assert session.exec(b"cat data").text == written


@pytest.mark.parametrize("shell", EVERY)
def test_the_record_says_which_process_the_shell_is(start: Start, shell: str) -> None:
    session = start(shell)
    record = session.exec(b"true").record
    assert record is not None
    assert record.pid == session.pid


@pytest.mark.parametrize("shell", EVERY)
@pytest.mark.parametrize("name", [b"plain", b"with space", b"two\nlines\n", b"quo'te\"$x", b"\xff\xfe", "ünï".encode()])
def test_the_directory_is_reported_byte_for_byte(start: Start, shell: str, name: bytes, tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path.resolve()), name)
    os.mkdir(folder)
    session = start(shell)
    record = session.exec(b'cd -- "$THERE"', env={b"THERE": folder}).record
    assert record is not None
    assert record.cwd == folder


@pytest.mark.parametrize("shell", POSIX)
def test_state_of_the_shell_survives_to_the_next_command(start: Start, shell: str) -> None:
    session = start(shell)
    session.exec(b"mkdir sub; cd sub; kept=yes; export SENT=out; greet() { echo hello $1; }; alias hi='echo aliased'")
    session.exec(b"umask 027; set -- one two")
    result = session.exec(b'echo "$kept $(sh -c "echo \\$SENT") $2 $(umask -S)"; greet you; hi; pwd')
    folder = bytes(session.folder / "sub")
    assert result.text == b"yes out two u=rwx,g=rx,o=\nhello you\naliased\n" + folder + b"\n"


def test_state_of_fish_survives_to_the_next_command(start: Start) -> None:
    session = start("fish")
    session.exec(b"mkdir sub; cd sub; set -g kept yes; set -gx SENT out; function greet; echo hello $argv; end")
    result = session.exec(b"echo $kept (sh -c 'echo $SENT'); greet you; pwd")
    assert result.text == b"yes out\nhello you\n" + bytes(session.folder / "sub") + b"\n"


@pytest.mark.parametrize(("shell", "ask"), [("bash", b"$?"), ("zsh", b"$?"), ("sh", b"$?"), ("fish", b"$status")])
def test_a_command_sees_the_status_of_the_one_before(start: Start, shell: str, ask: bytes) -> None:
    session = start(shell)
    session.exec(b"sh -c 'exit 5'")
    assert session.exec(b"echo " + ask).text == b"5\n"
    session.command(b"sh -c 'exit 6'")
    assert session.exec(b"echo " + ask).text == b"6\n"


@pytest.mark.parametrize("shell", EVERY)
def test_a_refreshed_environment_is_there_before_the_source_runs(start: Start, shell: str) -> None:
    session = start(shell)
    values = {b"DISPLAY": b":7", b"ODD": b'it\'s \\ "$HOME" `x`\n\xff*'}
    result = session.exec(b"env -0 | grep -az -e ^DISPLAY= -e ^ODD= | sort -z | tr '\\0' '|'", env=values)
    assert result.text == b"DISPLAY=:7|ODD=" + values[b"ODD"] + b"|"
    assert session.exec(b"printenv DISPLAY").text == b":7\n"


@pytest.mark.parametrize("shell", POSIX)
def test_a_readonly_variable_is_kept_and_the_command_still_runs(start: Start, shell: str) -> None:
    session = start(shell)
    session.exec(b"readonly DISPLAY=:1")
    assert session.exec(b"echo $DISPLAY $OTHER", env={b"DISPLAY": b":2", b"OTHER": b"x"}).text == b":1 x\n"


@pytest.mark.parametrize("shell", EVERY)
def test_a_command_can_read_from_the_terminal(start: Start, shell: str) -> None:
    session = start(shell)
    running = session.start(b"head -n 1")
    running.begun()
    session.type(b"typed by a person\n")
    assert running.finish().text == b"typed by a person\ntyped by a person\n"


@pytest.mark.parametrize("shell", EVERY)
def test_commands_follow_each_other_without_waiting_for_the_prompt(start: Start, shell: str) -> None:
    session = start(shell)
    for number in range(20):
        running = session.start(b"echo %d" % number)
        session.until(running.ended, "the second mark")
        assert running.result().text == b"%d\n" % number
