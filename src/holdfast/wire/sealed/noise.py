"""Noise_NK_25519_AESGCM_SHA256 (noiseprotocol.org, revision 34): the device knows the host's key, and stays anonymous
here; it proves its own key in the first record.

    <- s                 the host's static key, pinned at pairing
    -> e, es             message 1: 32 bytes of key, then the sealed payload
    <- e, ee             message 2: likewise

Every primitive is `cryptography`'s or hashlib's; this file only orders them.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from .errors import SealedError

NAME = b"Noise_NK_25519_AESGCM_SHA256"
KEY_BYTES = 32
TAG_BYTES = 16
MESSAGE_BYTES = KEY_BYTES + TAG_BYTES  # of either handshake message with an empty payload
_LAST_NONCE = (1 << 64) - 1  # reserved by Noise for rekeying


class CipherState:
    """A key and the number of the next message under it."""

    __slots__ = ("_aead", "n")

    def __init__(self, key: bytes) -> None:
        self._aead = AESGCM(key)
        self.n = 0

    def encrypt(self, plaintext: bytes, ad: bytes | None = None) -> bytes:
        return self._aead.encrypt(self._next(), plaintext, ad)

    def decrypt(self, ciphertext: bytes | memoryview, ad: bytes | None = None) -> bytes:
        """Raises InvalidTag; the caller ends the channel, so that a nonce is never tried twice."""
        return self._aead.decrypt(self._next(), ciphertext, ad)

    def rekey(self) -> None:
        """The next key, from which this one cannot be computed. The count goes on, as Noise has it."""
        self._aead = AESGCM(self._aead.encrypt(_nonce(_LAST_NONCE), bytes(KEY_BYTES), None)[:KEY_BYTES])

    def _next(self) -> bytes:
        if self.n >= _LAST_NONCE:
            raise SealedError("exhausted")
        nonce = _nonce(self.n)
        self.n += 1
        return nonce


class Keys(NamedTuple):
    """What a finished handshake leaves: a cipher for each direction, the hash that names this channel, the payload."""

    send: CipherState
    receive: CipherState
    handshake_hash: bytes
    payload: bytes


class Initiation:
    """The device's side. `message` goes to the host; `finish` takes the host's answer, once."""

    def __init__(
        self, prologue: bytes, host_key: bytes, payload: bytes = b"", ephemeral: X25519PrivateKey | None = None
    ) -> None:
        self._ephemeral = ephemeral or X25519PrivateKey.generate()
        symmetric = _Symmetric(prologue, host_key)
        public = self._ephemeral.public_key().public_bytes_raw()
        symmetric.mix_hash(public)
        symmetric.mix_key(_shared(self._ephemeral, host_key))
        self.message = public + symmetric.seal(payload)
        self._symmetric: _Symmetric | None = symmetric

    def finish(self, message: bytes) -> Keys:
        symmetric, self._symmetric = self._symmetric, None
        if symmetric is None:
            raise SealedError("handshake", "answered twice")
        payload = symmetric.take(self._ephemeral, message)
        toward_host, toward_device = symmetric.split()
        return Keys(toward_host, toward_device, symmetric.hash, payload)


def respond(
    prologue: bytes,
    host_secret: X25519PrivateKey,
    message: bytes,
    payload: bytes = b"",
    ephemeral: X25519PrivateKey | None = None,
) -> tuple[bytes, Keys]:
    """The host's side: its answer to message 1, and the keys."""
    symmetric = _Symmetric(prologue, host_secret.public_key().public_bytes_raw())
    received = symmetric.take(host_secret, message)
    ephemeral = ephemeral or X25519PrivateKey.generate()
    public = ephemeral.public_key().public_bytes_raw()
    symmetric.mix_hash(public)
    symmetric.mix_key(_shared(ephemeral, message[:KEY_BYTES]))
    answer = public + symmetric.seal(payload)
    toward_host, toward_device = symmetric.split()
    return answer, Keys(toward_device, toward_host, symmetric.hash, received)


class _Symmetric:
    """Noise's SymmetricState: the chaining key, the hash of everything said, and the key of the moment."""

    def __init__(self, prologue: bytes, host_key: bytes) -> None:
        self.hash = self._chain = NAME.ljust(32, b"\0")  # shorter than a hash, and therefore not hashed itself
        self._cipher: CipherState | None = None
        self.mix_hash(prologue)
        self.mix_hash(host_key)

    def mix_hash(self, data: bytes) -> None:
        self.hash = hashlib.sha256(self.hash + data).digest()

    def mix_key(self, secret: bytes) -> None:
        self._chain, key = self._derive(secret)
        self._cipher = CipherState(key)

    def seal(self, payload: bytes) -> bytes:
        assert self._cipher is not None  # every message of NK comes after a key
        sealed = self._cipher.encrypt(payload, self.hash)
        self.mix_hash(sealed)
        return sealed

    def take(self, mine: X25519PrivateKey, message: bytes) -> bytes:
        """A message of the other side: its ephemeral key, mixed with a key of this side, and the payload under both."""
        if len(message) < MESSAGE_BYTES:
            raise SealedError("truncated", f"a handshake of {len(message)} bytes")
        theirs, sealed = message[:KEY_BYTES], message[KEY_BYTES:]
        self.mix_hash(theirs)
        self.mix_key(_shared(mine, theirs))
        assert self._cipher is not None
        try:
            payload = self._cipher.decrypt(sealed, self.hash)
        except InvalidTag:
            raise SealedError("handshake") from None
        self.mix_hash(sealed)
        return payload

    def split(self) -> tuple[CipherState, CipherState]:
        first, second = self._derive(b"")
        return CipherState(first), CipherState(second)

    def _derive(self, secret: bytes) -> tuple[bytes, bytes]:
        """Noise's HKDF with two outputs is RFC 5869's with the chaining key as salt and no info."""
        both = HKDF(hashes.SHA256(), 2 * KEY_BYTES, salt=self._chain, info=b"").derive(secret)
        return both[:KEY_BYTES], both[KEY_BYTES:]


def _shared(mine: X25519PrivateKey, theirs: bytes) -> bytes:
    try:
        return mine.exchange(X25519PublicKey.from_public_bytes(theirs))
    except ValueError:  # all zero, from a point of low order; or not 32 bytes
        raise SealedError("low_order") from None


def _nonce(n: int) -> bytes:
    return n.to_bytes(12, "big")  # AESGCM in Noise: four zero bytes, then the count
