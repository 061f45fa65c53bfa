"""How long one keystroke takes to come back through the page's WebSocket, beside an attached terminal."""

from __future__ import annotations

import base64
import json
import socket
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from urllib.parse import urlsplit

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.typing import Origin
from websockets.uri import parse_uri

from .echo import ANSWERS, KEYS, PROGRAM, WARM_UP, connected, stroke
from .ours import HOLD, Ours
from .result import Result, Target, ratio, spread
from .terminal import Terminal, TooSlow

KEY = "page-echo"
_TIMES = 3.0  # a hop more, and WebSocket and JSON on it; a person sees no difference at either
_PATIENCE_S = 10.0
_READ_BYTES = 65536
_ROUND = 50  # strokes of one way before the other's turn: a ratio of each round
_PAUSE_S = 0.005  # between strokes: what follows an echo (acknowledgements) is over, as it is between two of a hand


def measure(quick: bool) -> list[Result]:
    rounds = 4 if quick else 20
    with Ours() as ours, ExitStack() as stack:
        terminal = Terminal(ours.attach_words(ours.run(*PROGRAM)), ours.env)
        stack.callback(terminal.close)
        connected(terminal)
        page = Page(*_login(ours), ours.run(*PROGRAM).id)
        stack.callback(page.close)
        for i in range(WARM_UP):
            page.stroke(i % len(KEYS))
        through: dict[str, list[float]] = {"page": [], "attach": []}
        for _ in range(rounds):
            through["page"].append(_median(page.stroke))
            through["attach"].append(_median(lambda i: stroke(terminal, i, _PATIENCE_S)))
    medians = {name: statistics.median(values) for name, values in through.items()}
    times = ratio(through["page"], through["attach"])
    return [
        Result(
            key=KEY,
            name="echo of one keystroke through the page's WebSocket",
            unit="µs",
            ours=medians["page"],
            peers={"hold attach": medians["attach"]},
            ratios={"hold attach": times},
            targets=(Target("page ÷ hold attach", times, _TIMES, "lower"),),
            notes=(
                f"{rounds} rounds of {_ROUND} keystrokes, each way in turn, {_PAUSE_S * 1e3:g} ms apart; medians",
                "messages as the page sends them, acknowledgements included; no browser, so that drawing is not in it",
                *(f"{name}: {spread(values)}" for name, values in through.items()),
            ),
        )
    ]


def _median(one: Callable[[int], float]) -> float:
    times = []
    for i in range(_ROUND):
        time.sleep(_PAUSE_S)
        times.append(one(i % len(KEYS)) * 1e6)
    return statistics.median(times)


def _login(ours: Ours) -> tuple[str, str]:
    """The page's address, and the cookie of a login by link."""
    subprocess.run([HOLD, "up", "--web", "0"], env=ours.env, check=True, capture_output=True)
    done = subprocess.run([HOLD, "web", "link", "--json"], env=ours.env, check=True, capture_output=True)
    made = json.loads(done.stdout)
    at = urlsplit(made["link"])
    url = f"{at.scheme}://{at.netloc}"
    body = json.dumps({"token": made["token"]}).encode()
    headers = {"Content-Type": "application/json", "Origin": url}
    with urllib.request.urlopen(urllib.request.Request(f"{url}/api/login", body, headers), timeout=30) as answer:
        return url, answer.headers["Set-Cookie"].partition(";")[0]


class Page:
    """What the page's script does with its socket, on a blocking socket of our own: no thread, no event loop."""

    def __init__(self, url: str, cookie: str, session: str) -> None:
        at = urlsplit(url)
        uri = parse_uri(f"ws://{at.netloc}/api/sessions/{session}/attach?client=bench")
        self._protocol = ClientProtocol(uri, origin=Origin(url), max_size=1 << 24)
        self._sock = socket.create_connection((at.hostname, at.port), _PATIENCE_S)
        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as browsers do
        request = self._protocol.connect()
        request.headers["Cookie"] = cookie
        self._protocol.send_request(request)
        self._seq = 0
        self._send()
        self._until(lambda frame: b'"controls"' in bytes(frame.data))

    def stroke(self, which: int) -> float:
        self._seq += 1
        data = base64.b64encode(KEYS[which : which + 1]).decode()
        began = time.monotonic()
        self._say("input", seq=self._seq, data=data)
        return self._until(lambda frame: ANSWERS[which : which + 1] in bytes(frame.data)[8:]) - began

    def close(self) -> None:
        self._sock.close()

    def _say(self, kind: str, **facts: object) -> None:
        self._protocol.send_text(json.dumps({"kind": kind, **facts}).encode())
        self._send()

    def _send(self) -> None:
        for data in self._protocol.data_to_send():
            self._sock.sendall(data)

    def _until(self, wanted: Callable[[Frame], bool]) -> float:
        """Read until a frame is as wanted; the time when it was there. Output is acknowledged as the page does."""
        while True:
            data = self._sock.recv(_READ_BYTES)
            now = time.monotonic()
            if not data:
                raise TooSlow("the web process closed the page's socket")
            self._protocol.receive_data(data)
            found = False
            for event in self._protocol.events_received():
                if not isinstance(event, Frame):
                    continue
                if event.opcode is Opcode.BINARY:
                    self._say("ack", offset=int.from_bytes(event.data[:8], "big"))
                    found = found or wanted(event)
                elif event.opcode is Opcode.TEXT:
                    self._hear(json.loads(bytes(event.data)))
                    found = found or wanted(event)
            if found:
                return now

    def _hear(self, told: dict[str, object]) -> None:
        if told["kind"] == "controls":
            self._say("seen", epoch=told["epoch"])
        elif told["kind"] == "ping":
            self._say("pong")
