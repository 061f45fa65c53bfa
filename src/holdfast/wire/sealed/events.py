"""What a channel reports to the link, in the order in which it happened."""

from __future__ import annotations

from dataclasses import dataclass

from ...model.errors import HoldfastError
from .device_proof import DeviceProof


@dataclass(frozen=True, slots=True)
class Proven:
    """The channel is open. The host gets the device's proof, for its journal; the device gets None."""

    proof: DeviceProof | None


@dataclass(frozen=True, slots=True)
class Opened:
    """The other side opened a stream."""

    stream: int
    kind: int  # INTERACTIVE or BULK
    purpose: bytes


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of a stream. They count against its window until the link calls `consumed`."""

    stream: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Credited:
    """The other side consumed bytes: `room` of this stream may have grown."""

    stream: int


@dataclass(frozen=True, slots=True)
class Closed:
    """The other side sends no more on this stream; this side still may."""

    stream: int


@dataclass(frozen=True, slots=True)
class Reset:
    """The other side gave the stream up; what the link still holds of it is to be dropped."""

    stream: int


@dataclass(frozen=True, slots=True)
class Pong:
    value: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event. `error` is None where both sides agreed to end; `by_peer` tells whose words it holds."""

    error: HoldfastError | None
    by_peer: bool


Event = Proven | Opened | Data | Credited | Closed | Reset | Pong | Ended
