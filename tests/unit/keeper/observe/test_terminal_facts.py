"""Kernel facts of real programs in a real terminal, sampled by an ancestor."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.keeper.observe import blocked_call, terminal_facts
from holdfast.system.process_tree import read_stat
from tests.support.ptyproc import DEADLINE_S, SAMPLE_S, PtyProgram

Start = Callable[..., PtyProgram]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a Python program (or a command) in a PTY; everything is ended with the test."""
    running: list[PtyProgram] = []

    def begin(source: str, *command: str) -> PtyProgram:
        argv = [*command, source] if command else [sys.executable, "-c", source]
        running.append(PtyProgram(argv, cwd=tmp_path))
        return running[-1]

    yield begin
    for program in running:
        program.close()


def reader(sample: dict[str, Any]) -> dict[str, Any] | None:
    return next((t for t in sample["facts"]["threads"] if t["fd_on_tty"]), None)


def blocked(program: PtyProgram, call: str, *, on_tty: bool | None = True) -> dict[str, Any]:
    """The facts of the thread that is blocked in `call`, once there is one."""

    def find(sample: dict[str, Any]) -> list[dict[str, Any]]:
        return [t for t in sample["facts"]["threads"] if t["name"] == call and t["fd_on_tty"] is on_tty]

    sample = program.until(find)
    assert find(sample), sample["facts"]
    return find(sample)[0]


def test_a_read_is_followed_to_the_terminal_with_its_size(start: Start) -> None:
    program = start("import os; os.read(0, 777)")
    found = blocked(program, "read")
    assert found["pid"] == found["tid"] == program.leader
    assert (found["count"], found["watched"], found["timeout"]) == (777, 1, "none")
    assert (found["pgid"], found["sid"], found["tty_ctl"], found["state"]) == (
        program.leader,
        program.leader,
        True,
        "S",
    )


def test_readv_is_a_read(start: Start) -> None:
    blocked(start("import os; os.readv(0, [bytearray(10)])"), "readv")


def test_a_read_of_a_pipe_is_not_a_read_of_the_terminal(start: Start) -> None:
    blocked(start("import os; os.read(os.pipe()[0], 1)"), "read", on_tty=False)


def test_a_read_of_another_terminal_is_not_one_of_this(start: Start) -> None:
    blocked(start("import os, pty; m, s = pty.openpty(); os.read(s, 1)"), "read", on_tty=False)


def test_dev_tty_is_this_terminal_under_another_name(start: Start) -> None:
    blocked(start("import os; os.read(os.open('/dev/tty', os.O_RDONLY), 1)"), "read")


def test_dev_tty_of_a_process_with_another_terminal_is_not_this_one(start: Start) -> None:
    program = start(
        "import os, pty\n"
        "pid, master = pty.fork()\n"
        "os.read(os.open('/dev/tty', os.O_RDONLY), 1) if pid == 0 else os.waitpid(pid, 0)"
    )
    sample = program.until(lambda s: len(s["members"]) == 2)
    blocked(program, "wait4", on_tty=False)
    assert reader(program.sample()) is None
    assert len(sample["members"]) == 2


def test_the_sets_of_select_are_read_from_memory(start: Start) -> None:
    program = start("import os, select; r, w = os.pipe(); os.dup2(r, 900); select.select([900, 0], [], [0, 900], 70)")
    found = blocked(program, "pselect6")
    assert found["watched"] == 2
    assert 69_000 <= found["timeout"] <= 70_000


def test_a_select_that_waits_to_write_to_the_terminal_does_not_read_it(start: Start) -> None:
    program = start("import os, select; r, w = os.pipe(); select.select([r], [], [0])")
    blocked(program, "pselect6", on_tty=False)


def test_the_entries_of_poll_are_read_from_memory(start: Start) -> None:
    program = start(
        "import os, select; r, w = os.pipe(); p = select.poll(); p.register(r, select.POLLIN)\n"
        "p.register(0, select.POLLIN); p.poll(5000000)"
    )
    found = blocked(program, "poll")
    assert (found["watched"], found["timeout"]) == (2, 5_000_000)


def test_a_poll_that_was_stopped_and_continued_is_still_recognised(start: Start) -> None:
    program = start("import select; p = select.poll(); p.register(0, select.POLLIN); p.poll()")
    blocked(program, "poll")
    os.kill(program.leader, signal.SIGSTOP)
    program.until(lambda s: s["facts"]["threads"][0]["state"] == "T")
    os.kill(program.leader, signal.SIGCONT)
    found = blocked(program, "poll")
    assert (found["watched"], found["timeout"]) == (1, "none")


def test_a_sleep_that_was_stopped_and_continued_is_not_taken_for_a_poll(start: Start) -> None:
    program = start("100", "sleep")
    blocked(program, "clock_nanosleep", on_tty=False)
    os.kill(program.leader, signal.SIGSTOP)
    program.until(lambda s: s["facts"]["threads"][0]["state"] == "T")
    os.kill(program.leader, signal.SIGCONT)
    blocked(program, "restart_syscall", on_tty=False)


def test_the_descriptors_of_an_epoll_are_resolved(start: Start) -> None:
    program = start("import select; e = select.epoll(); e.register(0, select.EPOLLIN); e.poll()")
    assert blocked(program, "epoll_wait")["timeout"] == "none"


def test_an_epoll_inside_an_epoll_is_resolved(start: Start) -> None:
    program = start(
        "import select; e = select.epoll(); e.register(0, select.EPOLLIN)\n"
        "outer = select.epoll(); outer.register(e.fileno(), select.EPOLLIN); outer.poll(600)"
    )
    assert blocked(program, "epoll_wait")["timeout"] == 600_000


def test_an_epoll_that_waits_to_write_to_the_terminal_does_not_read_it(start: Start) -> None:
    program = start("import select; e = select.epoll(); e.register(0, select.EPOLLPRI); e.poll()")
    blocked(program, "epoll_wait", on_tty=False)


def test_every_thread_is_looked_at(start: Start) -> None:
    program = start("import threading, time; threading.Thread(target=input).start(); time.sleep(100)")
    found = blocked(program, "read")
    assert found["tid"] != found["pid"] == program.leader
    assert {t["tid"] for t in program.sample()["facts"]["threads"]} == {program.leader, found["tid"]}


def test_a_raw_read_with_a_time_limit_says_so(start: Start) -> None:
    program = start(
        "import os, termios as t; a = t.tcgetattr(0); a[3] &= ~(t.ICANON | t.ECHO); a[6][t.VMIN] = 0\n"
        "a[6][t.VTIME] = 250; t.tcsetattr(0, t.TCSANOW, a)\n"
        "while True: os.read(0, 1)"
    )
    program.until(lambda s: not s["facts"]["tty"]["canonical"])
    assert blocked(program, "read")["timeout"] == 25_000
    tty = program.sample()["facts"]["tty"]
    assert (tty["canonical"], tty["echo"], tty["vmin"], tty["vtime"]) == (False, False, 0, 250)


def test_only_the_job_in_front_is_listed(start: Start) -> None:
    program = start("set -m; sleep 100 & sleep 101", "bash", "-c")
    # A job is the shell's own image until it has become its program: the names say when both have.
    sample = program.until(lambda s: len(s["members"]) == 3 and [t["comm"] for t in s["facts"]["threads"]] == ["sleep"])
    [thread] = sample["facts"]["threads"]
    assert thread["pgid"] == sample["facts"]["tty"]["foreground_pgid"] != program.leader


def test_a_reader_of_another_session_is_listed_too(start: Start) -> None:
    program = start('setsid cat < "$(tty)" & sleep 100', "bash", "-c")
    found = blocked(program, "read")
    assert (found["comm"], found["tty_ctl"]) == ("cat", False)


def test_an_interactive_shell_is_known_by_the_signals_it_ignores(start: Start) -> None:
    shell = blocked(start("--norc", "bash"), "pselect6")
    assert shell["sig_ign"] & 1 << (signal.SIGTSTP - 1)
    script = blocked(start("read x", "bash", "-c"), "read")
    assert not script["sig_ign"] & 1 << (signal.SIGTSTP - 1)


def test_typed_lines_count_as_unread_until_the_program_takes_them(start: Start) -> None:
    program = start("import signal; print('up', flush=True); signal.pause(); input()")
    program.until_output(b"up")
    assert program.sample()["facts"]["in_queue"] == 0
    program.send(b"abc\npart")
    assert program.until(lambda s: s["facts"]["in_queue"])["facts"]["in_queue"] == 4  # the complete line only


def test_a_name_with_spaces_and_parentheses_is_kept_whole(start: Start) -> None:
    program = start("open('/proc/self/comm', 'w').write('a) (b R 1'); print('up', flush=True); input()")
    program.until_output(b"up")  # an interpreter that starts reads, too
    assert blocked(program, "read")["comm"] == "a) (b R 1"


@pytest.fixture
def terminal() -> Iterator[tuple[int, str]]:
    """A PTY without any program: (master, the slave's path)."""
    master, slave = pty.openpty()
    yield master, os.ttyname(slave)
    os.close(master)
    os.close(slave)


def test_the_terminal_is_described_without_any_process(terminal: tuple[int, str]) -> None:
    master, path = terminal
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 31, 97, 0, 0))
    found: Any = terminal_facts.sample(master, path, [])
    assert (found["tty"]["rows"], found["tty"]["cols"]) == (31, 97)
    assert (found["tty"]["canonical"], found["tty"]["echo"], found["tty"]["foreground_pgid"]) == (
        True,
        True,
        0,
    )
    assert (found["threads"], found["truncated"], found["in_queue"]) == ([], False, 0)


def test_pids_that_are_gone_are_left_out(terminal: tuple[int, str]) -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    assert terminal_facts.sample(*terminal, [pid, 0x7FFFFFFE])["threads"] == []


def test_a_sample_says_when_it_was_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import threading as t\nfor _ in range(5): t.Thread(target=t.Event().wait).start()"
    pid, master = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-c", source])
    try:
        end = time.monotonic() + DEADLINE_S
        while len(os.listdir(f"/proc/{pid}/task")) < 6 and time.monotonic() < end:
            time.sleep(SAMPLE_S)
        whole: Any = terminal_facts.sample(master, os.readlink(f"/proc/{pid}/fd/0"), [pid])
        assert (len(whole["threads"]), whole["truncated"]) == (6, False)
        monkeypatch.setattr(terminal_facts, "THREADS_MAX", 3)
        cut: Any = terminal_facts.sample(master, os.readlink(f"/proc/{pid}/fd/0"), [pid])
        assert (len(cut["threads"]), cut["truncated"]) == (3, True)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)


def test_memory_that_is_not_there_is_no_error() -> None:
    wait = blocked_call.resolve(os.getpid(), "poll", [8, 4, 0, 0, 0, 0], blocked_call.Tty("/dev/pts/0"), controls=True)
    assert wait.on_tty is False
    wait = blocked_call.resolve(
        os.getpid(), "poll", [1 << 63, 4, 0, 0, 0, 0], blocked_call.Tty("/dev/pts/0"), controls=True
    )
    assert wait.on_tty is False


def test_a_prompt_that_turns_echo_off_under_the_look_is_not_seen_with_echo_on(monkeypatch: pytest.MonkeyPatch) -> None:
    master, slave = pty.openpty()
    look, looks = read_stat, list[int]()

    def changing(*whom: int) -> Any:
        if not looks:  # as `read -s -p` does, between the look at the mode and the look at who reads
            mode = termios.tcgetattr(slave)
            mode[3] &= ~termios.ECHO
            termios.tcsetattr(slave, termios.TCSANOW, mode)
        looks.append(whom[0])
        return look(*whom)

    monkeypatch.setattr(terminal_facts, "read_stat", changing)
    try:
        seen: Any = terminal_facts.sample(master, os.ttyname(slave), [os.getpid()])
    finally:
        os.close(master)
        os.close(slave)
    assert looks
    assert not seen["tty"]["echo"]
