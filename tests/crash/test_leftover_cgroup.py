"""The cgroup of a session whose keeper was killed: it goes when the last process of the session has gone."""

from __future__ import annotations

import os
import signal

import pytest

from holdfast.system import cgroup
from tests.support.home import HomeForTests, until, wait_fd


def killed(pid: int) -> None:
    fd = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    wait_fd(fd)


@pytest.mark.parametrize("how", ["stop", "rm"])
def test_a_lost_session_leaves_no_cgroup(hold: HomeForTests, how: str) -> None:
    program = "trap '' HUP; exec sleep 1000"  # its terminal goes with the keeper
    s = hold.run("sh", "-c", program, name="held", pids_max=100)
    leaves = [leaf for leaf in cgroup.possible_leaves(s.id) if os.path.isdir(leaf)]
    if not leaves:
        pytest.skip("this machine gives us no cgroup of a session's own")
    pid = s.status().pid
    assert pid is not None
    killed(hold.keeper_pid(s))
    until(lambda: s.status().state == "lost")
    assert any(map(os.path.isdir, leaves)), "its program goes on, in there"
    if how == "stop":
        s.stop()
    else:
        killed(pid)
        assert hold("rm", "held").code == 0
    until(lambda: not any(map(os.path.isdir, leaves)))
