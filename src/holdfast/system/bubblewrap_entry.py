"""Becoming bubblewrap: with a keyring of its own, and as another user where we are the kernel's root.

Root may write to /proc/sys and to much else by its number alone, without any capability, and a user namespace does not
change that number. So what root isolates is really started as someone else. What it was given it must still be able to
use: those folders are shown through mounts that translate root's files into its own (Linux 5.12, file system by file
system). Inside it is shown as root again, and what it writes is root's.

The keeper's child does this in its own process. `python -I wrapping.py` reads the same order from its standard input,
and is how a start is tried before.
"""

from __future__ import annotations

import ctypes
import json
import os
import stat
import struct
import sys

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from holdfast.system import kernel, seccomp_filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

STAGE = "/tmp"  # covered by a folder of ours while bubblewrap starts: it is always there, and bubblewrap covers it too
_UID_MAX = (1 << 32) - 1

_AT_FDCWD, _AT_EMPTY_PATH, _AT_RECURSIVE = -100, 0x1000, 0x8000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442  # the same numbers on every machine
_TREE_CLONE, _TREE_CLOEXEC, _FROM_EMPTY_PATH, _ATTR_IDMAP = 1, os.O_CLOEXEC, 4, 0x100000
_CLONE_NEWNS, _CLONE_NEWUSER = 0x20000, 0x10000000
_MS_NOSUID, _MS_NODEV, _MS_REC, _MS_SLAVE = 2, 4, 1 << 14, 1 << 19
_PR_SET_NO_NEW_PRIVS = 38
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446
_LANDLOCK_VERSION, _SCOPED_SINCE = 1, 6  # Linux 6.12
_SCOPE_ABSTRACT_SOCKETS = 1
_NOT_SHOWN = "cannot be shown to another user than root"


class CannotEnter(OSError):
    """Why bubblewrap was not even started, in words."""


def kernels_root() -> bool:
    """Whether our uid is the kernel's 0, not only that of a container's user namespace."""
    if os.getuid() != 0:
        return False
    with open("/proc/self/uid_map", encoding="ascii") as file:
        return any(words[:2] == ["0", "0"] for words in map(str.split, file))


def words(wrap: Json) -> tuple[list[bytes], list[int]]:
    """bubblewrap's command line, and the descriptors that it reads.

    Options go through one of them: arguments can be read by everybody, and they hold variables.
    """
    given = b"".join(os.fsencode(word) + b"\0" for word in wrap["options"])
    options, calls = _memory("options", given), _memory("calls", seccomp_filter.program())
    fds = [b"--args", str(options).encode(), b"--seccomp", str(calls).encode()]
    return [os.fsencode(wrap["path"]), *fds, b"--", *map(os.fsencode, wrap["command"])], [options, calls]


def _memory(name: str, data: bytes) -> int:
    fd = os.memfd_create(name, 0)
    while data:
        data = data[os.write(fd, data) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def enter(wrap: Json) -> None:
    """Become bubblewrap. Its own environment is ours, not the session's: it runs outside, where nothing that a program
    inside asks for (a library to preload, say) may have a say."""
    kernel.leave_keyring()
    libc = ctypes.CDLL(None, use_errno=True)
    if wrap.get("uid"):
        _stage(libc, wrap["uid"], wrap["trees"])
        _become(wrap["uid"])
    _leave_abstract_sockets(libc, wrap["path"])
    argv, _ = words(wrap)
    os.execve(argv[0], argv, {os.fsencode(k): os.fsencode(v) for k, v in wrap["env"].items()})


def _stage(libc: ctypes.CDLL, uid: int, trees: list[list[Any]]) -> None:
    """Put what it was given where bubblewrap finds it: STAGE/0, STAGE/1, … in a mount namespace of our own.

    The folders above may be root's alone: bubblewrap, which is the other user by then, could not reach the originals.
    """
    translated = _namespace(uid)
    found = [(_tree(libc, path, must, translated), path) for path, must in trees]
    os.close(translated)
    _check(libc.unshare(_CLONE_NEWNS), "no mount namespace")
    _check(libc.mount(b"none", b"/", None, _MS_REC | _MS_SLAVE, None), "no mount namespace of its own")
    made = libc.mount(b"tmpfs", STAGE.encode(), b"tmpfs", _MS_NOSUID | _MS_NODEV, b"mode=755")
    _check(made, f"no folder at {STAGE}")
    for n, (tree, path) in enumerate(found):
        place = f"{STAGE}/{n}"
        if stat.S_ISDIR(os.fstat(tree).st_mode):
            os.mkdir(place, 0o755)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
        moved = libc.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, place.encode(), _FROM_EMPTY_PATH)
        _check(moved, f"{path} {_NOT_SHOWN}")
        os.close(tree)


def _tree(libc: ctypes.CDLL, path: str, must: bool, translated: int) -> int:
    """A mount of its own of what lies at `path`, with root's files as the other user's. Where its file system cannot
    do that, it is shown as it is, unless it `must` be usable like one's own."""
    flags = _TREE_CLONE | _TREE_CLOEXEC | _AT_RECURSIVE
    tree: int = libc.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags)
    _check(tree, f"{path} {_NOT_SHOWN}")
    wanted = struct.pack("QQQQ", _ATTR_IDMAP, 0, 0, translated)
    done = libc.syscall(_MOUNT_SETATTR, tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, wanted, len(wanted))
    if must:
        _check(done, f"{path} {_NOT_SHOWN}")
    return tree


def _namespace(uid: int) -> int:
    """A user namespace in which 0 is `uid` and all others are themselves; only its map is used."""
    libc = ctypes.CDLL(None, use_errno=True)
    ready, tell = os.pipe2(os.O_CLOEXEC)
    wait, go = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os.close(go)  # else it would wait for itself
        os.write(tell, b"1" if libc.unshare(_CLONE_NEWUSER) == 0 else b"0")
        os.read(wait, 1)
        os._exit(0)
    try:
        if os.read(ready, 1) != b"1":
            raise CannotEnter("no user namespace")
        above = uid + 1
        table = f"0 {uid} 1\n1 1 {uid - 1}\n{above} {above} {_UID_MAX - above}\n"
        for name in ("uid_map", "gid_map"):
            with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
                file.write(table)
        return os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        for fd in (ready, tell, wait, go):
            os.close(fd)
        os.waitpid(pid, 0)


def _become(uid: int) -> None:
    for fd in range(3):
        if os.isatty(fd) or stat.S_ISFIFO(os.fstat(fd).st_mode):
            os.fchown(fd, uid, -1)  # else /dev/stdin and its like could not be opened inside
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def _leave_abstract_sockets(libc: ctypes.CDLL, bubblewrap: str) -> None:
    """Sockets that have a name but no file (a bus, an X server) belong to the network, which may be shared: those that
    were made outside are out of reach, where the kernel can do that."""
    if libc.syscall(_LANDLOCK_CREATE, None, 0, _LANDLOCK_VERSION) < _SCOPED_SINCE:
        return
    if os.stat(bubblewrap).st_mode & stat.S_ISUID:  # it needs to gain rights, which is what this gives up
        return
    wanted = struct.pack("QQQ", 0, 0, _SCOPE_ABSTRACT_SOCKETS)
    rules = libc.syscall(_LANDLOCK_CREATE, wanted, len(wanted), 0)
    if rules >= 0:
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.syscall(_LANDLOCK_RESTRICT, rules, 0)
        os.close(rules)


def _check(result: int, what: str) -> None:
    if result < 0:
        raise CannotEnter(f"{what}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    ordered = json.loads(sys.stdin.buffer.read())
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    try:
        enter(ordered)
    except OSError as e:
        sys.exit(str(e))
