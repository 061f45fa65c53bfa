"""`hold doctor`'s work: look at this machine, this home and its host, and say what stands how. Starts nothing."""

from __future__ import annotations

from ....model.doctor_findings import Finding, warn
from ....model.errors import HoldfastError
from ....system.owner_trust import home_fault
from ..._sync.host import Host
from . import home as place
from . import host as daemon
from . import keys_and_journal, leftovers, machine, systemd, web


def examine(host: Host, *, deep: bool, now: float) -> list[Finding]:
    """Every check, in the order people read them. Pass a host with autostart off."""
    home = host.home
    findings = machine.findings() + place.findings(home, now)
    if home_fault(home.path) is not None:
        return findings  # nothing in it is looked at, and its socket is not asked
    answer = daemon.ask(home)
    findings += daemon.findings(home, answer, now)
    if answer.about is not None:
        findings += _asked(host, deep=deep)
    else:
        findings += leftovers.without_host(home, deep=deep)
    findings += keys_and_journal.findings(home) + leftovers.findings(home)
    return findings + web.findings(home) + systemd.findings(home, answer.about)


def _asked(host: Host, *, deep: bool) -> list[Finding]:
    """The host's own part. A host that is older than this command may not know the question."""
    try:
        found: list[Finding] = host.call("doctor", deep=deep)
    except HoldfastError as e:
        return [warn("host", f"it could not check itself: {e.message}", "hold down, then hold up: sessions go on")]
    return found
