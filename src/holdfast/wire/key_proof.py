"""Proof that a client holds an operator's key: the bytes it signs. Bound to one host and one connection. Pure."""

from __future__ import annotations

_LABEL = b"holdfast-operator-proof-v1"
NONCE_BYTES = 32  # never used twice: a signature seen on one connection is worth nothing on the next


def message(host: str, nonce: bytes, operator: str) -> bytes:
    """Each part with its length before it, so that no two different proofs are the same bytes."""
    parts = (_LABEL, host.encode(), nonce, operator.encode())
    return b"".join(len(p).to_bytes(4, "big") + p for p in parts)
