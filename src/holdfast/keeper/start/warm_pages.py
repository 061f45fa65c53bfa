"""What a keeper does in its first seconds, done once in the zygote before its memory is frozen and shared.

CPython writes into its own code as it runs it (inline caches), and makes some objects only when they are first needed.
Done here, that is in the pages that every keeper shares; done in a keeper, each has copies of its own. It is also
quicker: what was rehearsed runs specialised from the first time on.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from _signal import signal as _handle  # type: ignore[import-not-found]
from _thread import allocate_lock

from ...model.home import SessionFolder
from ...system import kernel
from ...wire import keeper_frames
from ..channels.handshake import status
from ..keeper import Keeper
from .program import Launch, open_ends
from .spare import next_start, settle_in
from .take_session import order, start, take_lock

_FOLDER = "rehearsal"
_ROUNDS = 20  # CPython 3.11 specialises a function after eight calls, and an instruction some runs later
# CPython's allocator of small objects: sizes in steps of 16 bytes, each from pools of 16 KB.
_BLOCK, _BLOCKS_MAX, _POOL_BYTES = 16, 512, 16 << 10
_BLOCKS_MIN = 48  # the smallest that holds a string of bytes nobody shares
_BYTES_HEAD = sys.getsizeof(b"")
# The C library's allocator has all that is larger, with 16 bytes around each. Past 1 KB it takes whatever gap is large
# enough, so halves will do; below, it keeps a list of gaps for every size.
_CHUNKS, _CHUNK_HEAD = (64 << 10, 32 << 10, 16 << 10, 8 << 10, 4 << 10, 2 << 10, 1 << 10), 16
_IN_A_ROW = 4  # chunks side by side: the end of the heap, or a gap that makes no difference any more
_TAKEN_MAX = 1 << 20  # bytes of one size: an end where an allocator is none of these
_LOCKS = 4096  # of 48 bytes: a forked interpreter makes eight, and would look for them in what is left of larger gaps
# The C library gives the end of its heap back to the kernel as soon as 128 KB of it are free, which in a flood is after
# every chunk. Once it has freed a block of this size it waits for twice as much.
_HEAP_END = 256 << 10
_EPOCHS = 1 << 62  # granted without a word to the disk: nobody's input depends on them
_SIZE = [80, 24]
_ME = {"operator": "op_rehearsal", "kind": "human", "name": "rehearsal"}
_SIGCHLD, _IGNORED = int(signal.SIGCHLD), int(signal.SIG_IGN)  # the zygote has it ignored


def rehearse(roles: str) -> None:
    """Live through a short session in a folder in `roles`, removed again. Where that fails, only the gain is lost."""
    # Its own: the zygote of a host that was killed may be at it still. What one left that was killed itself goes.
    mine = f"{_FOLDER}.{os.getpid()}"
    for name in os.listdir(roles):
        stage, _, pid = name.partition(".")
        if stage == _FOLDER and (name == mine or not os.path.exists(f"/proc/{pid or 0}")):
            _remove(os.path.join(roles, name))
    folder = os.path.join(roles, mine)
    try:
        os.makedirs(folder, mode=0o700)
        for _ in range(_ROUNDS):
            _session(SessionFolder(folder), _be_spare(folder))
    except OSError:
        pass
    finally:
        _handle(_SIGCHLD, _IGNORED)
        _remove(folder)


def _be_spare(folder: str) -> tuple[socket.socket, socket.socket]:
    """What comes before a session is known, up to its start; the host's end and the keeper's of its first channel."""
    host, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    alive, held = os.pipe2(os.O_CLOEXEC)
    one_of_three = os.dup(alive)
    registration, line, null = settle_in(ours.fileno(), folder, "hold-zygote", (one_of_three,))
    kernel.become_subreaper()
    kernel.become_subreaper(False)
    launch = Launch.prepare(pipes=False, fork=os.getpid)  # everything of it but the fork
    launch.close()
    near, far = socket.socketpair()
    socket.send_fds(host, [b"t" + os.fsencode(folder)], [far.fileno()])
    told = next_start(line, alive)
    assert told is not None
    for fd in (alive, held, one_of_three, null, line.detach()):
        os.close(fd)
    for sock in (host, ours, far):
        sock.close()
    os.unlink(registration)
    return near, socket.socket(fileno=told[2])


def _session(folder: SessionFolder, ends: tuple[socket.socket, socket.socket]) -> None:
    """The start of a session whose program is never there, and some of its life."""
    manifest = {"id": "ses_rehearsal", "token": "t", "generation": 1, "kind": "terminal", "size": _SIZE, "tty": "/"}
    line, theirs = os.pipe2(os.O_CLOEXEC)
    os.write(theirs, json.dumps(manifest).encode() + b"\n")
    os.close(theirs)
    orders, ours = os.pipe2(os.O_CLOEXEC)
    program = open_ends(False)[0]
    host, channel = ends
    host.send(keeper_frames.message(keeper_frames.HELLO, {"v": 1, "token": "t", "role": "host", "via": "host", **_ME}))
    os.close(take_lock(folder))
    launch = order(folder, False, Launch(program, False, ours, line))
    os.close(orders)
    launch.overdue = _never
    kernel.set_name("hold-zygote")
    keeper = start(folder, launch, channel)
    keeper.epoch_ceiling = _EPOCHS
    try:
        keeper.begin()
        _converse(keeper, host)
    finally:
        signal.set_wakeup_fd(-1)
        _forsake(keeper)
        host.close()
        for fd in (program.master, program.slave):
            os.close(fd)


def _never() -> None:
    """A start that takes long: this one does not."""


def _forsake(keeper: Keeper) -> None:
    """Close all that is the keeper's own; there is no program."""
    for channel in list(keeper.channels.values()):
        keeper.drop(channel)
    keeper.log.close()
    keeper.record.spool.close()
    keeper.listener.close()
    keeper.poll.close()
    for fd in (keeper.sync_read, keeper.sync_write, keeper.wake_read, keeper.wake_write):
        os.close(fd)


def _converse(keeper: Keeper, host: socket.socket) -> None:
    """A host that said hello asks, types and reads; the program prints."""
    asked = [
        keeper_frames.u64_frame(keeper_frames.WATCH, 0),
        keeper_frames.message(keeper_frames.ACT, {"id": 1, "op": "status"}),
        keeper_frames.message(keeper_frames.ACT, {"id": 2, "op": "sample", "quick": True}),
        keeper_frames.message(keeper_frames.ACT, {"id": 2, "op": "sample", "members": [os.getpid()]}),
        keeper_frames.message(
            keeper_frames.ACT,
            {"id": 3, "op": "input", "data": "eAo=", "as": _ME, "hold": "exe_1", "what": "exec", "exec_id": "exe_1"},
        ),
        keeper_frames.message(keeper_frames.ACT, {"id": 4, "op": "drop", "hold": "exe_1"}),
        keeper_frames.message(keeper_frames.ACT, {"id": 5, "op": "events", "after": 0, "max": 256, "now": True}),
        keeper_frames.message(keeper_frames.ACT, {"id": 6, "op": "ack", "upto": 1}),
        keeper_frames.read(0),
        keeper_frames.input_frame(1, 0, b"x\n"),
    ]
    for data in asked:
        host.send(data)
        keeper.turn(0)
        os.write(keeper.program.slave, b"x")
        keeper.turn(0)
    status(keeper)


def _remove(folder: str) -> None:
    """As far as it is there: another zygote may be removing a dead one's too."""
    for path, folders, files in os.walk(folder, topdown=False):
        for act, names in ((os.unlink, files), (os.rmdir, folders)):
            for name in names:
                try:
                    act(os.path.join(path, name))
                except OSError:
                    pass
    try:
        os.rmdir(folder)
    except OSError:
        pass


def fill_up() -> list[object]:
    """Take every gap that the allocators have, so that what a keeper makes lies together on new pages.

    Otherwise each of its first objects goes into another gap on another shared page, which is then copied whole.
    """
    kept: list[object] = []
    bytes(_HEAP_END)
    for size in (*_CHUNKS, *range(_CHUNKS[-1], _BLOCKS_MAX, -_BLOCK)):
        _neighbours(size, size + _CHUNK_HEAD, _IN_A_ROW, kept)
    kept += (allocate_lock() for _ in range(_LOCKS))
    for size in range(_BLOCKS_MIN, _BLOCKS_MAX + 1, _BLOCK):
        _neighbours(size, size, _POOL_BYTES // size // 2, kept)  # so many: a pool that nobody else is in
        # To its last block: the next begins a new pool, whose head and first blocks are on one page.
        for _ in range((_POOL_BYTES - id(kept[-1]) % _POOL_BYTES) // size - 1):
            kept.append(bytes(size - _BYTES_HEAD))
    return kept


def _neighbours(size: int, distance: int, count: int, kept: list[object]) -> None:
    """Take blocks of this size until so many in a row came from one place: all smaller places are taken then."""
    in_a_row, last = 0, 0
    for _ in range(_TAKEN_MAX // size):
        kept.append(bytes(size - _BYTES_HEAD))
        in_a_row = in_a_row + 1 if id(kept[-1]) - last == distance else 0
        last = id(kept[-1])
        if in_a_row == count:
            break
