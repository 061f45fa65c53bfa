"""What sealing costs on one core: the same bytes over a socket pair, plain, through streams alone, and sealed.

One thread does both ends' work, so a byte is sealed and opened in the time measured; two machines share that. There is
no target here: the relay's targets are for the whole path, of which this is a part.
"""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Callable

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from holdfast.model.limits import SEALED_RECORD_BYTES
from holdfast.wire.sealed.channel import DeviceChannel, HostChannel
from holdfast.wire.sealed.events import Data, Event
from holdfast.wire.sealed.frames import BULK, INTERACTIVE
from holdfast.wire.sealed.mux import Mux
from holdfast.wire.sealed.prologue import Prologue

from .result import Result, ratio, spread

KEY = "sealed"
_CHUNK = SEALED_RECORD_BYTES - 64  # one record with its frames
_KEYSTROKE = b"a"


class _Socket:
    """A socket pair that holds a whole record."""

    def __init__(self) -> None:
        self.near, self.far = socket.socketpair()
        for end in (self.near, self.far):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)

    def carry(self, data: bytes) -> bytes:
        self.near.sendall(data)
        got = self.far.recv(1 << 20)
        while len(got) < len(data):
            got += self.far.recv(1 << 20)
        return got

    def close(self) -> None:
        self.near.close()
        self.far.close()


def channels() -> tuple[DeviceChannel, HostChannel]:
    """Both ends, proven."""
    secret, key = X25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    ids = Prologue("ten_bench", "nod_bench", "hst_bench", "dev_bench")
    device = DeviceChannel(ids, secret.public_key().public_bytes_raw(), key.public_key().public_bytes_raw(), key.sign)
    host = HostChannel(ids, secret, lambda proof: None)
    host.receive(device.next_bytes())
    device.receive(host.next_bytes())
    host.receive(device.next_bytes())
    return device, host


def _plain(line: _Socket, _: int) -> Callable[[bytes], None]:
    def carry(data: bytes) -> None:
        assert len(line.carry(data)) == len(data)

    return carry


def _streams(line: _Socket, kind: int) -> Callable[[bytes], None]:
    near, far = Mux(device=True), Mux(device=False)
    number = near.open(kind)

    def carry(data: bytes) -> None:
        near.write(number, data)
        _consume(far, far.receive(line.carry(near.next_payload())))
        if back := far.next_payload():
            near.receive(back)

    return carry


def _sealed(line: _Socket, kind: int) -> Callable[[bytes], None]:
    near, far = channels()
    number = near.streams.open(kind)

    def carry(data: bytes) -> None:
        near.streams.write(number, data)
        _consume(far.streams, far.receive(line.carry(near.next_bytes())))
        if back := far.next_bytes():
            near.receive(back)

    return carry


def _consume(mux: Mux, events: list[Event]) -> None:
    for event in events:
        if isinstance(event, Data):
            mux.consumed(event.stream, len(event.data))


_WAYS = {"sealed": _sealed, "streams, not sealed": _streams, "socket pair": _plain}


def _rounds(kind: int, data: bytes, times: int, rounds: int) -> dict[str, list[float]]:
    """Processor seconds per message of each way, the ways in turn: a busy machine changes them little."""
    took: dict[str, list[float]] = {name: [] for name in _WAYS}
    line = _Socket()
    try:
        ways = {name: make(line, kind) for name, make in _WAYS.items()}
        for round_ in range(rounds + 1):
            for name, carry in ways.items():
                began = time.process_time()
                for _ in range(times):
                    carry(data)
                if round_:  # the first one warms up
                    took[name].append((time.process_time() - began) / times)
    finally:
        line.close()
    return took


def measure(quick: bool) -> list[Result]:
    rounds = 5 if quick else 15
    bulk = _rounds(BULK, b"x" * _CHUNK, 200 if quick else 1000, rounds)
    keys = _rounds(INTERACTIVE, _KEYSTROKE, 500 if quick else 3000, rounds)
    speed = {name: [_CHUNK / t / 1e6 for t in times] for name, times in bulk.items()}
    peers = [name for name in _WAYS if name != "sealed"]
    return [
        Result(
            key="sealed-bytes",
            name="Sealing bulk: written, sealed, through a socket pair, opened, consumed",
            unit="MB/s",
            ours=statistics.median(speed["sealed"]),
            peers={name: statistics.median(speed[name]) for name in peers},
            ratios={name: ratio(speed["sealed"], speed[name]) for name in peers},
            notes=(
                f"records of {SEALED_RECORD_BYTES >> 10} KiB, both ends on one core; medians of {rounds} in turn",
                *(f"{name}: {spread(values)}" for name, values in speed.items()),
            ),
        ),
        Result(
            key="sealed-key",
            name="Sealing one keystroke, one way",
            unit="µs",
            ours=statistics.median(keys["sealed"]) * 1e6,
            peers={name: statistics.median(keys[name]) * 1e6 for name in peers},
            ratios={name: ratio(keys["sealed"], keys[name]) for name in peers},
            notes=(
                "one byte, padded to 64; both ends on one core. The whole path's echo is measured where there is one",
                *(f"{name}: {spread([t * 1e6 for t in times])}" for name, times in keys.items()),
            ),
        ),
    ]
