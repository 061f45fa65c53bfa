"""A program that is the first process of its container, and a home that cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.needs import program

FIRST = """
import os, signal, sys, time
import holdfast

assert os.getpid() == 1
with holdfast.connect(sys.argv[1]) as host:
    run = host.work.run(task="t", lease=600)
    assert run.step("first", lambda: 1) == 1
    pid = host.call("ping")["host"]["pid"]
    os.kill(pid, signal.SIGTERM)  # as a runtime does that stops all of a container's processes
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            if os.waitpid(pid, os.WNOHANG)[0]:  # the host is its child by now: the first process reaps
                break
        except ChildProcessError:
            break
        time.sleep(0.01)
    assert not os.path.exists(f"/proc/{pid}")
    assert run.step("second", lambda: 2) == 2  # starts the host again; the lease outlasts it
    assert host.call("ping")["host"]["pid"] != pid
    run.finish()
print("done", flush=True)
"""
READ_ONLY = """
import os, subprocess, sys
import holdfast

subprocess.run(["mount", "--bind", sys.argv[1], sys.argv[1]], check=True)
subprocess.run(["mount", "-o", "remount,bind,ro", sys.argv[1]], check=True)
try:
    with holdfast.connect() as host:
        host.work.runs()
except holdfast.HoldfastError as e:
    print(e.line(), flush=True)
"""


def apart(*options: str) -> list[str]:
    return [program("unshare"), *(["-r"] if os.getuid() else []), *options, sys.executable, "-c"]


def test_connect_in_the_first_process_of_a_container_and_a_host_that_is_told_to_stop(tmp_path: Path) -> None:
    done = subprocess.run(
        [*apart("-p", "-f", "--mount-proc"), FIRST, str(tmp_path / "home")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


def test_a_home_that_cannot_be_written_is_named_with_the_setting_that_moves_it(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("HOLDFAST_", "XDG_"))} | {"HOME": str(tmp_path)}
    done = subprocess.run(
        [*apart("-m"), READ_ONLY, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False, env=env
    )
    assert str(tmp_path) in done.stdout, done.stderr
    assert "HOLDFAST_HOME" in done.stdout
    assert "Read-only file system" in done.stdout
    assert done.stdout.count("\n") == 1
