"""Attach this terminal to a session: its screen, then live output. Ctrl-\\ then d detaches; the session keeps running.

hold attach web          typing takes the controls if they are free
hold attach web -r       only watch
hold attach web --take   take the controls; detaching returns them to the previous holder (--keep: keep them)
"""

from __future__ import annotations

import base64
import os
import select
import signal
import socket
import sys

from ...client import keeper_messages
from ...client._sync.host import Host
from ...client.terminal_output import reset_sequence, shown_on
from ...model.errors import HoldfastError
from ..ui import arguments, printing
from .detach_keys import DEFAULT, DetachKeys, parse
from .raw_terminal import RawTerminal, window_size
from .restart_host import HostRestarter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

_READ_BYTES = 1 << 16  # a larger buffer is mapped and unmapped at every read
# Allocated and freed once: the C library then keeps that much heap instead of returning it at every read.
_HEAP_END = 256 << 10
_TYPED_BYTES = 16384
_TAKE, _DETACH, _SEEN = 1, 2, 3  # ids of this client's requests
_FOLLOWED = ("SSH_AUTH_SOCK", "DISPLAY")  # what the session's stable links follow


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    parser.add_argument("-r", "--read-only", action="store_true", help="watch only, never type")
    parser.add_argument("--take", action="store_true", help="take the controls right away")
    parser.add_argument("--keep", action="store_true", help="with --take: keep them when you detach")
    parser.add_argument(
        "--raw", action="store_true", help="do not filter escape sequences that this terminal would act on or answer"
    )
    parser.add_argument(
        "--detach-keys", default=DEFAULT, metavar="KEYS", help=f"the keys that detach (default: {DEFAULT})"
    )
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    if args.keep and not args.take:
        raise HoldfastError("usage", "--keep needs --take", f"hold attach {args.session} --take --keep")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise HoldfastError(
            "usage", "stdin and stdout must be a terminal", f"without a terminal: hold logs -f {args.session}"
        )
    client = Attachment(
        Host(),
        args.session,
        read_only=args.read_only,
        take=args.take,
        keep=args.keep,
        keys=parse(args.detach_keys),
        raw=args.raw,
    )
    ending = client.run()
    printing.note(ending)
    return 0


class Attachment:
    """One attached terminal, from the restored screen to the last byte. `exit` is the program's, once it has ended."""

    def __init__(
        self,
        host: Host,
        session: str,
        *,
        read_only: bool,
        take: bool,
        keys: bytes,
        keep: bool = False,
        just_started: bool = False,
        raw: bool = False,
    ) -> None:
        self._host, self._session = host, session
        self._read_only, self._take, self._keep, self._just_started = read_only, take, keep, just_started
        self._keys = DetachKeys(keys)
        self._filter = shown_on(sys.stdout.fileno(), host.home, raw=raw)
        self._hearing = keeper_messages.KeeperDecoder()
        self._sock: socket.socket | None = None
        self._at = 0
        self._seq = 0
        self._told: str | None = None
        self._me = self._closed = ""
        self._acted = False  # typed or took, and the keeper has not confirmed the controls yet
        self._ours = False  # holds the controls
        self._size: tuple[int, int] = (0, 0)
        self.exit: dict[str, Any] | None = None
        self.name = session

    def run(self) -> str:
        """Stay until detached or the session ends; returns the final line to print."""
        self._refuse_nesting()
        about = self._connect(restore=True)
        self.name = about["name"]
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGWINCH, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        try:
            with RawTerminal(reset_sequence() + b"\r\n"):  # the final message begins on a new line
                self._write(reset_sequence())  # the screen is drawn for a terminal in its normal state
                # It may end inside an escape sequence that the live bytes finish: one filter for both.
                self._write(self._filter.strip(base64.b64decode(about["restore"])))
                reviver = HostRestarter(self._host.home, wake_write)
                try:
                    return self._loop(wake_read, reviver)
                finally:
                    reviver.close()
        finally:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGWINCH, signal.SIG_DFL)
            os.close(wake_read)
            os.close(wake_write)
            if self._sock is not None:
                self._sock.close()

    def _refuse_nesting(self) -> None:
        inside = os.environ.get("HOLDFAST_SESSION")
        if not inside:
            return
        wanted = self._host.call("status", session=self._session)["id"]
        if wanted == inside:
            raise HoldfastError("conflict", "this terminal is inside that session", "nothing to attach to")
        if not self._read_only:
            raise HoldfastError(
                "conflict",
                "this terminal is already inside a session; the detach keys would be ambiguous",
                "detach first (Ctrl-\\ d), or watch with -r",
            )

    def _connect(self, *, restore: bool) -> dict[str, Any]:
        env = {k: os.environ[k] for k in _FOLLOWED if k in os.environ}
        about, fd = self._host.call_fd(
            "attach", session=self._session, read_only=self._read_only, via="cli", env=env, ended=self._just_started
        )
        self._sock = socket.socket(fileno=fd)
        self._session = about["session"]
        self._me = (about.get("me") or {}).get("operator", "")
        if restore:
            self._at = about["offset"]
        if not self._read_only:
            self._resize()
            if self._take:
                self._ask_person(about)
                self._acted = True
                self._send(keeper_messages.act(_TAKE, "take", force=True))
        self._send(keeper_messages.read(self._at))
        return about  # type: ignore[no-any-return]

    def _ask_person(self, about: dict[str, Any]) -> None:
        """Ask the person who holds the controls, before the screen is drawn; a denial is an error."""
        controls = about.get("controls") or {}
        if controls.get("kind") == "human" and controls["holder"] != self._me:
            printing.note(f"hold: {controls.get('name') or controls['holder']} holds the controls; asking for them")
            self._host.call("take", session=self._session)

    def _send(self, data: bytes) -> None:
        assert self._sock is not None
        try:
            self._sock.sendall(data)
        except ConnectionError:
            pass  # the keeper has just ended: reading returns its last messages, then the end

    def _resize(self) -> None:
        self._size = window_size(sys.stdout.fileno())
        if not self._read_only:
            self._send(keeper_messages.resize(*self._size))

    def _loop(self, wake: int, reviver: HostRestarter) -> str:
        assert self._sock is not None
        bytes(_HEAP_END)
        keyboard = sys.stdin.fileno()
        poll = select.epoll()
        poll.register(keyboard, select.EPOLLIN)
        poll.register(wake, select.EPOLLIN)
        poll.register(self._sock, select.EPOLLIN)
        line = self._sock.fileno()
        reviver.watch(poll)
        while True:
            try:
                events = poll.poll()
            except InterruptedError:
                continue
            for fd, mask in events:
                if fd == keyboard:
                    ending = self._typed(keyboard, mask)
                    if ending is not None:
                        return ending
                elif fd == line:
                    ending = self._received()
                    if ending is not None:
                        return ending
                elif fd == wake:
                    os.read(wake, 64)
                    reviver.watch(poll)
                    if window_size(sys.stdout.fileno()) != self._size:
                        self._resize()
                elif fd == reviver.line:
                    reviver.gone(poll)

    def _typed(self, keyboard: int, mask: int) -> str | None:
        try:
            data = os.read(keyboard, _TYPED_BYTES)
        except OSError:
            data = b""
        if not data:
            return f"[terminal closed; {self.name} keeps running]"
        data, detach = self._keys.feed(data)
        if data and not self._read_only:
            self._seq += 1
            self._acted = True
            self._send(keeper_messages.type_(self._seq, data))
        if detach:
            self._send(keeper_messages.act(_DETACH, "release", detach=True, keep=self._keep))  # gone on purpose
            return f"[detached; {self.name} keeps running. Reattach: hold attach {self.name}]"
        return None

    def _received(self) -> str | None:
        assert self._sock is not None
        try:
            data = self._sock.recv(_READ_BYTES)
        except ConnectionError:  # it ended before it had read all input
            data = b""
        if not data:
            return self._lost_line()
        chunks: list[bytes] = []
        ending = None
        for message in self._hearing.feed(data):
            if isinstance(message, keeper_messages.Output):
                self._at = message.end
                chunks.append(message.data)
            elif isinstance(message, keeper_messages.Answer):
                self._refused(message.facts)
            elif isinstance(message, keeper_messages.Event):
                self._event(message.facts)
            elif isinstance(message, keeper_messages.Gap):
                self._at = message.end
            elif isinstance(message, keeper_messages.End):
                ending = self._over()
        if chunks:  # usually one, which is not copied again
            self._write(self._filter.strip(chunks[0] if len(chunks) == 1 else b"".join(chunks)))
        return ending

    def _event(self, event: dict[str, Any]) -> None:
        kind = event.get("event")
        if kind in ("exit", "ended"):
            self.exit = event["exit"]
        elif kind == "controls":
            self._told = None
            controls = event["controls"]
            if self._read_only:
                return
            before, self._ours = self._ours, controls["holder"] == self._me
            if not self._ours:  # later input uses the new epoch
                self._send(keeper_messages.act(_SEEN, "seen", epoch=controls["epoch"]))
                if before and event.get("flushed"):
                    self._discarded(event)
            elif event.get("from"):
                self._handed(event)
            # The controls came because this client typed or took them: it sets the size. Other clients of the same
            # operator get this event too, and two windows that both answered would resize without end.
            if self._acted and controls["holder"] == self._me:
                self._acted = False
                self._resize()
        elif kind == "closed":
            self._closed = str(event.get("reason"))

    def _discarded(self, event: dict[str, Any]) -> None:
        """Report typed bytes that were discarded before the program read them."""
        name = event["controls"].get("name")
        who = f"{name} took the controls" if name else "you lost the controls"
        self._title(f"{who}; {event['flushed']} typed bytes were discarded")

    def _handed(self, event: dict[str, Any]) -> None:
        """Another operator handed over the controls: show their name and note in the title."""
        note = f": {event['note']}" if event.get("note") else ""
        text = f"{event['from']['name']} hands you the controls{note}"
        self._title(text)

    def _title(self, text: str) -> None:
        """Ring the bell and set the title."""
        self._write(b"\a\x1b]2;" + printing.safe(text).encode() + b"\a")

    def _refused(self, result: dict[str, Any]) -> None:
        """Typing was refused: show who holds the controls, once."""
        error = result.get("error")
        if result.get("id") in (_DETACH, _SEEN):
            return  # an older keeper does not know this
        if error and error["message"] != self._told:
            self._told = error["message"]
            self._title(f"{error['message']}; {error['hint'].replace('SESSION', self.name)}")

    def _lost_line(self) -> str | None:
        """The keeper closed without an END: the rights were revoked, the session ended, or the keeper died."""
        if self._closed:
            return f"[disconnected from {self.name}: {self._closed}; it keeps running]"
        self._show_rest()
        return self._over()

    def _show_rest(self) -> None:
        """Show the log's rest: a short program may end before its keeper accepted this client."""
        try:
            for chunk in self._host.session(self._session).output(self._at):
                self._at = chunk.end
                self._write(self._filter.strip(chunk.data))
        except HoldfastError:
            pass  # it was removed by now, or the host is gone

    def _over(self) -> str:
        if self.exit is None:
            try:
                self.exit = self._host.call("status", session=self._session)["exit"]
            except HoldfastError:
                self.exit = None
        return f"[{self.name} ended: {describe(self.exit)}]"

    @staticmethod
    def _write(data: bytes) -> None:
        fd = sys.stdout.fileno()
        while data:
            try:
                done = os.write(fd, data)
            except BlockingIOError:
                select.select([], [fd], [])
                continue
            if done == len(data):
                return
            data = data[done:]


def describe(ended: dict[str, Any] | None) -> str:
    """How a program ended, as text."""
    if not ended or not ended.get("known"):
        return "exit status unknown"
    if ended["signal"]:
        return f"killed by {ended['signal']}"
    return f"exit code {ended['code']}"
