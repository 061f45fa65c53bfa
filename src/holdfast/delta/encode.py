"""Encodes a saved state as its change from the last one. Pure: no file, no clock.

A state is a mapping of keys to values. An `Encoder` remembers the bytes of its last save, key by key, and turns the
next state into splices against them: (offset, bytes removed, bytes put in their place). A list that grew costs its
growth, an edited element its difference, an untouched key nothing. Applied in order from the beginning, or from a
snapshot, the records give the same bytes again, which the hash of the whole verifies.
"""

from __future__ import annotations

import hashlib
from itertools import accumulate
from typing import Any, NamedTuple

import msgspec

from ..model.errors import HoldfastError, invalid
from ..model.inflating import Inflated, inflate
from ..model.limits import STATE_BYTES_MAX
from .value_codec import JSON, Codec, runs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Splice = tuple[int, int, bytes]
State = dict[str, Any]
Kept = dict[str, bytearray]

# Deltas may grow to four times the last snapshot before the next one. A state that only grows then has snapshots of 1,
# 5, 25 … times the first: together a quarter more than the state at most; a restore reads at most five times the last.
DELTAS_PER_SNAPSHOT = 4
CHAIN_MAX = 1000  # most records that a restore reads: edits of a few bytes would never outgrow a large state
_MARK_BYTES = 16 << 10  # a save rehashes at most this much of what did not change: about 10 µs
_ZSTD_LEVEL = 1  # measured: 3 KB in 9 µs (zlib 21), 10 MB in 30-110 ms (zlib 260), and smaller than zlib at any level
_RECORD_BYTES_MAX = 2 * STATE_BYTES_MAX  # a record of a whole state, with a splice's few bytes around each small part
_RAW, _ZSTD = b"\0", b"\1"


class Change(NamedTuple):
    """One save: `record` against the previous save (`whole`: against nothing), and the state's size and hash."""

    record: bytes
    whole: bool
    hash: str
    size: int  # bytes of the state itself


# -- one key ----------------------------------------------------------------------------------------------------


class _Digest:
    """SHA-256 of a changing buffer: marks let an edit rehash from just before it."""

    __slots__ = ("_marks", "value")

    def __init__(self) -> None:
        self._marks = [(0, hashlib.sha256())]
        self.value = self._marks[0][1].digest()

    def update(self, kept: bytearray, changed_from: int) -> None:
        while self._marks[-1][0] > changed_from:
            self._marks.pop()
        at, running = self._marks[-1]
        running = running.copy()
        with memoryview(kept) as view:
            while at + _MARK_BYTES <= len(kept):
                running.update(view[at : at + _MARK_BYTES])
                at += _MARK_BYTES
                self._marks.append((at, running.copy()))
            running.update(view[at:])
        self.value = running.digest()


class _Key:
    """The bytes of one key as last saved, and enough about its parts to find what changed."""

    __slots__ = ("_codec", "_shadows", "_sizes", "_tag", "digest", "kept")

    def __init__(self, codec: Codec, kept: bytes = b"") -> None:
        self._codec = codec
        self._tag, self._shadows, self._sizes = b"", [], []  # type: tuple[bytes, list[Any], list[int]]
        self.kept, self.digest = bytearray(kept), _Digest()
        self.digest.update(self.kept, 0)

    def update(self, value: Any) -> list[Splice]:
        tag, parts = self._codec.split(value)
        if tag != self._tag:
            splices = self._replace(tag, parts)
        else:
            count = len(self._sizes)
            seen = self._codec.views(tag, parts)
            # The shadows must be the left operand: their comparison is exact.
            grown = len(parts) >= count and self._shadows == seen[:count]
            # Else: from both ends; then place by place, or behind parts dropped at the front.
            splices = self._grow(parts, count) if grown else _Alignment(self, parts, seen).splices()
        if splices:
            self.digest.update(self.kept, splices[0][0])
        return splices

    def _learn(self, at: int, until: int, parts: list[Any], units: list[bytes]) -> None:
        """Replace the parts [at, until)."""
        self._shadows[at:until] = [self._codec.shadow(self._tag, part) for part in parts]
        self._sizes[at:until] = map(len, units)

    def _replace(self, tag: bytes, parts: list[Any]) -> list[Splice]:
        """Replace a value of another kind, or one whose parts are unknown: compared as bytes."""
        self._tag = tag
        units = [self._codec.unit(tag, part) for part in parts]
        new = tag + b"".join(units)
        splices = _spliced(0, bytes(self.kept), new)
        self.kept[:] = new
        self._learn(0, len(self._sizes), parts, units)
        return splices

    def _grow(self, parts: list[Any], count: int) -> list[Splice]:
        added = parts[count:]
        if not added:
            return []
        units = [self._codec.unit(self._tag, part) for part in added]
        at, text = len(self.kept), b"".join(units)
        self.kept += text
        self._learn(count, count, added, units)
        return [(at, 0, text)]


class _Alignment:
    """One comparison of a key's old parts with its new ones. Encodes parts whose shadow differs, once."""

    def __init__(self, key: _Key, parts: list[Any], seen: list[Any]) -> None:
        self._key, self._parts, self._seen = key, parts, seen
        self._units: dict[int, bytes] = {}
        self._starts = [1, *accumulate(key._sizes, initial=1)][1:]  # where each old part begins; the tag is one byte

    def _unit(self, new: int) -> bytes:
        if new not in self._units:
            self._units[new] = self._key._codec.unit(self._key._tag, self._parts[new])
        return self._units[new]

    def _same(self, old: int, new: int) -> bool:
        if self._key._shadows[old] == self._seen[new]:
            return True
        at, end = self._starts[old], self._starts[old + 1]
        unit = self._unit(new)
        return len(unit) == end - at and unit == self._key.kept[at:end]

    def splices(self) -> list[Splice]:
        old, new = len(self._key._sizes), len(self._parts)
        shorter = min(old, new)
        head = 0
        while head < shorter and self._same(head, head):
            head += 1
        tail = 0
        while tail < shorter - head and self._same(old - 1 - tail, new - 1 - tail):
            tail += 1
        edits = None
        if old == new:
            changed = [i for i in range(head, old - tail) if not self._same(i, i)]
            if 2 * len(changed) <= old - tail - head + 2:  # more looks like a sliding window
                edits = [(i, j, i, j) for i, j in runs(changed)]
        if edits is None:
            edits = self._shifted(head, old - tail, new - tail)
        return self._apply(edits)

    def _shifted(self, head: int, old_end: int, new_end: int) -> list[tuple[int, int, int, int]]:
        """The differences, as (old from, to, new from, to); a sliding window keeps its middle."""
        first = None
        if head < old_end and head < new_end:
            unit = self._unit(head)
            wanted = len(unit)
            candidates = (i for i in range(head + 1, old_end) if self._key._sizes[i] == wanted)
            first = next((i for i in candidates if self._same(i, head)), None)
        if first is None:
            return [(head, old_end, head, new_end)] if head < old_end or head < new_end else []
        kept = 0
        while first + kept < old_end and head + kept < new_end and self._same(first + kept, head + kept):
            kept += 1
        edits = [(head, first, head, head)]
        if first + kept < old_end or head + kept < new_end:
            edits.append((first + kept, old_end, head + kept, new_end))
        return edits

    def _apply(self, edits: list[tuple[int, int, int, int]]) -> list[Splice]:
        """Apply the edits from the end, so that earlier offsets stay valid."""
        key, splices = self._key, []  # type: tuple[_Key, list[Splice]]
        for old_from, old_to, new_from, new_to in reversed(edits):
            units = [self._unit(i) for i in range(new_from, new_to)]
            at, end = self._starts[old_from], self._starts[old_to]
            text = b"".join(units)
            splices = _spliced(at, bytes(key.kept[at:end]), text) + splices
            key.kept[at:end] = text
            key._learn(old_from, old_to, self._parts[new_from:new_to], units)
        return splices


def _spliced(at: int, old: bytes, new: bytes) -> list[Splice]:
    """The splice that makes `new` of `old`, without the bytes they share at both ends."""
    if old == new:
        return []
    shorter = min(len(old), len(new))
    head = _shared(shorter, lambda a, b: old[a:b] == new[a:b])
    rest = shorter - head
    tail = _shared(rest, lambda a, b: old[len(old) - b : len(old) - a] == new[len(new) - b : len(new) - a])
    return [(at + head, len(old) - head - tail, new[head : len(new) - tail])]


def _shared(limit: int, equal: Any) -> int:
    """How many bytes from one end are equal, by halving: each byte is compared about twice, all of it in C."""
    if equal(0, limit):
        return limit
    low, high = 0, limit  # [0, low) is equal, [0, high) is not
    while high - low > 1:
        middle = (low + high) // 2
        if equal(low, middle):
            low = middle
        else:
            high = middle
    return low


# -- a whole state ----------------------------------------------------------------------------------------------


class Encoder:
    """Turns states into changes. Start it with the bytes of the last save, or with nothing.

    After an error, or `forget()` (for a write that did not reach the store), the next change is a whole one.
    """

    def __init__(self, kept: Mapping[str, bytes] | None = None, codec: Codec = JSON) -> None:
        self._codec = codec
        self._keys = {name: _Key(codec, data) for name, data in (kept or {}).items()}
        self._whole = kept is None

    def forget(self) -> None:
        self._keys, self._whole = {}, True

    def change(self, state: Mapping[str, Any]) -> Change:
        edits: dict[str, list[Splice]] = {}
        try:
            gone = [name for name in self._keys if name not in state]
            for name in gone:
                del self._keys[name]
            for name, value in state.items():
                if type(name) is not str:
                    raise invalid(f"a state's keys must be text, not {type(name).__name__}", "use text keys")
                key = self._keys.get(name)
                if key is None:
                    key = self._keys[name] = _Key(self._codec)
                if splices := key.update(value):
                    edits[name] = splices
            size = sum(len(key.kept) for key in self._keys.values())
            if size > STATE_BYTES_MAX:
                raise invalid(
                    f"the state has {size >> 20} MB; the limit is {STATE_BYTES_MAX >> 20} MB",
                    "store large values as artifacts and refer to them",
                )
            digest = whole_hash({name: key.digest.value for name, key in self._keys.items()})
            change = Change(_pack(edits, gone), self._whole, digest, size)
        except BaseException:
            self.forget()
            raise
        self._whole = False
        return change

    def kept(self) -> dict[str, bytes]:
        """The bytes of the last save."""
        return {name: bytes(key.kept) for name, key in self._keys.items()}


def whole(kept: Mapping[str, bytes]) -> bytes:
    """A state as one record that needs no other: a snapshot."""
    return _pack({name: [(0, 0, data)] for name, data in kept.items()}, [])


def snapshot_due(snapshot_bytes: int, delta_bytes: int, chain: int) -> bool:
    """Whether a snapshot is due, by the sizes of the last one and of the deltas since."""
    return chain >= CHAIN_MAX or delta_bytes > DELTAS_PER_SNAPSHOT * snapshot_bytes


def whole_hash(digests: Mapping[str, bytes]) -> str:
    """The hash of a state from the hashes of its keys."""
    running = hashlib.sha256()
    for name in sorted(digests):
        text = name.encode("utf-8", "surrogatepass")
        running.update(len(text).to_bytes(4, "big") + text + digests[name])
    return running.hexdigest()


def state_hash(state: Mapping[str, Any], codec: Codec = JSON) -> str:
    """The hash that saving this state would give."""
    return Encoder(None, codec).change(state).hash


# -- records ----------------------------------------------------------------------------------------------------


def squeeze(plain: bytes) -> bytes:
    """Compressed where that makes it smaller; the first byte says which."""
    import zstandard  # only where something is saved: 5 ms

    packed = zstandard.ZstdCompressor(level=_ZSTD_LEVEL).compress(plain)
    return _ZSTD + packed if len(packed) < len(plain) else _RAW + plain


def unsqueeze(data: bytes) -> bytes:
    if data[:1] == _RAW:
        return data[1:]
    if data[:1] != _ZSTD:
        raise damaged("is of a kind that this version does not support")
    try:
        return inflate(data[1:], _RECORD_BYTES_MAX)
    except Inflated as e:
        raise damaged(f"cannot be read: {e}") from None


def _pack(edits: dict[str, list[Splice]], gone: list[str]) -> bytes:
    try:
        return squeeze(msgspec.msgpack.encode([edits, gone]))
    except UnicodeEncodeError:
        raise invalid("a key of the state is not valid UTF-8", "use valid UTF-8") from None


_decode = msgspec.msgpack.Decoder(tuple[dict[str, list[Splice]], list[str]]).decode


def _unpack(record: bytes) -> tuple[dict[str, list[Splice]], list[str]]:
    try:
        return _decode(unsqueeze(record))
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise damaged("cannot be read") from None


def damaged(what: str) -> HoldfastError:
    return HoldfastError("damaged", f"a checkpoint's record {what}", "restore an earlier one: hold checkpoint ls")


def apply(record: bytes, kept: Kept) -> None:
    """Make `kept` the next state."""
    edits, gone = _unpack(record)
    for name in gone:
        kept.pop(name, None)
    for name, splices in edits.items():
        data = kept.setdefault(name, bytearray())
        for at, removed, text in reversed(splices):  # from the back: offsets are those of the state before
            if at < 0 or removed < 0 or at + removed > len(data):
                raise damaged("does not fit the one before it")
            data[at : at + removed] = text


def restore(records: Iterable[bytes], wanted: str) -> dict[str, bytes]:
    """The kept bytes after a chain of records that begins with a whole one; refused unless their hash is `wanted`."""
    kept: Kept = {}
    for record in records:
        apply(record, kept)
        if sum(map(len, kept.values())) > STATE_BYTES_MAX:  # small records may each put a little more into it
            raise damaged("makes the state larger than the limit")
    if whole_hash({name: hashlib.sha256(data).digest() for name, data in kept.items()}) != wanted:
        raise damaged("does not give the saved state: its hash differs")
    return {name: bytes(data) for name, data in kept.items()}


def values(kept: Mapping[str, bytes], codec: Codec = JSON) -> State:
    """Decode the state from its stored bytes."""
    return {name: codec.join(data) for name, data in kept.items()}
