"""A device and a host with fixed keys, and the wire between their sealed channels, which tests may tamper with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from holdfast.model.errors import HoldfastError
from holdfast.wire.sealed.channel import DeviceChannel, HostChannel
from holdfast.wire.sealed.device_proof import DeviceProof
from holdfast.wire.sealed.events import Ended, Event
from holdfast.wire.sealed.prologue import Prologue

PROLOGUE = Prologue("ten_1", "nod_1", "hst_1", "dev_1")
HOST = X25519PrivateKey.from_private_bytes(b"host" * 8)
OTHER_HOST = X25519PrivateKey.from_private_bytes(b"evil" * 8)
DEVICE = Ed25519PrivateKey.from_private_bytes(b"devi" * 8)
OTHER_DEVICE = Ed25519PrivateKey.from_private_bytes(b"thie" * 8)

Channel = DeviceChannel | HostChannel


def public(key: X25519PrivateKey | Ed25519PrivateKey) -> bytes:
    return key.public_key().public_bytes_raw()


def enrolled(proof: DeviceProof) -> None:
    """A host that knows one device."""
    if proof.key != public(DEVICE):
        raise HoldfastError("not_paired", "this device is not paired with the host", "hold pair")


def device(
    prologue: Prologue = PROLOGUE, host: X25519PrivateKey = HOST, key: Ed25519PrivateKey = DEVICE
) -> DeviceChannel:
    return DeviceChannel(prologue, public(host), public(key), key.sign)


def host(prologue: Prologue = PROLOGUE, admit: Callable[[DeviceProof], None] = enrolled) -> HostChannel:
    return HostChannel(prologue, HOST, admit)


def drain(channel: Channel) -> bytes:
    """Everything that waits to be sent."""
    return b"".join(iter(channel.next_bytes, b""))


def records(channel: Channel) -> list[bytes]:
    """Likewise, one by one."""
    return list(iter(channel.next_bytes, b""))


def exchange(left: Channel, right: Channel) -> tuple[list[Event], list[Event]]:
    """Both ways until nothing waits; what each side reported."""
    told: tuple[list[Event], list[Event]] = ([], [])
    for _ in range(1000):
        outgoing, incoming = drain(left), drain(right)
        if not outgoing and not incoming:
            return told
        told[1].extend(right.receive(outgoing))
        told[0].extend(left.receive(incoming))
    raise AssertionError("the two sides never stop talking")


def connected() -> tuple[DeviceChannel, HostChannel]:
    left, right = device(), host()
    exchange(left, right)
    return left, right


def reason(events: list[Event]) -> str:
    """Why the channel ended: the reason of a sealed error, else its code."""
    assert events, "nothing was reported"
    last = events[-1]
    assert isinstance(last, Ended), last
    assert last.error is not None
    assert not any(isinstance(event, Ended) for event in events[:-1])
    return getattr(last.error, "reason", last.error.code)


def other(**ids: str) -> Prologue:
    return replace(PROLOGUE, **ids)
