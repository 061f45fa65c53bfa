"""Stopping the daemon, and being sure that it has stopped. Sessions go on."""

from __future__ import annotations

import os
import select

from ...model.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._sync.host import Host

_GONE_S = 10.0  # a daemon told to stop writes its keyframes first


def daemon_pid(host: Host) -> int | None:
    """The daemon that answers for this home, whoever started it. Pass a host with autostart off."""
    try:
        return int(host.call("ping")["host"]["pid"])
    except HoldfastError:
        return None


def stop_daemon(host: Host, *, only: int | None = None, why: str | None = None) -> None:
    """Tell the daemon to stop, if there is one (`only` that pid's, where given), and return when it has ended."""
    pid = daemon_pid(host)
    if pid is None or only not in (None, pid):
        return
    try:
        gone = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        host.call("down", why=why)
        if not select.select([gone], [], [], _GONE_S)[0]:
            raise HoldfastError("timeout", f"the host (pid {pid}) does not stop", "hold doctor")
    finally:
        os.close(gone)
        host.close()
