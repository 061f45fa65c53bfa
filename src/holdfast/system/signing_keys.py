"""Ed25519 keys on disk: `HOME/keys/ID.key`, mode 0600, or the desktop's keyring where that was asked for.

`cryptography` is imported by whoever signs or checks, never by a command that does neither.
"""

from __future__ import annotations

import functools
import os

from ..model.errors import HoldfastError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FORM = "holdfast-ed25519-v1"  # first word of a key file; the second is the secret seed in hex
_FILE_BYTES_MAX = 256
_RING = ".ring"  # an empty file in a key's place: it is in the keyring, whatever the environment says by now
KEYRING_ENV = "HOLDFAST_KEYRING"  # 1: new keys go into the desktop's keyring (package `keyring`) instead of a file
_SERVICE = "holdfast"


def public_of(seed: bytes) -> str:
    """The public key that belongs to a secret, in hex."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw().hex()


def sign(seed: bytes, message: bytes) -> bytes:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed).sign(message)


@functools.lru_cache(maxsize=1024)  # as many as there can be operators
def _public(key: str) -> Any:
    """Made once: reading a key costs as much as a check does."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))


def signed(public: str, signature: str, message: bytes) -> bool:
    """Whether the hex signature of a message is the hex key's; false for whatever is not even a key."""
    from cryptography.exceptions import InvalidSignature

    try:
        _public(public).verify(bytes.fromhex(signature), message)
    except (InvalidSignature, ValueError):
        return False
    return True


def make(folder: str, owner: str) -> str:
    """A new key for `owner`, kept; its public half."""
    seed = os.urandom(32)
    ring = _keyring() if os.environ.get(KEYRING_ENV) == "1" else None
    os.makedirs(folder, mode=0o700, exist_ok=True)
    if ring is not None:
        ring.set_password(_SERVICE, owner, seed.hex())
        os.close(os.open(_mark_of(folder, owner), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        return public_of(seed)
    path = path_of(folder, owner)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.write(fd, f"{_FORM} {seed.hex()}\n".encode())
        os.fsync(fd)
    finally:
        os.close(fd)
    return public_of(seed)


def kept(folder: str, owner: str) -> bool:
    """Whether the owner has a key already, here or in the keyring: another one in its place would sign for nobody."""
    return os.path.exists(path_of(folder, owner)) or os.path.exists(_mark_of(folder, owner))


def load(folder: str, owner: str) -> bytes:
    """The owner's secret; raises not_allowed where there is none to be read."""
    try:
        fd = os.open(path_of(folder, owner), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        ringed = os.path.exists(_mark_of(folder, owner))
        seed = _from_keyring(owner) if ringed or os.environ.get(KEYRING_ENV) == "1" else None
        if seed is not None:
            return seed
        if ringed:
            raise HoldfastError(
                "not_allowed",
                f"the key of {owner} is in the desktop's keyring, which cannot be read here",
                "unlock it, and see that the package `keyring` is installed",
            ) from None
        raise missing(owner) from None
    try:
        text = os.read(fd, _FILE_BYTES_MAX).decode("ascii", "replace")
    finally:
        os.close(fd)
    form, _, value = text.strip().partition(" ")
    try:
        seed = bytes.fromhex(value) if form == _FORM else b""
    except ValueError:
        seed = b""
    if len(seed) != 32:
        raise HoldfastError("not_allowed", f"the key of {owner} is damaged", "restore it from a backup")
    return seed


def forget(folder: str, owner: str) -> None:
    try:
        os.unlink(path_of(folder, owner))
    except OSError:
        marked = os.path.exists(_mark_of(folder, owner))
        ring = _keyring() if marked or os.environ.get(KEYRING_ENV) == "1" else None
        if ring is not None and ring.get_password(_SERVICE, owner) is not None:
            ring.delete_password(_SERVICE, owner)
        if marked:
            os.unlink(_mark_of(folder, owner))


def missing(owner: str) -> HoldfastError:
    return HoldfastError(
        "not_allowed", f"there is no key of {owner[:60]!r} to be read here", "hold operator ls names those enrolled"
    )


def path_of(folder: str, owner: str) -> str:
    return os.path.join(folder, f"{owner}.key")


def _mark_of(folder: str, owner: str) -> str:
    return os.path.join(folder, f"{owner}{_RING}")


def _from_keyring(owner: str) -> bytes | None:
    ring = _keyring()
    found = ring.get_password(_SERVICE, owner) if ring is not None else None
    try:
        return bytes.fromhex(found) if found else None
    except ValueError:
        return None


def _keyring() -> Any:
    """The desktop's keyring, or None where the package or a real backend is missing."""
    try:
        import keyring
    except ImportError:
        return None
    backend = keyring.get_keyring()
    return keyring if getattr(backend, "priority", 0) > 0 else None  # "fail" and "null" say 0 or less
