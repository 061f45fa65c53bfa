"""Processes as the kernel shows them, and honest answers for those that are gone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.observe import processes
from tests.support.child import ended, running

PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


@pytest.fixture
def child(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A Python process with a name of its own, in a folder of its own, marked in its environment."""
    source = "open('/proc/self/comm', 'w').write('odd) (name'); print('up', flush=True); input()"
    env = {**os.environ, "HOLDFAST_TEST_MARK": f"mark-{os.getpid()}"}
    with running([sys.executable, "-c", source], cwd=tmp_path, env=env, **PIPES) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process


def test_a_process_is_described_by_its_own_facts(child: subprocess.Popen[bytes]) -> None:
    [found] = processes.processes([child.pid])
    assert (found["pid"], found["ppid"], found["name"]) == (child.pid, os.getpid(), "odd) (name")
    assert found["command"].startswith(f"{sys.executable} -c open(")
    assert found["state"] in ("sleeping", "running")
    assert found["cpu_s"] >= 0
    assert 1 << 20 < found["rss"] < 1 << 30


def test_cpu_time_counts_up() -> None:
    [before] = processes.processes([os.getpid()])
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    [after] = processes.processes([os.getpid()])
    assert after["cpu_s"] >= before["cpu_s"] + 0.03  # ticks are 10 ms


def test_processes_come_in_the_order_asked_for_and_without_the_dead(child: subprocess.Popen[bytes]) -> None:
    asked = [child.pid, ended(), os.getpid()]
    assert [row["pid"] for row in processes.processes(asked)] == [child.pid, os.getpid()]


def test_a_zombie_is_called_a_zombie_and_named_in_brackets() -> None:
    with running(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it ended, and nobody took its status
        [found] = processes.processes([process.pid])
        assert (found["state"], found["command"], found["rss"]) == ("zombie", "[true]", 0)


def test_a_very_long_command_line_is_cut() -> None:
    with running([sys.executable, "-c", "print('up', flush=True); input()", *["0"] * 9000], **PIPES) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        [found] = processes.processes([process.pid])
        assert 4000 < len(found["command"]) <= 4096


def test_the_working_directory_is_seen_and_that_of_the_dead_is_not(
    child: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    assert processes.cwd(child.pid) == str(tmp_path)
    assert processes.cwd(ended()) is None


def test_the_start_is_a_moment_in_the_past(child: subprocess.Popen[bytes]) -> None:
    started = processes.start_time(child.pid)
    assert started is not None
    assert abs(time.time() - started) < 600
    assert processes.start_ticks(child.pid) == processes.start_ticks(child.pid)
    assert processes.start_time(ended()) is None
    assert processes.start_ticks(ended()) is None


def test_a_process_is_found_by_what_it_was_started_with(child: subprocess.Popen[bytes]) -> None:
    mark = f"mark-{os.getpid()}".encode()
    assert processes.find_by_env(b"HOLDFAST_TEST_MARK", mark) == [child.pid]
    assert processes.environ_has(child.pid, b"HOLDFAST_TEST_MARK", mark)


def test_the_whole_variable_has_to_match(child: subprocess.Popen[bytes]) -> None:
    mark = f"mark-{os.getpid()}".encode()
    assert not processes.environ_has(child.pid, b"TEST_MARK", mark)
    assert not processes.environ_has(child.pid, b"HOLDFAST_TEST_MARK", mark[:-1])
    assert not processes.environ_has(child.pid, b"HOLDFAST_TEST_MARK", mark + b"x")
    assert not processes.environ_has(ended(), b"HOLDFAST_TEST_MARK", mark)


def test_a_variable_behind_a_large_environment_is_found() -> None:
    env = {**os.environ, **{f"V{n}": "x" * 100_000 for n in range(5)}, "Z": "here"}
    with running([sys.executable, "-c", "print('up', flush=True); input()"], env=env, **PIPES) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        assert processes.environ_has(process.pid, b"Z", b"here")
