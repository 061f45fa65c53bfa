"""The home: is it there, is it ours alone, on what disk, with how much room; and is the clock sane."""

from __future__ import annotations

import os
import stat

from ....model.doctor_findings import Finding, fail, ok, warn
from ....model.home import Home
from ....model.limits import RETAIN_BYTES, SEGMENT_BYTES
from ....system import owner_trust
from .guarded import guarded

_INODES_MIN = 1000  # a session takes about ten files and its execs three each
_CLOCK_SLACK_S = 120.0  # file systems and clocks disagree by less; a stepped clock by more
# Locks and sockets of these are another machine's business, or nobody's.
_REMOTE = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "fuse.sshfs"})


def findings(home: Home, now: float) -> list[Finding]:
    try:
        about = os.stat(home.path)
    except FileNotFoundError:
        return [_absent(home.path)]
    except OSError as e:
        return [fail("home", f"{home.path}: {e.strerror}", "set HOLDFAST_HOME to a folder of yours")]
    if not stat.S_ISDIR(about.st_mode):
        return [fail("home", f"{home.path} is not a folder", "set HOLDFAST_HOME to a folder of yours")]
    return [
        judge_home(
            home.path, about, owner_trust.home_fault(home.path), writable=os.access(home.path, os.W_OK | os.X_OK)
        ),
        guarded("file system", lambda: judge_file_system(_file_system(home.path))),
        guarded("disk", lambda: _disk(home.path)),
        guarded("clock", lambda: judge_clock(now, _newest(home))),
    ]


def _absent(path: str) -> Finding:
    above = os.path.dirname(path)
    while above != os.path.dirname(above) and not os.path.exists(above):
        above = os.path.dirname(above)
    if not os.access(above, os.W_OK | os.X_OK) or not os.path.isdir(above):
        return fail("home", f"{path} cannot be made in {above}", "set HOLDFAST_HOME to a folder of yours")
    return ok("home", f"{path} is not there yet; the first command makes it")


def judge_home(path: str, about: os.stat_result, fault: tuple[str, str] | None, *, writable: bool) -> Finding:
    """`fault` is why every other command refuses it, if they do."""
    mode = stat.S_IMODE(about.st_mode)
    seen = f"{path}, mode {mode:04o}, owner {about.st_uid}"
    if fault is not None:
        return fail("home", f"{seen}: {fault[0]}", fault[1])
    if not writable:
        return fail("home", seen, "it cannot be written: chmod 700, or is the disk mounted read-only?")
    if mode & 0o055:
        return warn("home", seen, f"others can look into it: chmod 700 {path}")
    return ok("home", seen)


def _file_system(path: str) -> str:
    device = os.stat(path).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    with open("/proc/self/mountinfo", encoding="utf-8", errors="replace") as f:
        for line in f:
            words = line.split()
            if len(words) > 6 and words[2] == wanted and "-" in words:
                return words[words.index("-") + 1]
    return "unknown"


def judge_file_system(kind: str) -> Finding:
    if kind in _REMOTE:
        return warn(
            "file system",
            f"{kind}, over a network",
            "locks and sockets belong on a local disk: set HOLDFAST_HOME to one",
        )
    return ok("file system", kind)


def _disk(path: str) -> Finding:
    disk = os.statvfs(path)
    inodes = disk.f_favail if disk.f_files else -1  # some file systems make them as needed
    return judge_disk(disk.f_bavail * disk.f_frsize, inodes, usage(path))


def judge_disk(free: int, inodes: int, used: int) -> Finding:
    """`inodes` is -1 where the file system has no fixed number of them."""
    seen = f"{_size(free)} free, {_size(used)} used by the home" + (f", {inodes} inodes free" if inodes >= 0 else "")
    advice = "hold prune removes ended sessions; else make room on that disk"
    if free < SEGMENT_BYTES or inodes == 0:
        return fail("disk", seen, "output is being lost: " + advice)
    if free < 2 * RETAIN_BYTES or 0 <= inodes < _INODES_MIN:
        return warn("disk", seen, advice)
    return ok("disk", seen)


def usage(path: str) -> int:
    """Bytes on disk below `path`; what vanishes meanwhile does not count."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue
    return total


def _newest(home: Home) -> float:
    """The latest time this home has seen, and that of this program's own files: the clock cannot be before it."""
    times = [os.stat(__file__).st_mtime]
    for path in (home.host_file, home.log, home.running_file):
        try:
            times.append(os.stat(path).st_mtime)
        except OSError:
            continue
    return max(times)


def judge_clock(now: float, newest: float) -> Finding:
    if now + _CLOCK_SLACK_S < newest:
        return warn(
            "clock",
            f"it shows a time {newest - now:.0f} s before files that were written already",
            "set it (is time synchronisation running?): logs --since and ages would be wrong",
        )
    return ok("clock", "not behind what was written here before")


def _size(count: int) -> str:
    value, unit = float(count), "B"
    for unit in ("B", "kB", "MB", "GB"):
        if value < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:.1f} {unit}"
