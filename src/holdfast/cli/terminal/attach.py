"""Show a session's screen as it is, then go on live. Detach with Ctrl-\\ then d; the session goes on.

hold attach web          typing takes the controls if they are free
hold attach web -r       only watch
hold attach web --take   take the controls; detaching gives them back to whom they were taken from (--keep: not)
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
# Made and dropped once, so that the C library keeps twice as much of its heap instead of giving it back at every read.
_HEAP_END = 256 << 10
_TYPED_BYTES = 16384
_TAKE, _DETACH, _SEEN = 1, 2, 3  # ids of what this client asks
_FOLLOWED = ("SSH_AUTH_SOCK", "DISPLAY")  # what the session's stable links follow


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.session(parser)
    parser.add_argument("-r", "--read-only", action="store_true", help="only watch")
    parser.add_argument("--take", action="store_true", help="take the controls at once")
    parser.add_argument("--keep", action="store_true", help="with --take: keep them when you detach")
    parser.add_argument("--raw", action="store_true", help="every byte, also what makes this terminal act or answer")
    parser.add_argument("--detach-keys", default=DEFAULT, metavar="KEYS", help=f"default: {DEFAULT}")
    arguments.why(parser)


def run(args: argparse.Namespace) -> int:
    if args.keep and not args.take:
        raise HoldfastError("usage", "--keep keeps what --take takes", f"hold attach {args.session} --take --keep")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise HoldfastError("usage", "attach needs a terminal", f"hold logs -f {args.session} follows without one")
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
        self._acted = False  # typed or took, and not heard yet that the controls are ours
        self._ours = False  # the controls are
        self._size: tuple[int, int] = (0, 0)
        self.exit: dict[str, Any] | None = None
        self.name = session

    def run(self) -> str:
        """Stay until detached or the session ends; the line to say afterwards."""
        self._refuse_nesting()
        about = self._connect(restore=True)
        self.name = about["name"]
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGWINCH, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        try:
            with RawTerminal(reset_sequence() + b"\r\n"):  # what is said afterwards begins on a line of its own
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
            raise HoldfastError("conflict", "this terminal is that session already", "nothing to attach to")
        if not self._read_only:
            raise HoldfastError(
                "conflict",
                "this terminal is a session already; a session inside a session confuses the detach keys",
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
        """Controls that another person holds are asked for, before the screen is drawn; a no is told as an error."""
        controls = about.get("controls") or {}
        if controls.get("kind") == "human" and controls["holder"] != self._me:
            printing.note(
                f"hold: {controls.get('name') or controls['holder']} holds the controls, and is asked for them"
            )
            self._host.call("take", session=self._session)

    def _send(self, data: bytes) -> None:
        assert self._sock is not None
        try:
            self._sock.sendall(data)
        except ConnectionError:
            pass  # a keeper that has just ended: what it told us before, and that it is gone, is found by reading

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
            return f"[the terminal is gone; {self.name} goes on]"
        data, detach = self._keys.feed(data)
        if data and not self._read_only:
            self._seq += 1
            self._acted = True
            self._send(keeper_messages.type_(self._seq, data))
        if detach:
            self._send(keeper_messages.act(_DETACH, "release", detach=True, keep=self._keep))  # gone on purpose
            return f"[detached from {self.name}; it goes on: hold attach {self.name}]"
        return None

    def _received(self) -> str | None:
        assert self._sock is not None
        try:
            data = self._sock.recv(_READ_BYTES)
        except ConnectionError:  # it ended before it had read all that we sent
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
            if not self._ours:  # what is typed from here on is typed knowing that
                self._send(keeper_messages.act(_SEEN, "seen", epoch=controls["epoch"]))
                if before and event.get("flushed"):
                    self._discarded(event)
            elif event.get("from"):
                self._handed(event)
            # Controls that came to us because we typed or took them: the window is ours to size. Others of the same
            # operator hear this too, and two windows that both answered would go on for ever.
            if self._acted and controls["holder"] == self._me:
                self._acted = False
                self._resize()
        elif kind == "closed":
            self._closed = str(event.get("reason"))

    def _discarded(self, event: dict[str, Any]) -> None:
        """What we typed ahead was taken back before the program read it: it must not look as if it had arrived."""
        name = event["controls"].get("name")
        who = f"{name} took the controls" if name else "the controls are no longer yours"
        self._title(f"{who}; {event['flushed']} bytes you typed were discarded unread")

    def _handed(self, event: dict[str, Any]) -> None:
        """Somebody gave us the controls: say who, and what they left to say, in the title."""
        note = f": {event['note']}" if event.get("note") else ""
        text = f"{event['from']['name']} hands you the controls{note}"
        self._title(text)

    def _title(self, text: str) -> None:
        """Where the user looks anyway: the bell and the title."""
        self._write(b"\a\x1b]2;" + printing.safe(text).encode() + b"\a")

    def _refused(self, result: dict[str, Any]) -> None:
        """Typing was refused: say who holds the controls, once."""
        error = result.get("error")
        if result.get("id") in (_DETACH, _SEEN):
            return  # said for the keeper's sake; an older one does not know it
        if error and error["message"] != self._told:
            self._told = error["message"]
            self._title(f"{error['message']}; {error['hint'].replace('SESSION', self.name)}")

    def _lost_line(self) -> str | None:
        """The keeper's line closed without an END: our rights are over, the session is, or the keeper died."""
        if self._closed:
            return f"[the line to {self.name} was closed: {self._closed}; it goes on]"
        self._show_rest()
        return self._over()

    def _show_rest(self) -> None:
        """A program that ends at once may be over before its keeper heard of us: its last words are in the record."""
        try:
            for chunk in self._host.session(self._session).output(self._at):
                self._at = chunk.end
                self._write(self._filter.strip(chunk.data))
        except HoldfastError:
            pass  # it was removed meanwhile, or the host is gone

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
    """How something ended, in words."""
    if not ended or not ended.get("known"):
        return "exit status unknown"
    if ended["signal"]:
        return f"killed by {ended['signal']}"
    return f"exit code {ended['code']}"
