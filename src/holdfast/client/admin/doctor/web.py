"""The HTTP port: whether it is wanted, and whether it is served."""

from __future__ import annotations

from ....model.doctor_findings import Finding, ok, warn
from ....model.home import Home
from ....model.web_address import authority, is_loopback
from .. import web_process


def findings(home: Home) -> list[Finding]:
    wanted, running = web_process.wanted(home), web_process.running(home)
    if wanted is None and running is None:
        return []
    if running is None:
        assert wanted is not None
        where = authority(str(wanted.get("host")), int(wanted.get("port") or 0))
        return [warn("web", f"HTTP is wanted at {where} and nothing serves it", f"see {home.web_log}; hold up")]
    where = authority(running["host"], running["port"])
    found = [ok("web", f"pid {running['pid']} serves HTTP at {where}")]
    if not is_loopback(running["host"]):
        found.append(warn("web", f"{where} is not encrypted, tokens pass in the clear", "use it inside a tunnel"))
    return found
