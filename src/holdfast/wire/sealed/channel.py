"""One sealed channel, from the first byte of the handshake to its end: what a link feeds and drains.

    state      next message from the other side       then
    greeting   the handshake's                        device: open · host: proving
    proving    the device's proof (host only)         open
    open       records of frames                      ended, by END, an error or `end`
    ended      nothing is read

`receive` never raises for what the other side sent: the last event is `Ended` with the error, and nothing follows it.
"""

from __future__ import annotations

from ...model.errors import HoldfastError
from ...model.limits import SEALED_GREETING_BYTES_MAX
from . import device_proof, frames, noise
from .errors import SealedError
from .events import Ended, Event, Proven
from .mux import Mux
from .prologue import VERSION, Prologue
from .records import BODY_BYTES_MAX, Opener, Sealer, Splitter, body_bytes, framed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

GREETING, PROVING, OPEN, ENDED = "greeting", "proving", "open", "ended"
# The longest message in each state, so that a device that has not proven itself costs the host little.
_LONGEST = {
    GREETING: SEALED_GREETING_BYTES_MAX,
    PROVING: body_bytes(device_proof.PROOF_BYTES),
    OPEN: BODY_BYTES_MAX,
}


class _Channel:
    """`streams` is the mux. Ask `next_bytes` when the transport can take more, and not before: a keystroke cannot
    overtake what already waits in a socket."""

    def __init__(self, prologue: Prologue, device: bool) -> None:
        self.state = GREETING
        self.streams = Mux(device)
        self.handshake_hash = b""  # names this channel; operators sign it, too
        self._prologue = prologue.encode()
        self._splitter = Splitter()
        self._outgoing: list[bytes] = []
        self._sealer: Sealer | None = None
        self._opener: Opener | None = None
        self._take: dict[str, Callable[[memoryview], list[Event]]] = {OPEN: self._take_frames}

    def receive(self, data: bytes) -> list[Event]:
        """Bytes from the transport, cut anywhere; the events that follow from them."""
        events: list[Event] = []
        try:
            if self.state != ENDED:
                for message in self._splitter.split(data, lambda: _LONGEST[self.state]):
                    events += self._take[self.state](message)
                    if self.state == ENDED:
                        break
        except HoldfastError as e:
            self.end(e.code, e.line())
            events.append(Ended(e, by_peer=False))
        return events

    def eof(self) -> list[Event]:
        """The transport ended. Without an END before it that is an error: a relay can cut a channel, not end it."""
        if self.state == ENDED:
            return []
        self.state = ENDED
        return [Ended(SealedError("cut"), by_peer=False)]

    def next_bytes(self) -> bytes:
        """The next message for the transport; empty if nothing waits."""
        if self._outgoing:
            return self._outgoing.pop(0)
        if self.state != OPEN or self._sealer is None:
            return b""
        payload = self.streams.next_payload()
        return self._sealer.seal(payload) if payload else b""

    def end(self, code: str = "", message: str = "") -> None:
        """End the channel and tell the other side, sealed. Before the handshake is done there is nothing to tell."""
        if self.state != ENDED and self._sealer is not None:
            payload = frames.end_payload(code, message)
            self._outgoing.append(self._sealer.seal(frames.frame(frames.END, 0, payload)))
        self.state = ENDED

    def _start(self, keys: noise.Keys) -> Sealer:
        self.handshake_hash = keys.handshake_hash
        self._opener = Opener(keys.receive)
        self._sealer = Sealer(keys.send)
        return self._sealer

    def _opened(self, message: memoryview) -> bytes:
        assert self._opener is not None  # made by the handshake, which comes before any record
        return self._opener.open(message)

    def _take_frames(self, message: memoryview) -> list[Event]:
        events = self.streams.receive(self._opened(message))
        if events and isinstance(events[-1], Ended):
            self.state = ENDED
        return events


class DeviceChannel(_Channel):
    """The side that dials. It knows the host's key from pairing, and signs with the device's."""

    def __init__(
        self,
        prologue: Prologue,
        host_key: bytes,
        device_key: bytes,
        sign: Callable[[bytes], bytes],
        ephemeral: X25519PrivateKey | None = None,
    ) -> None:
        super().__init__(prologue, device=True)
        self._device_key, self._sign = device_key, sign
        self._handshake = noise.Initiation(self._prologue, host_key, ephemeral=ephemeral)
        self._outgoing.append(_greeting(self._handshake.message))
        self._take[GREETING] = self._take_answer

    def _take_answer(self, message: memoryview) -> list[Event]:
        sealer = self._start(self._handshake.finish(_greeted(message)))
        self._outgoing.append(sealer.seal(device_proof.make(self._device_key, self._sign, self.handshake_hash)))
        self.state = OPEN
        return [Proven(None)]


class HostChannel(_Channel):
    """The side that answers. `admit` sees the proof of a device once its signature has been verified, and raises what
    the device is told if its key is not this device's, is revoked, or has no pairing under way."""

    def __init__(
        self,
        prologue: Prologue,
        host_secret: X25519PrivateKey,
        admit: Callable[[device_proof.DeviceProof], None],
        ephemeral: X25519PrivateKey | None = None,
    ) -> None:
        super().__init__(prologue, device=False)
        self._secret, self._admit, self._ephemeral = host_secret, admit, ephemeral
        self._take |= {GREETING: self._take_greeting, PROVING: self._take_proof}

    def _take_greeting(self, message: memoryview) -> list[Event]:
        if message[:1] != bytes((VERSION,)):
            self._outgoing.append(_greeting(b""))  # the version alone, so that the device can name the older side
        theirs = _greeted(message)
        answer, keys = noise.respond(self._prologue, self._secret, theirs, ephemeral=self._ephemeral)
        self._outgoing.append(_greeting(answer))
        self._start(keys)
        self.state = PROVING
        return []

    def _take_proof(self, message: memoryview) -> list[Event]:
        proof = device_proof.check(self._opened(message), self.handshake_hash)
        self._admit(proof)
        self.state = OPEN
        return [Proven(proof)]


def _greeting(message: bytes) -> bytes:
    return framed(bytes((VERSION,)) + message)


def _greeted(message: memoryview) -> bytes:
    """The handshake message in a greeting of this version; its payload is empty, because it could be sent again."""
    if not message:
        raise SealedError("truncated", "an empty greeting")
    if message[0] != VERSION:
        raise SealedError("version", f"version {message[0]}, this side {VERSION}")
    if len(message) > 1 + noise.MESSAGE_BYTES:
        raise SealedError("too_long", f"a greeting of {len(message)} bytes")
    return bytes(message[1:])
