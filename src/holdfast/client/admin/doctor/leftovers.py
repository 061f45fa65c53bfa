"""What dead processes left in the home, and living keepers whose folder is gone."""

from __future__ import annotations

import os

from ....log import verify
from ....model.doctor_findings import Finding, fail, ok, some, warn
from ....model.home import Home
from ....system import cgroup_probe, kernel
from ....system.atomic_files import read_json
from .host import KEEPER, is_alive, living, lock_holder

_STALE_MAX = 1000  # every walk of a process tree reads the list of roles


def findings(home: Home) -> list[Finding]:
    if not os.path.isdir(home.path):
        return []
    return [judge_roles(stale_roles(home)), judge_orphans(orphans(home)), judge_folders(nameless(home))]


def without_host(home: Home, *, deep: bool) -> list[Finding]:
    """The part that a running host would answer, as far as the home itself tells it."""
    found = [cgroup_probe.finding()]
    sessions = folders(home)
    if not sessions:
        return found
    alive = [n for n in sessions if lock_holder(home.session(n).keeper_lock) is not None]
    names = {n: str((read_json(home.session(n).manifest) or {}).get("name", n)) for n in sessions}
    found.append(ok("keepers", f"{len(alive)} of {len(sessions)} sessions are running; no host asked them anything"))
    lost = [names[n] for n in sessions if n not in alive and not (read_json(home.session(n).exit) or {}).get("ended")]
    found.append(judge_lost(lost))
    if deep:
        found.append(verify.finding([(names[n], verify.verify(home.session(n).out)) for n in sessions]))
    return found


def judge_lost(lost: list[str]) -> Finding:
    if lost:
        return warn(
            "lost sessions",
            f"no keeper, and no record of the end: {some(lost)}",
            "hold up, then hold status SESSION tells what is left of them",
        )
    return ok("lost sessions", "none")


def folders(home: Home) -> list[str]:
    try:
        return sorted(n for n in os.listdir(home.sessions) if n.startswith("ses_"))
    except OSError:
        return []


def stale_roles(home: Home) -> int:
    return sum(not is_alive(pid, started) for pid, started in kernel.registered(home.roles))


def judge_roles(stale: int) -> Finding:
    seen = f"{stale} entries of processes that were killed" if stale else "no entries of dead processes"
    if stale > _STALE_MAX:
        return warn("roles", seen, "hold down, then hold up: a host that starts clears them")
    return ok("roles", seen + (", cleared when a host starts" if stale else ""))


def orphans(home: Home) -> list[int]:
    """Keepers of this home whose session's folder was removed under them."""
    return [pid for pid in living(home).get(KEEPER, []) if _lock_deleted(pid)]


def _lock_deleted(pid: int) -> bool:
    try:
        links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False  # it ended, or is not ours to see
    return any(link.endswith("/keeper.lock (deleted)") for link in links)


def judge_orphans(pids: list[int]) -> Finding:
    if pids:
        listed = some([str(p) for p in pids])
        return fail(
            "orphans",
            f"keepers whose session's folder was removed: pid {listed}",
            f"nobody can reach their programs any more; kill -9 {' '.join(map(str, pids[:5]))}",
        )
    return ok("orphans", "every keeper has its session's folder")


def nameless(home: Home) -> list[str]:
    return [n for n in folders(home) if read_json(home.session(n).manifest) is None]


def judge_folders(names: list[str]) -> Finding:
    if names:
        return warn(
            "folders",
            f"without a readable manifest: {some(names)}",
            "the host leaves them alone; what output there is lies in out/*.out",
        )
    return ok("folders", "every session's folder has its manifest")
