"""What a program prints cannot make the terminal of the person who looks act: in every command that shows output."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.support.home import HOLD, HomeForTests

pytestmark = pytest.mark.home("file")

WAIT_S = 60
HOSTILE = [
    b"\x1bP1000p\x1b\\",  # tmux control mode
    b"\x1bP0;1|17/6c730d\x1b\\",  # a function key that types a command
    b"\x1b[5i",  # to the printer
    b"\x1b]52;c;cm0gLXJm\x07",
    b"\x1b^private\x1b\\",
    b"\x1b[6n",
]
ALLOWED = [
    b"\x1b[31mred\x1b[m",
    b"\x1b]2;title\x07",
    b"\x1bPq~~\x1b\\",
    b"\x1b]8;;https://example.org\x07here\x1b]8;;\x07",
]
END = b"that is the end"


@pytest.fixture
def printed(tmp_path: Path) -> Path:
    path = tmp_path / "printed"
    path.write_bytes(b"begin " + b" ".join(HOSTILE + ALLOWED) + b" " + END + b"\n")
    return path


def on_terminal(hold: HomeForTests, *words: str, typed: bytes = b"") -> bytes:
    """What a command writes to its terminal, up to the end of the program's output."""
    master, slave = pty.openpty()
    with subprocess.Popen(
        [*HOLD, *words], stdin=slave, stdout=slave, stderr=slave, env=hold.env, start_new_session=True
    ) as client:
        os.close(slave)
        seen, deadline = b"", time.monotonic() + WAIT_S
        try:
            while END not in seen:
                assert select.select([master], [], [], max(0.0, deadline - time.monotonic()))[0], seen
                seen += os.read(master, 65536)
                if typed and b"ready" in seen:
                    os.write(master, typed)
                    typed = b""
            return seen
        finally:
            os.close(master)
            if client.poll() is None:
                client.send_signal(signal.SIGKILL)


def shell(hold: HomeForTests) -> str:
    return hold.run("bash", "--norc", "--noprofile", "-i", env={"PS1": "$ "}).id


def ended(hold: HomeForTests, path: Path, *, pipes: bool = False) -> str:
    session = hold.run("cat", str(path), pipes=pipes)
    assert session.wait(exit=True, timeout=WAIT_S).event == "exit"
    return session.id


def shown(hold: HomeForTests, path: Path, way: str, *more: str) -> bytes:
    """The output in `path`, by one of the commands that show it."""
    if way == "attach":
        waits = hold.run("sh", "-c", 'stty -echo; echo ready; read go; cat "$0"; sleep 600', str(path))
        return on_terminal(hold, "attach", waits.id, *more, typed=b"go\r")
    if way == "run":
        return on_terminal(hold, "run", *more, "--", "cat", str(path))
    if way == "run --pipes":
        return on_terminal(hold, "run", "--pipes", *more, "--", "cat", str(path))
    if way == "logs":
        return on_terminal(hold, "logs", ended(hold, path), *more)
    if way == "logs of pipes":
        return on_terminal(hold, "logs", ended(hold, path, pipes=True), *more)
    if way == "replay":
        return on_terminal(hold, "replay", ended(hold, path), "--no-actors", "--speed", "100", *more)
    if way == "exec":
        return on_terminal(hold, "exec", shell(hold), *more, "--", "cat", str(path))
    if way == "exec --max-output":
        return on_terminal(hold, "exec", shell(hold), "--max-output", "65536", *more, "--", "cat", str(path))
    session = hold.host.session(shell(hold))
    done = session.exec(f"cat {path}", timeout=WAIT_S)
    return on_terminal(hold, "exec-result", session.id, done.exec_id, *more)


WAYS = ["attach", "run", "run --pipes", "logs", "logs of pipes", "replay", "exec", "exec --max-output", "exec-result"]


@pytest.mark.parametrize("way", WAYS)
def test_a_terminal_gets_what_a_screen_needs_and_nothing_else(hold: HomeForTests, printed: Path, way: str) -> None:
    seen = shown(hold, printed, way)
    for sequence in HOSTILE:
        assert sequence not in seen
    for sequence in ALLOWED:
        assert sequence in seen


@pytest.mark.parametrize("way", ["attach", "logs", "replay", "exec", "exec-result"])
def test_raw_is_every_byte(hold: HomeForTests, printed: Path, way: str) -> None:
    seen = shown(hold, printed, way, "--raw")
    assert printed.read_bytes().rstrip(b"\n") in seen


@pytest.mark.parametrize("way", [["run", "--"], ["run", "--pipes", "--"]])
def test_a_pipe_gets_every_byte(hold: HomeForTests, printed: Path, way: list[str]) -> None:
    done = subprocess.run(
        [*HOLD, *way, "cat", str(printed)],
        env=hold.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=WAIT_S,
        check=True,
    )
    ends = b"\n" if "--pipes" in way else b"\r\n"
    assert (
        printed.read_bytes().replace(b"\n", ends) in done.stdout
    )  # a terminal may echo the end of its input beside it


def test_the_clipboard_is_written_only_where_the_setting_says_so(hold: HomeForTests, printed: Path) -> None:
    config = hold.path / "config.toml"
    config.write_text('[terminal]\nclipboard = "write"\n')
    try:
        assert b"\x1b]52;c;cm0gLXJm\x07" in shown(hold, printed, "logs")
    finally:
        config.unlink()
