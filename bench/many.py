"""What 500 idle sessions cost in memory and processor time."""

from __future__ import annotations

import statistics
import time

from . import proc
from .ours import Ours
from .peers import Dtach, Tmux
from .result import Result, Target, number

KEY = "many"
_SETTLED_S = 3.0  # past the last fdatasync and the last event of the sessions just started
_MB = 1024.0  # kB
_PEER_SESSIONS = 50  # enough for a mean; theirs hold no output yet, and neither do ours


def measure(quick: bool) -> list[Result]:
    count, seconds = (50, 3.0) if quick else (500, 10.0)
    with Ours() as ours, Tmux() as tmux, Dtach() as dtach:
        began = time.monotonic()
        sessions = [ours.run("cat") for _ in range(count)]
        started_s = time.monotonic() - began
        daemon, zygote = ours.daemon_pid(), ours.zygote_pid()
        keepers = [ours.keeper_pid(s) for s in sessions]
        ours.host.close()
        proc.settle([daemon, *keepers], _SETTLED_S)
        ticks = proc.cpu_ticks(daemon)
        time.sleep(seconds)
        ticks = proc.cpu_ticks(daemon) - ticks
        sizes = [proc.pss_kb(pid) / _MB for pid in keepers]
        for _ in range(_PEER_SESSIONS):
            tmux.hold("cat")
            dtach.hold("cat")
        tmux_mb = proc.pss_kb(tmux.pid) / _MB / (_PEER_SESSIONS + 1)  # the server keeps one of its own
        dtach_mb = statistics.mean(proc.pss_kb(pid) / _MB for pid in dtach.pids)
        daemon_mb, zygote_mb = proc.pss_kb(daemon) / _MB, proc.pss_kb(zygote) / _MB
    mean = statistics.mean(sizes)
    return [
        Result(
            key=f"{KEY}-memory",
            name=f"memory of a keeper, {count} idle sessions",
            unit="MB PSS",
            ours=mean,
            peers={"dtach, one session": dtach_mb, "tmux server ÷ sessions": tmux_mb},
            ratios={"dtach, one session": mean / dtach_mb, "tmux server ÷ sessions": mean / tmux_mb},
            targets=(Target("mean per session", mean, 1.5, "lower", "MB"),),
            notes=(
                f"largest {number(max(sizes))} MB; host daemon {number(daemon_mb)} MB, zygote {number(zygote_mb)} MB",
                f"{count} sessions were started one after the other in {number(started_s)} s",
            ),
        ),
        Result(
            key=f"{KEY}-processor",
            name=f"processor time of the daemon in {seconds:.0f} s, {count} idle sessions",
            unit="ticks of 10 ms",
            ours=ticks,
            targets=(Target("ticks", ticks, 0, "lower", ""),),
        ),
    ]
