"""The keeper's loop: the only owner of one session's program, log, controls and channels.

One epoll, no threads but a passing one for fdatasync, no timer unless something is due. Order in a turn:
output first (the program must never wait for a client), then clients, then deaths.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import time

from ..log.layout import STDERR, STDOUT, TERMINAL, end_on_disk
from ..log.reader import LogReader
from ..log.writer import OutputLog
from ..model import limits
from ..model.home import SessionFolder
from ..model.sessions.controls import Controls
from ..model.sessions.hold_end import Times
from ..model.sessions.program_status import Listener
from ..system import kernel, process_tree
from ..system.atomic_files import read_json
from ..wire import keeper_frames
from .channels.channel import Channel
from .channels.frames_in import receive
from .channels.handshake import attached, end_silent
from .controls import controls
from .controls.act_record import Record
from .controls.applied_requests import Applied
from .controls.holding_processes import Processes
from .controls.input_queue import InputQueue
from .end.session_end import finish, main_ended
from .end.stop_tree import Stopping
from .log_sync import Syncing, start_sync
from .observe.terminal_queries import look_for_query
from .start import bubblewrapped
from .start.program import Program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]
    from collections.abc import Callable

_SHORT_READ = 1024  # so little means that the source is drained: asking again would only cost an echo its time
_CATCH_UP = 4  # turns: more than a terminal buffers, and an end where a program floods
_ACCEPT_AGAIN_S = 0.5  # between two tries to let somebody in while there is no descriptor for it
_CHUNK_MAX = 512 << 10  # joined reads per wake: half a frame


class Keeper:
    """Everything one session is, in one process."""

    # Slots: a dictionary of so many names would count references to each of them, on pages that keepers share.
    __slots__ = (
        "_accept_due",
        "_sources",
        "_sync_due",
        "_write_blocked",
        "applied",
        "blame",
        "channels",
        "controls",
        "done",
        "ended",
        "epoch_ceiling",
        "exit",
        "folder",
        "hello_due",
        "input",
        "input_at",
        "leaves",
        "listener",
        "log",
        "lost_holds",
        "main",
        "manifest",
        "midline",
        "next_key",
        "output_at",
        "output_moment",
        "poll",
        "processes",
        "program",
        "query",
        "query_at",
        "reader",
        "record",
        "roles_folder",
        "says",
        "seqs",
        "session",
        "size",
        "stopping",
        "sync_read",
        "sync_write",
        "syncing",
        "tail",
        "typed",
        "until_due",
        "wake_read",
        "wake_write",
    )

    def __init__(self, folder: SessionFolder, manifest: Json, program: Program, listener: socket.socket) -> None:
        self.folder, self.manifest, self.program = folder, manifest, program
        self.leaves: list[str] = manifest.get("cgroup", [])
        self.session = str(manifest["id"])
        self.roles_folder = os.path.join(os.path.dirname(os.path.dirname(folder.path)), "roles")
        self.listener = listener
        self.log = OutputLog(
            folder.out,
            max(end_on_disk(folder.out), int(manifest.get("offset", 0))),
            limits.SEGMENT_BYTES,
            int(manifest.get("retain_bytes", limits.RETAIN_BYTES)),
        )
        self.reader = LogReader(folder.out)
        kept = (read_json(folder.controls) if os.access(folder.controls, os.F_OK) else None) or {}
        self.epoch_ceiling = int(kept.get("epoch", 0))
        self.controls = Controls(
            self.epoch_ceiling,
            Times(
                float(manifest.get("lease_s", limits.LEASE_S)),
                float(manifest.get("grace_s", limits.GRACE_S)),
                float(manifest.get("takeover_max_s", limits.TAKEOVER_S)),
            ),
        )
        self.record = Record(folder.spool, int(manifest["generation"]), int(manifest.get("spooled", 0)))
        self.channels: dict[int, Channel] = {}
        self.input = InputQueue(program)
        self.applied, self.seqs = Applied(), dict[str, int]()
        self.size: tuple[int, int] = tuple(manifest["size"])
        self.exit: Json | None = None
        self.lost_holds: tuple[str, ...] = ()  # the newest commands that lost the controls
        self.blame: str | None = None  # the operator whose signal or stop came last
        self.stopping: Stopping | None = None
        self.main = bubblewrapped.Main(program.pid, isolated=bool(manifest.get("wrap")), now=time.monotonic())
        self.input_at = self.output_at = time.time()
        self.output_moment = time.monotonic()  # the same by a clock that nobody sets
        self.typed = 0  # inputs of operators so far
        self.midline = False  # the last of them did not end a line: somebody may be in the middle of one
        self.query: Json | None = None  # the newest, for a host that comes a moment after the program asked
        self.query_at, self.next_key, self.tail, self.says = 0.0, 0, b"", Listener()
        self.done = self.ended = False  # ended: the last entry of the record is written
        self._sync_due = self._accept_due = self.until_due = self.hello_due = 0.0
        self.syncing, self._write_blocked = Syncing(), False
        self.sync_read, self.sync_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.wake_read, self.wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.poll = select.epoll()
        self.processes = Processes(self.poll)
        self._sources: dict[int, int] = {}
        if program.master >= 0:
            self._sources[program.master] = TERMINAL
            if self.size != (0, 0):
                self.log.resized(*self.size, time.time_ns() // 1000)
        else:
            self._sources.update({program.stdout: STDOUT, program.stderr: STDERR})
        for fd in (*self._sources, listener.fileno(), self.sync_read, self.wake_read):
            self.poll.register(fd, select.EPOLLIN)

    # -- the loop ------------------------------------------------------------------------------------------

    def begin(self) -> float | None:
        """Hear of deaths from now on; how long nothing is due."""
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        self._reap()  # the program may have ended before anybody listened
        return self._settle()

    def run(self) -> None:
        """Once begun, until the session is over."""
        while not self.done:
            self.turn(self._settle())
        finish(self)

    def turn(self, timeout: float | None) -> None:
        for fd, events in self.poll.poll(timeout):
            self._dispatch(fd, events)

    def _settle(self) -> float | None:
        """Do what is due; how long the loop may wait then. Once a turn: of a keystroke's work this is a good part."""
        stopping = self.stopping.due if self.stopping else 0.0
        own = (self._sync_due, self._accept_due, stopping, self.until_due, self.hello_due, self.main.due)
        due = min(filter(None, (*own, self.controls.due(), self.record.due())), default=0.0)
        if not due:
            return None
        if (left := due - time.monotonic()) > 0:
            return left
        self._timers()
        return 0.0

    def _dispatch(self, fd: int, events: int) -> None:
        if fd in self._sources:
            if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                self._read_output(fd)
            if events & select.EPOLLOUT:
                self.flush_input()
        elif fd in self.channels:
            self.serve(self.channels[fd], events)
        elif fd == self.listener.fileno():
            self._accept()
        elif fd == self.wake_read:
            os.read(fd, 512)
            self._reap()
        elif fd == self.sync_read:
            os.read(fd, 512)
        elif fd == self.program.stdin:
            self.flush_input()
        elif fd in self.processes.fds:
            controls.process_gone(self, fd)

    def _timers(self) -> None:
        now = time.monotonic()
        if 0 < self._sync_due <= now:
            self._sync_due = 0.0 if start_sync(self, now) else now + limits.SYNC_DELAY_S
        if self.stopping and self.stopping.due and now >= self.stopping.due:
            self.stopping.step(self.own_tree(), now)
            self._reap()
        if 0 < self.controls.due() <= now:
            controls.lapse(self, now)
        if 0 < self.record.due() <= now:
            self.record.lapse(now)
            controls.announce(self)
        if 0 < self.main.due <= now:
            self.main.look(now)
        if 0 < self._accept_due <= now:
            self._accept_due = 0.0
            self.poll.modify(self.listener.fileno(), select.EPOLLIN)
        if 0 < self.hello_due <= now:
            end_silent(self, now)
        if 0 < self.until_due <= now:
            controls.end_overdue(self, time.time())
            self.until_due = controls.next_until(self)

    # -- output --------------------------------------------------------------------------------------------

    def _read_output(self, fd: int) -> bool:
        """Take what is there, log it, hand it out. True when the source may hold more."""
        chunks, size, more = [], 0, True
        kind = self._sources[fd]
        for _ in range(limits.READS_PER_WAKE):
            try:
                data = os.read(fd, limits.READ_BYTES)
            except BlockingIOError:
                more = False
                break
            except OSError:
                data = b""
            if not data:
                more = False
                self._source_ended(fd)
                break
            chunks.append(data)
            size += len(data)
            if size >= _CHUNK_MAX or len(data) < _SHORT_READ:
                break
        if chunks:
            self._deliver(kind, chunks[0] if len(chunks) == 1 else b"".join(chunks))
        return more

    def catch_up(self) -> None:
        """Take what was printed before this moment: whoever compares offsets must not miss a prompt that is there."""
        for fd in list(self._sources):
            for _ in range(_CATCH_UP):
                if fd not in self._sources or not self._read_output(fd):
                    break

    def _source_ended(self, fd: int) -> None:
        if fd == self.program.master:
            return  # cannot happen while our own slave descriptor is open
        self.poll.unregister(fd)
        os.close(fd)
        if self._sources.pop(fd) == STDOUT:
            self.program.stdout = -1
        else:
            self.program.stderr = -1

    def _deliver(self, kind: int, data: bytes) -> None:
        offset = self.log.end
        now = time.time()
        self.output_at, self.output_moment = now, time.monotonic()
        self.log.append(data)
        for channel in list(self.channels.values()):
            if channel.follows(offset):
                self.guarded(channel, channel.send_chunk, offset, kind, data)
            elif 0 <= channel.watch < self.log.end:
                channel.watch = -1
                self.guarded(channel, channel.send, keeper_frames.u64_frame(keeper_frames.GREW, self.log.end))
        self.log.describe(kind, offset, data, int(now * 1e6))  # after the clients: an echo need not wait for it
        if not self._sync_due:  # also while one is under way: it began before these bytes
            self._sync_due = self.output_moment + limits.SYNC_DELAY_S
        if kind == TERMINAL:
            look_for_query(self, offset, data)

    # -- channels ------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            sock, _ = self.listener.accept()
        except OSError as e:
            if e.errno in (errno.EMFILE, errno.ENFILE):  # it waits until a descriptor is free; looking on would spin
                self.poll.modify(self.listener.fileno(), 0)
                self._accept_due = time.monotonic() + _ACCEPT_AGAIN_S
            return
        if len(self.channels) >= limits.CHANNELS_MAX:
            sock.close()
        else:
            self.adopt(sock)

    def adopt(self, sock: socket.socket) -> Channel:
        self.next_key += 1
        channel = Channel(sock, f"channel-{self.next_key}", time.monotonic() + limits.HELLO_S)
        self.channels[channel.fd] = channel
        self.hello_due = self.hello_due or channel.due  # the oldest silent one's: later ones are due later
        self.poll.register(channel.fd, select.EPOLLIN)
        return channel

    def serve(self, channel: Channel, events: int) -> None:
        if events & select.EPOLLOUT:
            self.guarded(channel, channel.pump, self.reader, self.log.end)
        if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR) and channel.fd in self.channels:
            try:
                data = channel.sock.recv(limits.READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.drop(channel)
                return
            try:
                for kind, payload in channel.decoder.feed(data):
                    receive(self, channel, kind, payload)
                    if self.channels.get(channel.fd) is not channel:
                        return
            except Exception as e:  # noqa: BLE001  (whatever a client sends, the session goes on)
                if not isinstance(e, keeper_frames.ProtocolError | ConnectionError):
                    import traceback

                    traceback.print_exc()  # keeper.err tells what it was
                self.drop(channel)
                return
        if channel.fd in self.channels:
            self._interest(channel)

    def guarded(self, channel: Channel, action: Callable[..., None], *args: object) -> None:
        """Do something to a channel; a client that is gone or stuck loses its channel, nothing else."""
        try:
            action(*args)
        except OSError:
            self.drop(channel)
            return
        self._interest(channel)

    def _interest(self, channel: Channel) -> None:
        lagging = 0 <= channel.at < min(channel.to, self.log.end)
        want_write = bool(channel.outbox or channel.refusal) or lagging
        muted = self.input.full and channel.paused and not channel.host
        if want_write != channel.want_write or muted != channel.muted:
            channel.want_write, channel.muted = want_write, muted
            self.poll.modify(channel.fd, (0 if muted else select.EPOLLIN) | (select.EPOLLOUT if want_write else 0))

    def send(self, channel: Channel, data: bytes) -> None:
        self.guarded(channel, channel.send, data)

    def refuse(self, channel: Channel, data: bytes) -> None:
        self.guarded(channel, channel.refuse, data)

    def tell(self, event: Json) -> None:
        data = keeper_frames.message(keeper_frames.EVENT, event)
        for channel in list(self.channels.values()):
            if channel.actor is not None:
                self.send(channel, data)

    def tell_host(self, event: Json) -> None:
        data = keeper_frames.message(keeper_frames.EVENT, event)
        for channel in list(self.channels.values()):
            if channel.host:
                self.send(channel, data)

    def drop(self, channel: Channel, why: str = "") -> None:
        """The connection is over: it broke or was closed by the client, or (`why`) by us."""
        if self.channels.get(channel.fd) is not channel:
            return
        del self.channels[channel.fd]
        self.poll.unregister(channel.fd)
        channel.sock.close()
        controls.gone(self, channel, why)
        if channel.attach:
            self.tell_host({"event": "channels", "attached": attached(self)})

    # -- input and size --------------------------------------------------------------------------------------

    def flush_input(self) -> None:
        blocked = self.input.flush()
        if blocked != self._write_blocked:
            self._write_blocked = blocked
            self._watch_input(blocked)
        if not self.input.full:
            for channel in list(self.channels.values()):
                if channel.paused and not channel.host:
                    channel.paused = False
                    self._interest(channel)
                elif channel.paused and len(self.input) <= limits.QUEUED_INPUT_BYTES_MAX // 2:
                    channel.paused = False
                    self.send(channel, keeper_frames.message(keeper_frames.EVENT, {"event": "room"}))

    def _watch_input(self, blocked: bool) -> None:
        """Hear when the program's side takes more, while there is more."""
        if self.program.master >= 0:
            self.poll.modify(self.program.master, select.EPOLLIN | (select.EPOLLOUT if blocked else 0))
        elif self.program.stdin >= 0:
            if blocked:
                self.poll.register(self.program.stdin, select.EPOLLOUT)
            else:
                self.poll.unregister(self.program.stdin)

    # -- the end ---------------------------------------------------------------------------------------------

    def own_tree(self) -> list[int]:
        """Every process of this session, by the kernel's word; other roles of Holdfast below us are not ours."""
        return process_tree.members(os.getpid(), lambda: kernel.registered(self.roles_folder))

    def _reap(self) -> None:
        empty = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                empty = True
                break
            if pid == 0:
                break
            if pid == self.program.pid and self.exit is None:
                main_ended(self, status)
        # Roles of Holdfast below us (a host started from in here) are not the session. Who cannot look is not told so.
        if self.exit is not None:
            self.done |= empty or (not self.own_tree() and process_tree.read_stat(os.getpid()) is not None)

    def drain(self) -> None:
        for fd in list(self._sources):
            while fd in self._sources and self._read_output(fd):
                pass
