"""The first record of a channel: the device's Ed25519 key and its signature over the handshake hash.

The hash covers both ephemeral keys, the host's key and the prologue with every id, so that a proof is worth nothing on
another channel, to another host or for another device.
"""

from __future__ import annotations

from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from .errors import SealedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LABEL = b"holdfast-device-proof-v1"
_KEY_BYTES = 32
PROOF_BYTES = _KEY_BYTES + 64


@dataclass(frozen=True, slots=True)
class DeviceProof:
    """Kept in the journal: with it anyone can check later that this device opened this channel."""

    key: bytes
    signature: bytes
    handshake_hash: bytes


def message(handshake_hash: bytes) -> bytes:
    """What is signed. No other signature of Holdfast begins with this label."""
    return b"".join(len(part).to_bytes(4, "big") + part for part in (_LABEL, handshake_hash))


def make(key: bytes, sign: Callable[[bytes], bytes], handshake_hash: bytes) -> bytes:
    return key + sign(message(handshake_hash))


def check(record: bytes, handshake_hash: bytes) -> DeviceProof:
    """The proof in a channel's first record; whether its key is enrolled is for the host to say."""
    key, signature = record[:_KEY_BYTES], record[_KEY_BYTES:PROOF_BYTES]
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message(handshake_hash))
    except (InvalidSignature, ValueError):
        raise SealedError("proof") from None
    if any(record[PROOF_BYTES:]):
        raise SealedError("padding", "behind the proof")
    return DeviceProof(key, signature, handshake_hash)
