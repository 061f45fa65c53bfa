"""The keeper's loop: the only owner of one session's program, log, controls and channels.

One epoll, no threads but a passing one for fdatasync, no timer unless something is due. Order in a turn:
output first (the program must never wait for a client), then clients, then deaths.
"""

from __future__ import annotations

import _thread
import errno
import os
import select
import signal
import socket
import termios
import time

from ..log.layout import STDERR, STDOUT, TERMINAL, end_on_disk
from ..log.reader import LogReader
from ..log.writer import OutputLog
from ..model import limits
from ..model.controls import Controls
from ..model.home import SessionFolder
from ..system import cgroup, kernel, tree
from ..system.files import read_json, write_json
from ..term.queries import MAYBE_QUERY
from ..wire import frames
from . import acts
from .channel import Channel
from .inbox import InputQueue
from .program import Program
from .stopping import Stopping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]
    from collections.abc import Callable

_QUERY_TAIL = 32  # bytes of the last chunk kept so that a query cut in two is still seen
_SHORT_READ = 1024  # so little means that the source is drained: asking again would only cost an echo its time
_CHUNK_MAX = 512 << 10  # joined reads per wake: half a frame


class Keeper:
    """Everything one session is, in one process."""

    def __init__(self, folder: SessionFolder, manifest: Json, program: Program, listener: socket.socket) -> None:
        self.folder, self.manifest, self.program = folder, manifest, program
        self.leaves: list[str] = manifest.get("cgroup", [])
        self.session = str(manifest["id"])
        self.roles_folder = os.path.join(os.path.dirname(os.path.dirname(folder.path)), "roles")
        self.listener = listener
        self.log = OutputLog(
            folder.out, max(end_on_disk(folder.out), int(manifest.get("offset", 0))),
            limits.SEGMENT_BYTES, int(manifest.get("retain_bytes", limits.RETAIN_BYTES)),
        )  # fmt: skip
        self.reader = LogReader(folder.out)
        kept = (read_json(folder.controls) if os.access(folder.controls, os.F_OK) else None) or {}
        self._epoch_ceiling = int(kept.get("epoch", 0))
        self.controls = Controls(self._epoch_ceiling)
        self.channels: dict[int, Channel] = {}
        self.input = InputQueue(program)
        self.seqs: dict[str, int] = {}
        self.size: tuple[int, int] = tuple(manifest["size"])
        self.exit: Json | None = None
        self.blame: str | None = None  # the operator whose signal or stop came last
        self.stopping: Stopping | None = None
        self.input_at = self.output_at = time.time()
        self.typed = 0  # inputs of operators so far
        self.midline = False  # the last of them did not end a line: somebody may be in the middle of one
        self.tail = b""
        self.query: Json | None = None  # the newest, for a host that comes a moment after the program asked
        self.query_at = 0.0
        self.next_key = 0
        self.done = False
        self._sync_due = 0.0
        self._syncing = self._write_blocked = False
        self._sync_read, self._sync_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._wake_read, self._wake_write = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.poll = select.epoll()
        self._sources: dict[int, int] = {}
        if program.master >= 0:
            self._sources[program.master] = TERMINAL
            if self.size != (0, 0):
                self.log.resized(*self.size, now_us=time.time_ns() // 1000)
        else:
            self._sources.update({program.stdout: STDOUT, program.stderr: STDERR})
        for fd in (*self._sources, listener.fileno(), self._sync_read, self._wake_read):
            self.poll.register(fd, select.EPOLLIN)

    # -- the loop ------------------------------------------------------------------------------------------

    def run(self) -> None:
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        self._reap()  # the program may have ended before anybody listened
        while not self.done:
            self.turn(self._timeout())
        self._finish()

    def turn(self, timeout: float | None) -> None:
        for fd, events in self.poll.poll(timeout):
            self._dispatch(fd, events)
        self._timers()

    def _timeout(self) -> float | None:
        due = [t for t in (self._sync_due, self.stopping.due if self.stopping else 0.0) if t]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _dispatch(self, fd: int, events: int) -> None:
        if fd in self._sources:
            if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                self._read_output(fd)
            if events & select.EPOLLOUT:
                self.flush_input()
        elif fd in self.channels:
            self._serve(self.channels[fd], events)
        elif fd == self.listener.fileno():
            self._accept()
        elif fd == self._wake_read:
            os.read(fd, 512)
            self._reap()
        elif fd == self._sync_read:
            os.read(fd, 512)
        elif fd == self.program.stdin:
            self.flush_input()

    def _timers(self) -> None:
        now = time.monotonic()
        if self._sync_due and now >= self._sync_due and not self._syncing:
            self._sync_due = 0.0
            self._start_sync()
        if self.stopping and self.stopping.due and now >= self.stopping.due:
            self.stopping.step(self.own_tree(), now)
            self._reap()

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

    def _source_ended(self, fd: int) -> None:
        if fd == self.program.master:  # cannot happen while our own slave descriptor is open
            return
        self.poll.unregister(fd)
        os.close(fd)
        if self._sources.pop(fd) == STDOUT:
            self.program.stdout = -1
        else:
            self.program.stderr = -1

    def _deliver(self, kind: int, data: bytes) -> None:
        offset = self.log.end
        now = time.time()
        self.output_at = now
        self.log.append(data)
        for channel in list(self.channels.values()):
            if channel.follows(offset):
                self._guarded(channel, channel.send_chunk, offset, kind, data)
            elif 0 <= channel.watch < self.log.end:
                channel.watch = -1
                self._guarded(channel, channel.send, frames.u64_frame(frames.GREW, self.log.end))
        self.log.describe(kind, offset, data, int(now * 1e6))  # after the clients: an echo need not wait for it
        if not self._sync_due and not self._syncing:
            self._sync_due = time.monotonic() + limits.SYNC_DELAY_S
        if kind == TERMINAL:
            self._look_for_query(offset, data)

    def _look_for_query(self, offset: int, data: bytes) -> None:
        """Tell the host when a program may have asked its terminal something; its emulator answers."""
        if self.tail or b"\x1b" in data or b"\x05" in data:
            joined = self.tail + data
            if MAYBE_QUERY.search(joined):
                self.query = {"event": "query", "offset": offset, "end": self.log.end}
                self.query_at = time.monotonic()
                self.tell_host(self.query)
                self.tail = b""
                return
            cut = joined.rfind(b"\x1b", max(0, len(joined) - _QUERY_TAIL))
            self.tail = joined[cut:] if cut >= 0 else b""

    def _start_sync(self) -> None:
        """fdatasync beside the loop: a slow disk must not be felt in a keystroke."""
        out, idx = self.log.sync_targets()
        if out < 0:
            return
        end = self.log.end
        self._syncing = True

        def sync() -> None:
            try:
                os.fdatasync(out)
                os.fdatasync(idx)
                self.log.durable = max(self.log.durable, end)
            except OSError:
                pass  # a disk that refuses: durable stays where it was, and says so
            finally:
                os.close(out)
                os.close(idx)
                self._syncing = False
                try:
                    os.write(self._sync_write, b"s")
                except OSError:
                    pass

        _thread.start_new_thread(sync, ())

    # -- channels ------------------------------------------------------------------------------------------

    def _accept(self) -> None:
        try:
            sock, _ = self.listener.accept()
        except OSError as e:
            if e.errno in (errno.EMFILE, errno.ENFILE):
                return  # the client waits in the backlog until a descriptor is free
            return
        if len(self.channels) >= limits.CHANNELS_MAX:
            sock.close()
            return
        self.adopt(sock)

    def adopt(self, sock: socket.socket) -> Channel:
        self.next_key += 1
        channel = Channel(sock, f"channel-{self.next_key}")
        self.channels[channel.fd] = channel
        self.poll.register(channel.fd, select.EPOLLIN)
        return channel

    def _serve(self, channel: Channel, events: int) -> None:
        if events & select.EPOLLOUT:
            self._guarded(channel, channel.pump, self.reader, self.log.end)
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
                    acts.receive(self, channel, kind, payload)
                    if channel.fd not in self.channels:
                        return
            except (frames.ProtocolError, ConnectionError):
                self.drop(channel)
                return
        if channel.fd in self.channels:
            self._interest(channel)

    def _guarded(self, channel: Channel, action: Callable[..., None], *args: object) -> None:
        """Do something to a channel; a client that is gone or stuck loses its channel, nothing else."""
        try:
            action(*args)
        except OSError:
            self.drop(channel)
            return
        self._interest(channel)

    def _interest(self, channel: Channel) -> None:
        lagging = 0 <= channel.at < min(channel.to, self.log.end)
        want_write = bool(channel.outbox) or lagging
        muted = self.input.full and channel.paused
        if want_write != channel.want_write or muted != channel.muted:
            channel.want_write, channel.muted = want_write, muted
            self.poll.modify(
                channel.fd, (0 if muted else select.EPOLLIN) | (select.EPOLLOUT if want_write else 0)
            )

    def send(self, channel: Channel, data: bytes) -> None:
        self._guarded(channel, channel.send, data)

    def tell(self, event: Json) -> None:
        data = frames.message(frames.EVENT, event)
        for channel in list(self.channels.values()):
            if channel.actor is not None:
                self.send(channel, data)

    def tell_host(self, event: Json) -> None:
        data = frames.message(frames.EVENT, event)
        for channel in list(self.channels.values()):
            if channel.host:
                self.send(channel, data)

    def drop(self, channel: Channel) -> None:
        if self.channels.pop(channel.fd, None) is None:
            return
        self.poll.unregister(channel.fd)
        channel.sock.close()
        if self.controls.drop(channel.key):
            self.tell({"event": "controls", "controls": self.controls.as_dict()})
        if channel.attach:
            self.tell_host({"event": "channels", "attached": self.attached()})

    def attached(self) -> list[Json]:
        return [
            {
                "operator": c.actor.operator, "name": c.actor.name, "via": c.via, "since": c.since,
                "mode": "control" if c.key in self.controls.holds else "watch",
            }
            for c in self.channels.values() if c.attach and c.actor
        ]  # fmt: skip

    # -- input and size --------------------------------------------------------------------------------------

    def reserve_epoch(self) -> None:
        """Make the next epoch durable before it is granted; a ceiling serves the next grants too."""
        if self.controls.epoch + 1 > self._epoch_ceiling:
            self.reserved(self.controls.epoch + limits.EPOCHS_RESERVED)
            write_json(self.folder.controls, {"epoch": self._epoch_ceiling})

    def reserved(self, ceiling: int) -> None:
        self._epoch_ceiling = ceiling

    def flush_input(self) -> None:
        blocked = self.input.flush()
        if blocked != self._write_blocked:
            self._write_blocked = blocked
            self._watch_input(blocked)
        if not self.input.full:
            for channel in list(self.channels.values()):
                if channel.paused:
                    channel.paused = False
                    self._interest(channel)

    def _watch_input(self, blocked: bool) -> None:
        """Hear when the program's side takes more, while there is more."""
        if self.program.master >= 0:
            self.poll.modify(self.program.master, select.EPOLLIN | (select.EPOLLOUT if blocked else 0))
        elif self.program.stdin >= 0:
            if blocked:
                self.poll.register(self.program.stdin, select.EPOLLOUT)
            else:
                self.poll.unregister(self.program.stdin)

    def flush_unread(self) -> int:
        """Throw away what was typed and not read yet (a takeover); how many bytes that was, as far as is known."""
        count = self.input.clear()
        if self.program.slave >= 0:
            count += self.input.unread()
            termios.tcflush(self.program.slave, termios.TCIFLUSH)
        return count

    # -- the end ---------------------------------------------------------------------------------------------

    def own_tree(self) -> list[int]:
        """Every process of this session, by the kernel's word; other roles of Holdfast below us are not ours."""
        return tree.members(os.getpid(), kernel.registered(self.roles_folder))

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
                self._main_ended(status)
        if self.exit is None:
            return
        # Children that are roles of Holdfast (a host started from in here) are not the session.
        if empty or not self.own_tree():
            self.done = True

    def _main_ended(self, status: int) -> None:
        code = os.waitstatus_to_exitcode(status)
        self._drain()
        self.exit = {
            "code": code if code >= 0 else None,
            "signal": signal.Signals(-code).name if code < 0 else None,
            "known": True,
            "at": time.time(),
            "by": self.blame,
        }
        write_json(
            self.folder.exit, {"exit": self.exit, "generation": self.manifest["generation"], "ended": False}
        )
        self.tell({"event": "exit", "exit": self.exit, "end": self.log.end})

    def forsake(self) -> None:
        """Close all that is the keeper's own, and let the program be (a rehearsal has none)."""
        for channel in list(self.channels.values()):
            self.drop(channel)
        self.log.close()
        self.listener.close()
        self.poll.close()
        for fd in (self._sync_read, self._sync_write, self._wake_read, self._wake_write):
            os.close(fd)

    def _drain(self) -> None:
        for fd in list(self._sources):
            while fd in self._sources and self._read_output(fd):
                pass

    def _finish(self) -> None:
        self._drain()
        self.log.close()
        write_json(self.folder.exit, {
            "exit": self.exit, "generation": self.manifest["generation"], "ended": True,
            "ended_at": time.time(), "end": self.log.end,
        })  # fmt: skip
        # A program can be over before its starter said HELLO: that line is answered first.
        self._serve_while(lambda: any(c.actor is None for c in self.channels.values()))
        self.tell({"event": "ended", "exit": self.exit, "end": self.log.end})
        self._linger()
        cgroup.remove(cgroup.possible_leaves(self.session))
        try:
            os.unlink(self.folder.keeper_socket)
        except FileNotFoundError:
            pass

    def _linger(self) -> None:
        """Let readers have the rest; whoever is slower than this reads on from the log on disk."""
        for channel in list(self.channels.values()):
            channel.to = min(channel.to, self.log.end)
            if channel.at >= 0 or channel.outbox:
                self._guarded(channel, channel.pump, self.reader, self.log.end)
        self._serve_while(lambda: any(c.at >= 0 or c.outbox for c in self.channels.values()))

    def _serve_while(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + limits.LINGER_S
        while condition() and time.monotonic() < deadline:
            for fd, events in self.poll.poll(max(0.0, deadline - time.monotonic())):
                if fd in self.channels:
                    self._serve(self.channels[fd], events)
                elif fd in (self._wake_read, self._sync_read):
                    os.read(fd, 512)
