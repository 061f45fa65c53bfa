"""What a keeper does in its first seconds, done once in the zygote before its memory is frozen and shared.

CPython writes into its own code as it runs it (inline caches), and makes some objects only when they are first needed.
Done here, that is in the pages that every keeper shares; done in a keeper, each has copies of its own. It is also
quicker: what was rehearsed runs specialised from the first time on.

It relies on nothing but that: whichever Python runs it, the worst that a change there does is that it saves less.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from _signal import signal as _handle  # type: ignore[import-not-found]

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
