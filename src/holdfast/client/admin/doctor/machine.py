"""This machine: Python, the terminal engine, limits, what /proc and netlink let us see, isolation."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys

from ....model.doctor_findings import Finding, fail, ok, warn
from ....model.errors import HoldfastError
from ....system import bubblewrap, programs
from .guarded import guarded

_PYTHON_MIN = (3, 11)
_DESCRIPTORS_MIN = 1024  # one for each session, and a few for each client
_PROCESSES_SPARE_MIN = 200  # a handful of sessions with a build in one of them
_PTYS_SPARE_MIN = 16  # each session with a terminal takes one
_LOAD_S = 30.0  # a cold disk; warm it takes a third of a second
_ROOT = os.path.dirname(programs.ROOT)
_LOAD_HOST = "import sys; sys.path.insert(0, sys.argv[1]); import holdfast.host.daemon"
_PROBE_S = 5.0  # the kernel answers at once; longer means that something in between swallowed it


def findings() -> list[Finding]:
    checks = [
        ("python", python),
        ("modules", modules),
        ("terminal engine", engine),
        ("open files", open_files),
        ("processes", processes),
        ("terminals", ptys),
        ("ptrace", ptrace),
        ("process list", hidepid),
        ("sockets", sock_diag),
        ("isolation", isolation),
    ]
    return [guarded(name, check) for name, check in checks]


def python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] < _PYTHON_MIN:
        return fail("python", f"{version} at {sys.executable}", "install Python 3.11 or newer")
    if not os.access(sys.executable or "", os.X_OK):
        return fail("python", f"{sys.executable} is gone", "install Holdfast again: no new session can start")
    return ok("python", f"{version} at {sys.executable}")


def modules() -> Finding:
    """Load what the host loads, as it is started: without this user's Python set-up."""
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", _LOAD_HOST, _ROOT],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LOAD_S,
            check=False,
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        return warn("modules", f"the host takes longer than {_LOAD_S:.0f} s to load", "is the machine very busy?")
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return fail(
            "modules",
            f"the host cannot load: {words[-1][:200] if words else done.returncode}",
            f"install Holdfast for {sys.executable}: it is started without PYTHONPATH",
        )
    return ok("modules", "the host loads")


def engine() -> Finding:
    from ....term.ghostty import TerminalEngineMissing
    from ....term.screen import Screen

    try:
        with Screen(20, 2) as screen:
            screen.feed(b"\x1b[1mready")
            if screen.text().split() != ["ready"]:
                return fail("terminal engine", "it does not show what it was given", "pip install pyghostty==0.1.3")
    except TerminalEngineMissing as e:
        return fail("terminal engine", str(e), "without it there is no attach, no screen and no exec")
    return ok("terminal engine", "it renders")


def open_files() -> Finding:
    import resource

    return judge_open_files(*resource.getrlimit(resource.RLIMIT_NOFILE))


def judge_open_files(soft: int, hard: int) -> Finding:
    seen = f"{_number(soft)} per process, at most {_number(hard)}"
    if 0 <= soft < _DESCRIPTORS_MIN:
        return warn("open files", seen, f"ulimit -n {_DESCRIPTORS_MIN} before the host starts: each session needs one")
    return ok("open files", seen)


def processes() -> Finding:
    import resource

    soft = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    uid = os.getuid()
    own = everybody = 0
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            owner = os.stat(f"/proc/{name}").st_uid
            everybody += 1
            own += owner == uid
        except FileNotFoundError:
            continue
    return judge_processes(own, soft if uid else -1, everybody, int(_read("/proc/sys/kernel/pid_max")))


def judge_processes(own: int, own_max: int, everybody: int, pid_max: int) -> Finding:
    """Both bounds: this user's own, and the machine's. Root has none of its own (-1)."""
    spare = min(pid_max - everybody, own_max - own if own_max >= 0 else pid_max)
    seen = f"{own} of {_number(own_max)} ours, {everybody} of {pid_max} on the machine"
    if spare <= 0:
        return fail("processes", seen, "no session can start: end some, or raise ulimit -u or kernel.pid_max")
    if spare < _PROCESSES_SPARE_MIN:
        return warn("processes", seen, "raise ulimit -u or kernel.pid_max before it is full")
    return ok("processes", seen)


def ptys() -> Finding:
    used, limit = int(_read("/proc/sys/kernel/pty/nr")), int(_read("/proc/sys/kernel/pty/max"))
    return judge_ptys(used, limit)


def judge_ptys(used: int, limit: int) -> Finding:
    seen = f"{used} of {limit} in use"
    if used >= limit:
        return fail("terminals", seen, "no terminal session can start: sysctl kernel.pty.max=4096, as root")
    if limit - used < _PTYS_SPARE_MIN:
        return warn("terminals", seen, "sysctl kernel.pty.max=4096, as root")
    return ok("terminals", seen)


def ptrace() -> Finding:
    try:
        scope = int(_read("/proc/sys/kernel/yama/ptrace_scope"))
    except FileNotFoundError:
        return ok("ptrace", "not restricted (no yama)")
    return judge_ptrace(scope, root=os.geteuid() == 0)


def judge_ptrace(scope: int, *, root: bool) -> Finding:
    """A keeper looks at its own descendants, which scope 1 allows."""
    seen = f"kernel.yama.ptrace_scope is {scope}"
    if scope <= 1 or (scope == 2 and root):
        return ok("ptrace", seen + ": keepers may look at their programs")
    return warn("ptrace", seen, "who waits for input is less certain so; sysctl kernel.yama.ptrace_scope=1")


def hidepid() -> Finding:
    return judge_hidepid(_read("/proc/self/mountinfo"), root=os.geteuid() == 0)


def judge_hidepid(mountinfo: str, *, root: bool) -> Finding:
    """`hidepid` in the options of the last file system mounted at /proc."""
    options = ""
    for line in mountinfo.splitlines():
        words = line.split()
        if len(words) > 6 and words[4] == "/proc":
            options = words[5] + "," + words[-1]
    hidden = next((o.partition("=")[2] for o in options.split(",") if o.startswith("hidepid=")), "0")
    if hidden in ("0", "off") or root:
        return ok("process list", "all processes can be seen")
    return warn(
        "process list",
        f"/proc is mounted with hidepid={hidden}",
        "programs of a session that change their user (sudo) are not seen; mount /proc without it",
    )


def sock_diag() -> Finding:
    """One small question of the kind the host asks: listening TCP sockets."""
    request = struct.pack("=IHHIIBBBBI48x", 72, 20, 0x301, 1, 0, socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 1 << 10)
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, 4) as link:
            link.settimeout(_PROBE_S)
            link.send(request)
            kind = struct.unpack_from("=IH", link.recv(1 << 16))[1]
    except OSError as e:
        return _no_sock_diag(e.strerror or str(e))
    return _no_sock_diag("the kernel refused") if kind == 2 else ok("sockets", "the kernel answers (sock_diag)")


def _no_sock_diag(why: str) -> Finding:
    return fail(
        "sockets",
        f"the kernel does not list sockets: {why}",
        "ports and connections stay empty; allow netlink sock_diag (a seccomp profile?)",
    )


def isolation() -> Finding:
    """A whole isolated start, in folders of its own: the code and the options that sessions use."""
    try:
        path, complaint = bubblewrap.works_here()
    except HoldfastError as e:
        return warn("isolation", e.message, e.hint)
    if complaint:
        return warn(
            "isolation",
            f"bubblewrap ({path}) does not work here: {complaint}",
            bubblewrap.advice(complaint, "hold run --isolate will not work"),
        )
    return ok("isolation", f"bubblewrap works ({path})")


def _number(limit: int) -> str:
    return "any number" if limit < 0 else str(limit)


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()
