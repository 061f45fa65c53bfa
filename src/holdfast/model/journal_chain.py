"""The journal's chain: canonical bytes, hashes, signed heads, and the check that finds the first bad entry. Pure.

    hash(n) = SHA-256(hash(n-1) · canonical bytes of entry n)        hash(0) = SHA-256(label · host id)

A head is (host, n, hash, at) under the host's key. Entries whose number is a multiple of HEAD_EVERY always have one,
so leaving heads out is seen as well as changing them.
"""

from __future__ import annotations

import hashlib
import json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    Json = dict[str, Any]
    Row = tuple[int, bytes, bytes, str | None]  # number, canonical bytes, hash, session column

HEAD_EVERY = 64  # a signature costs some 50 µs: under a microsecond per entry, and little is unsigned at any time
_NAMES = b'"session":"'  # a quote inside a text is escaped, so these bytes are the key and nothing else
_FIRST, _HEAD = b"holdfast-journal-v1\0", b"holdfast-journal-head-v1\0"


def canonical(value: object) -> bytes:
    """The one way to write a value as bytes: sorted keys, no blanks, ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode("ascii")


def first_hash(host: str) -> bytes:
    return hashlib.sha256(_FIRST + host.encode()).digest()


def next_hash(previous: bytes, body: bytes) -> bytes:
    return hashlib.sha256(previous + body).digest()


def head(host: str, n: int, digest: bytes, at: float) -> Json:
    """What is signed, and with its signature added, what is kept."""
    return {"host": host, "n": n, "hash": digest.hex(), "at": at}


def head_bytes(value: Mapping[str, object]) -> bytes:
    return _HEAD + canonical({k: value[k] for k in ("host", "n", "hash", "at")})


class JournalCheck:
    """What the check found; `bad` is the first entry that is not as it was written, and `reason` says why."""

    __slots__ = ("bad", "entries", "hash", "heads", "reason")

    def __init__(self, entries: int, digest: bytes, heads: int, bad: int | None = None, reason: str = "") -> None:
        self.entries, self.hash, self.heads, self.bad, self.reason = entries, digest, heads, bad, reason

    @property
    def ok(self) -> bool:
        return self.bad is None


def verify(
    rows: Iterable[Row],
    heads: Iterable[Json],
    host: str,
    signed: Callable[[Json], bool],
    known: Iterable[Json] = (),
) -> JournalCheck:
    """Walk the chain once. `heads` are the ones kept with it, `known` those kept elsewhere (a file, a memory)."""
    at_number: dict[int, list[Json]] = {}
    kept = set()
    for one in heads:
        at_number.setdefault(int(one["n"]), []).append(one)
        kept.add(int(one["n"]))
    for one in known:
        at_number.setdefault(int(one["n"]), []).append(one)
    previous, n, checked = first_hash(host), 0, 0
    filed: str | None = None  # the last row's session, and the bytes that an entry of it holds
    mark = _NAMES
    sha256 = hashlib.sha256
    for number, body, digest, session in rows:
        n += 1
        if number != n:
            return JournalCheck(n - 1, previous, checked, n, f"entry {n} is missing, {number} follows")
        previous = sha256(previous + body).digest()
        if previous != digest:
            return JournalCheck(n - 1, previous, checked, n, "its content does not match its hash")
        if session != filed:
            filed, mark = session, b'"session":"%b"' % session.encode() if session else _NAMES
        if (mark in body) is not (session is not None):
            return JournalCheck(n - 1, previous, checked, n, "it is filed under another session than it names")
        if n in at_number:
            reason = _judge(at_number.pop(n), host, previous, signed)
            if reason:
                return JournalCheck(n - 1, previous, checked, n, reason)
            checked += 1
        if n % HEAD_EVERY == 0 and n not in kept:
            return JournalCheck(n - 1, previous, checked, n, "the head that was signed here is missing")
    if at_number:
        last = max(at_number)
        return JournalCheck(n, previous, checked, n + 1, f"the end is cut off: a head was signed at entry {last}")
    return JournalCheck(n, previous, checked)


def _judge(heads: list[Json], host: str, digest: bytes, signed: Callable[[Json], bool]) -> str:
    for one in heads:
        if one.get("host") != host:
            return f"its head is another host's ({str(one.get('host'))[:40]})"
        if not signed(one):
            return "its head is not signed by this host"
        if one.get("hash") != digest.hex():
            return "it, or one before it, is not what the host signed"
    return ""
