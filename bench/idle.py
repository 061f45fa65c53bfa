"""How often the host and its keepers wake up when nothing happens and nobody asks."""

from __future__ import annotations

import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from . import proc
from .ours import SHELL, Ours
from .peers import Tmux
from .result import Result, Target

KEY = "idle"
_SESSIONS = 20
_SETTLED_S = 3.0  # past the last fdatasync, which comes about a second after the last output
_ATTACHED_S = 2.0  # see `_count`


def measure(quick: bool) -> list[Result]:
    seconds = 5.0 if quick else 30.0
    with Ours() as ours, Tmux() as tmux:
        sessions = [ours.run(*SHELL) for _ in range(_SESSIONS)]
        for session in sessions:
            session.wait(input=True, timeout=30)
            tmux.hold(*SHELL)
        daemon, zygote = ours.daemon_pid(), ours.zygote_pid()
        keepers = [ours.keeper_pid(s) for s in sessions]
        ours.host.close()  # nobody asks: not even an open connection of this process
        everyone = [daemon, zygote, *ours.spares(), *keepers]
        proc.settle(everyone, _SETTLED_S)
        calls, switches, which = _count(everyone, seconds, ours.daemon_pid)
        tmux_calls, _, _ = _count([tmux.pid], seconds, lambda: tmux.screen("s1"))
    return [
        Result(
            key=KEY,
            name=f"wake-ups in {seconds:.0f} s of {_SESSIONS} idle sessions",
            unit="system calls",
            ours=calls,
            peers={"tmux server": tmux_calls},
            targets=(
                Target("system calls", calls, 0, "lower", ""),
                Target("context switches", switches, 0, "lower", ""),
            ),
            notes=(
                f"host, zygote, spare and {_SESSIONS} keepers, bash at its prompt; counted by `strace` and the kernel",
                *((f"seen: {which}",) if which else ()),
            ),
        )
    ]


def _count(pids: Sequence[int], seconds: float, ask: Callable[[], object]) -> tuple[int, int, str]:
    """System calls and context switches of `pids` within `seconds`, and a word on which calls.

    strace has to stop a process to attach to it. That interrupts the wait it sleeps in, which then begins anew: one
    or two lines per thread that are strace's own doing. They all come at once, so what is counted begins a little after
    the last process was attached, and ends before strace lets go, which disturbs them again. The kernel's count of
    context switches over the same stretch needs no tracer and is a second opinion. At the end `ask` wakes them on
    purpose: a method that does not see that would find zero anywhere.
    """
    with tempfile.TemporaryDirectory(prefix="hold-bench-strace-") as folder:
        log = Path(folder, "calls")
        words = ["strace", "-f", "-ttt", "-o", str(log)]
        for pid in pids:
            words += ["-p", str(pid)]
        # Unbuffered: a line that waits in a buffer of ours would not be seen by select.
        tracer = subprocess.Popen(words, stderr=subprocess.PIPE, bufsize=0)
        try:
            _attached(tracer, len(pids))
            time.sleep(_ATTACHED_S)
            began, before = time.time(), proc.switches(pids)
            time.sleep(seconds)
            ended, after = time.time(), proc.switches(pids)
            ask()
            asked, woken = time.time(), proc.switches(pids)
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.communicate(timeout=30)
        seen = [line.split(None, 2) for line in log.read_text().splitlines()]
    if woken == after or not any(ended < float(at) <= asked for _, at, _ in seen):
        raise RuntimeError("a request woke nobody: neither count can be trusted")
    calls = [(pid, call) for pid, at, call in seen if began <= float(at) <= ended]
    kinds = sorted({f"{call.split('(')[0]} by {pid}" for pid, call in calls})
    return len(calls), after - before, ", ".join(kinds[:8])


def _attached(tracer: subprocess.Popen[bytes], count: int) -> None:
    """strace says on stderr that it has attached to each."""
    assert tracer.stderr is not None
    deadline = time.monotonic() + 30
    while count:
        if not select.select([tracer.stderr], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise TimeoutError("strace did not attach")
        line = tracer.stderr.readline()
        if not line:
            raise RuntimeError("strace ended; may it trace here?")
        count -= b" attached" in line
