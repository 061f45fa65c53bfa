"""Attach like a good terminal: the screen comes back whole, and the user's own terminal too."""

from __future__ import annotations

import os
import re
import signal
import termios
from pathlib import Path

import pytest

from holdfast.model.home import Home
from tests.support.attached import AttachedTerminal
from tests.support.home import HomeForTests, read_all, until
from tests.support.keeperline import KeeperLine

pytestmark = pytest.mark.home("file")

SIZES = [(80, 24), (120, 40), (43, 17)]

COLOUR_LOG = """
i=0; while [ $i -lt 300 ]; do i=$((i+1))
printf '\\033[1;32m[%3d]\\033[0m \\033[38;5;%dmbuilding\\033[0m \\033[48;2;20;40;60mmodule_%d\\033[0m \\033[4mok\\033[0m\\n' $i $((i%256)) $i
done; cat
"""
WIDE = "printf '\\e]2;t\\303\\257tle\\a日本語 テスト e\\u0301 👩‍👩‍👧 🇩🇪 done\\n%.0s' 1 2 3 4 5 6 7 8; cat"
MODES = (
    "printf '\\033[?2004h\\033[?1000h\\033[?1006h\\033[?1004h\\033[?1h\\033=\\033[>5u\\033[?25l\\033[5 q\\033]2;my title\\007"
    "\\033[3;10r\\033[7;7H\\033[31;44mred\\033[K'; cat"
)
PROGRAMS = {
    "vim": (["vim", "-n", "-u", "NONE", "-c", "set mouse=a number", "/etc/services"], "1 "),
    "less": (["less", "/etc/services"], "services"),
    "top": (["top", "-d", "100"], "Tasks"),
    "colour-log": (["sh", "-c", COLOUR_LOG], "module_300"),
    "wide": (["bash", "-c", WIDE], "done"),
    "modes": (["bash", "-c", MODES], "red"),
}


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_new_client_sees_what_one_sees_that_never_left(
    hold: HomeForTests, program: str, size: tuple[int, int]
) -> None:
    command, shown = PROGRAMS[program]
    s = hold.run(*command, size=size, env={"LC_ALL": "C.UTF-8"})
    with AttachedTerminal(hold, "attach", s.id, size=size) as old:
        old.shows(shown)
        middle = (size[0] + 7, size[1] + 3)
        old.resize(*middle)  # the program redraws at another size, and back
        until(lambda: (p := s.status().pty) and (p.cols, p.rows) == middle)
        old.settle()
        old.resize(*size)
        until(lambda: (p := s.status().pty) and (p.cols, p.rows) == size)
        old.settle()
        with AttachedTerminal(hold, "attach", "-r", s.id, size=size) as new:
            new.shows(shown)
            new.settle()
            old.settle()
            assert visible(new) == visible(old)
            old.type(b"j" if program in ("vim", "less") else b"x")
            old.settle()
            new.settle()
            assert visible(new) == visible(old)


def visible(terminal: AttachedTerminal) -> dict[str, object]:
    """What a person and a program can tell of a terminal, history aside (its length depends on who came when)."""
    dump = terminal.screen.dump()
    dump.pop("history")
    return dump


def test_scrollback_is_restored(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "seq 1 500; cat")
    assert s.wait(text="500\r\n", timeout=20).event != "timeout"
    with AttachedTerminal(hold, "attach", s.id) as terminal:
        terminal.shows("500")
        numbers = [int(n) for n in re.findall(r"^\d+$", terminal.screen.contents(), re.M)]
        assert numbers == list(range(1, 501))


def test_detach_keys_leave_the_session_running_and_the_terminal_as_it_was(hold: HomeForTests) -> None:
    s = hold.run("cat")
    with AttachedTerminal(hold, "attach", s.id) as terminal:
        before = until(terminal.mode)
        terminal.until(lambda: s.status().attached_count == 1)
        terminal.until(lambda: not terminal.mode()[3] & termios.ISIG)  # until then the key is a signal
        terminal.type(b"\x1c" + b"d")
        assert terminal.wait() == 0
        after = terminal.mode()
        assert after[3] & termios.ICANON
        assert after[3] & termios.ECHO
        assert after[:4] == before[:4] or after[3] == before[3] | termios.ICANON | termios.ECHO
        assert "detached" in terminal.screen.text()
    assert s.status().state == "live"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_raw_mode_is_restored_whatever_ends_the_client(hold: HomeForTests, number: signal.Signals) -> None:
    s = hold.run("sh", "-c", "printf '\\033[?1049h\\033[?1000hfull'; cat")
    with AttachedTerminal(hold, "attach", s.id) as terminal:
        terminal.shows("full")
        assert not terminal.mode()[3] & termios.ICANON
        terminal.kill(number)
        assert terminal.mode()[3] & termios.ICANON
        assert terminal.screen.alternate is False
        assert terminal.screen.modes().get("mouse_normal") in (None, False)
    assert s.status().state == "live"


def test_a_detach_key_alone_is_typed(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "stty raw -echo; echo ready; dd bs=1 count=2 2>/dev/null | od -An -tx1; cat")
    with AttachedTerminal(hold, "attach", s.id) as terminal:
        terminal.shows("ready")
        terminal.type(b"\x1cz")
        terminal.shows("1c 7a")


def test_read_only_watches_and_types_nothing(hold: HomeForTests) -> None:
    s = hold.run("cat")
    with AttachedTerminal(hold, "attach", "-r", s.id) as terminal:
        terminal.until(lambda: s.status().attached_count == 1)
        terminal.type(b"nothing\r")
        s.send("something\n")
        terminal.shows("something")
        assert b"nothing" not in read_all(s)
        assert [a.mode for a in s.status().attached] == ["watch"]


def test_only_the_controller_sizes_the_terminal(hold: HomeForTests) -> None:
    s = hold.run("cat", size=(80, 24))
    with AttachedTerminal(hold, "attach", s.id, size=(90, 30)) as first:
        first.until(lambda: (p := s.status().pty) and (p.cols, p.rows) == (90, 30))
        first.type(b"mine\r")
        first.shows("mine")
        assert s.status().controls.holder is not None
        with AttachedTerminal(hold, "attach", "-r", s.id, size=(40, 10)) as watcher:
            watcher.shows("mine")
            watcher.resize(50, 12)
            watcher.settle()
            assert (s.status().pty.cols, s.status().pty.rows) == (90, 30)  # type: ignore[union-attr]
        first.type(b"\x1cd")
        assert first.wait() == 0
        until(lambda: s.status().controls.holder is None)


def test_a_terminal_that_lost_the_controls_says_to_whom_and_types_again_once_they_are_free(hold: HomeForTests) -> None:
    s = hold.run("cat")
    with AttachedTerminal(hold, "attach", s.id) as terminal, KeeperLine(Home(str(hold.path)), s.id, name="eve") as eve:
        terminal.type(b"mine\r")
        terminal.until(lambda: read_all(s).count(b"mine") == 2, 60)  # the session's echo, not our own terminal's
        assert "ok" in eve.act("take", force=True, insist=True)
        terminal.type(b"lost\r")
        terminal.until(lambda: b"eve (human) holds the controls since" in terminal.raw)
        eve.type(b"hers\r")
        terminal.until(lambda: terminal.screen.text().count("hers") == 2)
        assert "ok" in eve.act("release")

        def typed_again() -> bool:
            terminal.type(b"again\r")
            terminal.pump(0.2)
            return "again" in terminal.screen.text()

        terminal.until(typed_again)
        assert b"lost" not in read_all(s)


def test_a_killed_terminal_keeps_the_controls_for_a_while_and_its_user_gets_them_back(hold: HomeForTests) -> None:
    s = hold.run("sh", "-c", "echo ready; exec cat")
    with AttachedTerminal(hold, "attach", s.id) as terminal:
        terminal.shows("ready")  # until then it is the terminal itself that echoes
        terminal.type(b"mine\r")
        terminal.until(lambda: read_all(s).count(b"mine") == 2, 60)
        epoch = s.status().controls.epoch
        terminal.kill(signal.SIGKILL)
    until(lambda: s.status().attached_count == 0)
    with KeeperLine(Home(str(hold.path)), s.id, name="eve") as eve:
        assert eve.type(b"hers\r")["code"] == "conflict"
        with AttachedTerminal(hold, "attach", s.id) as again:
            again.shows("ready")
            again.type(b"back\r")
            again.until(lambda: read_all(s).count(b"back") == 2, 60)
            assert s.status().controls.epoch == epoch
            again.type(b"\x1cd")
            assert again.wait() == 0
        until(lambda: eve.type(b"hers\r") == {})  # the keeper hears of a clean detach a moment after the client ended


@pytest.mark.home("own")
def test_an_attached_terminal_goes_on_typing_when_the_daemon_is_killed(hold: HomeForTests) -> None:
    s = hold.run("cat")
    with AttachedTerminal(hold, "attach", s.id) as terminal:
        terminal.type(b"before\r")
        terminal.shows("before")
        hold.kill_daemon()
        terminal.type(b"after\r")
        terminal.until(lambda: terminal.screen.text().count("after") == 2)
    assert s.status().state == "live"


@pytest.mark.home("own")
def test_a_keeper_that_dies_with_something_unread_is_told_in_one_line(hold: HomeForTests) -> None:
    """Its end resets the line, where otherwise it closes it."""
    s = hold.run("sh", "-c", "echo ready; exec cat")
    with AttachedTerminal(hold, "attach", s.id) as terminal:
        terminal.shows("ready")
        os.kill(hold.keeper_pid(s), signal.SIGSTOP)
        terminal.type(b"never read\r")
        terminal.settle()  # the client has passed it on
        os.kill(hold.keeper_pid(s), signal.SIGKILL)
        assert terminal.wait() == 0
        assert "ended: exit status unknown" in terminal.screen.text()
        assert b"Traceback" not in terminal.raw


def test_a_client_that_is_killed_is_nothing(hold: HomeForTests) -> None:
    s = hold.run("cat")
    pid = s.status().pid
    for _ in range(3):
        with AttachedTerminal(hold, "attach", s.id) as terminal:
            terminal.type(b"x\r")
            terminal.shows("x")
            terminal.kill(signal.SIGKILL)
    until(lambda: s.status().attached_count == 0)
    assert s.status().pid == pid


def test_the_foreground_run_attaches_and_passes_the_exit_code_through(hold: HomeForTests) -> None:
    with AttachedTerminal(hold, "run", "--", "sh", "-c", "stty size; exit 7", size=(100, 33)) as terminal:
        assert terminal.wait() == 7
        assert "33 100" in terminal.screen.text()


def test_attaching_from_inside_a_session_is_refused_with_a_hint(hold: HomeForTests) -> None:
    s = hold.run("cat")
    with AttachedTerminal(hold, "attach", s.id, HOLDFAST_SESSION=s.id) as terminal:
        assert terminal.wait() == 5
        assert "this terminal is inside that session" in terminal.screen.text()


def test_attach_without_a_terminal_is_a_usage_error(hold: HomeForTests) -> None:
    s = hold.run("cat")
    done = hold("attach", s.id)
    assert (done.code, "terminal" in done.err) == (2, True)


def test_terminal_queries_are_answered_with_nobody_attached_and_only_once_with_clients(hold: HomeForTests) -> None:
    ask = "stty raw -echo; printf '\\033[6n'; dd bs=1 count=6 2>/dev/null | od -An -c; stty sane; echo over; cat"
    alone = hold.run("sh", "-c", ask)
    assert alone.wait(text="over", timeout=20).event != "timeout"
    assert b"033   [   1   ;   1   R" in read_all(alone)
    watched = hold.run("sh", "-c", "read x; " + ask)
    with AttachedTerminal(hold, "attach", watched.id) as terminal:
        terminal.type(b"go\r")
        terminal.shows("over")
        assert b"\x1b[6n" not in terminal.raw
        terminal.settle()
        # Were the client's terminal asked too, its answer would stand here as typed text.
        assert read_all(watched).count(b"R") == 1


def test_ssh_agent_follows_the_latest_controller(hold: HomeForTests, tmp_path: Path) -> None:
    s = hold.run(
        "sh",
        "-c",
        'readlink "$SSH_AUTH_SOCK"; while read x; do readlink "$SSH_AUTH_SOCK"; done',
        env={"SSH_AUTH_SOCK": str(tmp_path / "first")},
    )
    assert s.wait(text="first", timeout=20).event != "timeout"
    with AttachedTerminal(hold, "attach", s.id, SSH_AUTH_SOCK=str(tmp_path / "second")) as terminal:
        terminal.until(lambda: s.status().attached_count == 1)
        terminal.type(b"again\r")
        terminal.shows("second")
    assert os.environ.get("HOLDFAST_SESSION") is None
