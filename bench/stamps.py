"""What operators cost: an echo and a flood through a keeper that checks and records who types, and through one that
does not. Both are spoken to on their sockets, without a client's hop, so that the share is the largest there can be."""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import holdfast
from holdfast.model.home import Home
from holdfast.system import kernel
from holdfast.wire import keeper_frames

from . import echo, flood
from .ours import clean_env, gone
from .result import Result, Target, ratio, spread
from .terminal import TooSlow

KEY = "stamps"
_PACKAGE = Path(holdfast.__file__).parent
_ENTRIES = {
    "with": (str(_PACKAGE / "keeper" / "__main__.py"),),
    "without": (str(Path(__file__).parent / "unstamped.py"), str(_PACKAGE.parent)),
}
_WARM_UP = 20
_PATIENCE_S = 60.0
_RECV_BYTES = 1 << 20
_HELLO = {
    "v": 1,
    "token": "bench",
    "role": "client",
    "operator": "op_bench",
    "kind": "human",
    "name": "bench",
    "via": "bench",
    "rights": ["view", "type"],
    "attach": True,
    "acks": False,
}


def measure(quick: bool) -> list[Result]:
    strokes, megabytes, rounds = (400, 8, 3) if quick else (2000, 32, 9)
    return [_echo(strokes), _flood(megabytes, rounds)]


def _echo(strokes: int) -> Result:
    times: dict[str, list[float]] = {name: [] for name in _ENTRIES}
    with ExitStack() as stack:
        lines = {name: stack.enter_context(_Line(name, (b"a", b"v"), *echo.PROGRAM)) for name in _ENTRIES}
        for i in range(strokes + _WARM_UP):
            key, answer = (letters[i % 5 : i % 5 + 1] for letters in (echo.KEYS, echo.ANSWERS))
            for name, line in lines.items():
                took = line.ask(key, answer)
                if i >= _WARM_UP:
                    times[name].append(took * 1e6)
    added = statistics.median(times["with"]) / statistics.median(times["without"]) - 1
    return _result(
        "echo",
        "an echo, to a keeper's socket and back",
        "µs",
        times,
        added * 100,
        (f"medians of {strokes} keystrokes, one to each in turn; the program is the one of `echo`",),
    )


def _flood(megabytes: int, rounds: int) -> Result:
    rates: dict[str, list[float]] = {name: [] for name in _ENTRIES}
    folder = Path(tempfile.mkdtemp(prefix="hold-bench-stamps-"))
    try:
        size = flood.write_lines(folder / "text", 80, megabytes)
        with ExitStack() as stack:
            program = ("sh", "-c", flood._PROGRAM, str(folder / "text"))
            lines = {name: stack.enter_context(_Line(name, (b"ping\r", b"pong"), *program)) for name in _ENTRIES}
            for _ in range(rounds):
                for name, line in lines.items():
                    rates[name].append(size / 1e6 / line.ask(b"go\r", flood._END))
    finally:
        shutil.rmtree(folder)
    added = 1 / ratio(rates["with"], rates["without"]) - 1
    return _result(
        "flood",
        "a flood, 80-column lines, read from a keeper's socket",
        "MB/s",
        rates,
        added * 100,
        (f"{size / 1e6:.0f} MB, {rounds} rounds, each way in turn; nothing on the way of output asks who",),
    )


def _result(
    what: str, name: str, unit: str, values: dict[str, list[float]], added: float, notes: tuple[str, ...]
) -> Result:
    ours, without = (statistics.median(values[way]) for way in _ENTRIES)
    return Result(
        key=f"{KEY}-{what}",
        name=f"checking and recording who types: {name}",
        unit=unit,
        ours=ours,
        peers={"without": without},
        ratios={"without": ours / without},
        targets=(Target("added", added, 10.0, "lower", "%"),),
        notes=(*notes, *(f"{way}: {spread(v)}" for way, v in values.items())),
    )


class _Line:
    """A zygote and one keeper of its own, with a client's line to it. A context manager."""

    def __init__(self, way: str, probe: tuple[bytes, bytes], *command: str) -> None:
        self.path = tempfile.mkdtemp(prefix="hold-bench-")
        home = Home(self.path)
        folder = home.session("ses_bench")
        os.makedirs(folder.path)
        os.makedirs(home.roles)
        manifest = {
            "id": "ses_bench",
            "name": "bench",
            "generation": 1,
            "token": "bench",
            "size": [80, 24],
            "kind": "terminal",
            "command": list(command),
            "cwd": "/",
            "env": clean_env(),
        }
        Path(folder.manifest).write_text(json.dumps(manifest), encoding="utf-8")
        self._zygote, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        entry, *root = _ENTRIES[way]
        words = [sys.executable, "-I", "-S", entry, home.roles, *root]
        self._process = subprocess.Popen(words, stdin=theirs.fileno(), cwd="/")
        theirs.close()
        self._zygote.settimeout(_PATIENCE_S)
        if self._zygote.recv(1) != b"r":
            raise RuntimeError(f"the zygote {way} did not start")
        self._sock, theirs = socket.socketpair()
        self._sock.settimeout(_PATIENCE_S)
        socket.send_fds(self._zygote, [b"t" + os.fsencode(folder.path)], [theirs.fileno()])
        theirs.close()
        self._decoder, self._seq = keeper_frames.Decoder(), 0
        self._sock.sendall(keeper_frames.message(keeper_frames.HELLO, _HELLO) + keeper_frames.read(0))
        self._connected(*probe)

    def _connected(self, typed: bytes, answer: bytes) -> None:
        """Until the program answers; while it sets its terminal up, what is typed may be lost."""
        self._sock.settimeout(0.5)
        for _ in range(40):
            try:
                self.ask(typed, answer)
            except TimeoutError:
                continue
            self._sock.settimeout(_PATIENCE_S)
            return
        raise TooSlow("the program never answered")

    def ask(self, typed: bytes, answer: bytes) -> float:
        """Seconds from what is typed to the output that answers it."""
        self._seq += 1
        began = time.monotonic()
        self._sock.sendall(keeper_frames.input_frame(self._seq, 0, typed))
        tail = b""
        while data := self._sock.recv(_RECV_BYTES):
            for kind, payload in self._decoder.feed(data):
                if kind != keeper_frames.OUTPUT:
                    continue
                tail = tail[-len(answer) :] + payload[9:]
                if answer in tail:
                    return time.monotonic() - began
        raise TooSlow("the keeper has closed its line")

    def __enter__(self) -> _Line:
        return self

    def __exit__(self, *exc: object) -> None:
        roles = kernel.registered(Home(self.path).roles)
        self._sock.close()
        self._zygote.close()
        self._process.wait(_PATIENCE_S)
        for pid, started in roles:  # by pid and start time: never anybody else's process
            if kernel.start_time(pid) == started:
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                gone(pid, lambda pid=pid: os.kill(pid, 9))  # type: ignore[misc]
                for child in map(int, children):
                    gone(child, lambda child=child: os.kill(child, 9))  # type: ignore[misc]
        shutil.rmtree(self.path, ignore_errors=True)
