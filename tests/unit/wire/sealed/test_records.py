"""Records: exact order, every bit, lengths, padding, rekeying by count and by bytes."""

from __future__ import annotations

import pytest
from cryptography.exceptions import InvalidTag
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.model import limits
from holdfast.wire.sealed import records
from holdfast.wire.sealed.errors import SealedError
from holdfast.wire.sealed.noise import CipherState
from holdfast.wire.sealed.records import Opener, Sealer, Splitter, padded_bytes

KEY = b"k" * 32


def pair() -> tuple[Sealer, Opener]:
    return Sealer(CipherState(KEY)), Opener(CipherState(KEY))


def refused(opener: Opener, record: bytes) -> str:
    with pytest.raises(SealedError) as e:
        opener.open(memoryview(record)[2:])
    assert e.value.code == "sealed"
    return e.value.reason


def opened(opener: Opener, record: bytes) -> bytes:
    return opener.open(memoryview(record)[2:])


@given(st.lists(st.binary(max_size=3000), max_size=8))
@settings(max_examples=30)
def test_records_open_in_order_padded_with_zeros(texts: list[bytes]) -> None:
    sealer, opener = pair()
    for text in texts:
        assert opened(opener, sealer.seal(text)) == text.ljust(padded_bytes(len(text)), b"\0")


def test_its_bytes_are_those_of_the_documentation() -> None:
    sealer, _ = pair()
    sealer.seal(b"zero")
    record = sealer.seal(b"one")
    assert record[:10] == (8 + 64 + 16).to_bytes(2, "big") + (1).to_bytes(8, "big")
    twin = CipherState(KEY)
    twin.n = 1
    assert record[10:] == twin.encrypt(b"one" + bytes(61))


@pytest.mark.parametrize(
    ("size", "padded"), [(0, 64), (1, 64), (64, 64), (65, 128), (129, 256), (513, 1024), (1024, 1024), (1025, 1025)]
)
def test_small_plaintexts_grow_to_a_few_sizes(size: int, padded: int) -> None:
    sealer, _ = pair()
    assert len(sealer.seal(b"x" * size)) == 2 + 8 + padded + 16


def test_a_dropped_record_is_a_gap() -> None:
    sealer, opener = pair()
    sealer.seal(b"lost")
    assert refused(opener, sealer.seal(b"next")) == "gap"


def test_a_repeated_record_is_a_replay() -> None:
    sealer, opener = pair()
    record = sealer.seal(b"text")
    opened(opener, record)
    assert refused(opener, record) == "replay"


def test_records_in_another_order_are_refused() -> None:
    sealer, opener = pair()
    first, second = sealer.seal(b"first"), sealer.seal(b"second")
    assert refused(opener, second) == "gap"
    opener = Opener(CipherState(KEY))
    opened(opener, first)
    opened(opener, second)
    assert refused(opener, first) == "replay"


def test_a_repeated_record_under_a_new_number_does_not_open() -> None:
    sealer, opener = pair()
    record = sealer.seal(b"text")
    opened(opener, record)
    assert refused(opener, record[:2] + (1).to_bytes(8, "big") + record[10:]) == "tag"


@settings(max_examples=60)
@given(st.integers(0, 8 * (8 + 64 + 16) - 1))
def test_a_changed_bit_is_refused(bit: int) -> None:
    sealer, opener = pair()
    record = bytearray(sealer.seal(b"text"))
    record[2 + bit // 8] ^= 1 << bit % 8
    assert refused(opener, bytes(record)) == ("gap" if bit < 64 else "tag")


@settings(max_examples=60)
@given(st.integers(0, 8 + 128 + 16 - 1))
def test_a_truncated_record_is_refused(size: int) -> None:
    sealer, opener = pair()
    record = sealer.seal(b"x" * 100)
    assert refused(opener, record[: 2 + size]) == ("truncated" if size < 8 + 64 + 16 else "tag")


def test_two_records_spliced_do_not_open() -> None:
    sealer, opener = pair()
    first, second = sealer.seal(b"x" * 2000), sealer.seal(b"y" * 2000)
    assert refused(opener, first[:1000] + second[1000:]) == "tag"


def test_a_sender_that_does_not_pad_is_refused() -> None:
    _, opener = pair()
    bare = CipherState(KEY).encrypt(b"x" * 65)
    assert refused(opener, b"??" + bytes(8) + bare) == "padding"


@pytest.mark.parametrize(("count", "size"), [(3, 1 << 30), (1 << 30, 3 * (1024 + 16))])
def test_both_ends_rekey_after_the_same_record(monkeypatch: pytest.MonkeyPatch, count: int, size: int) -> None:
    monkeypatch.setattr(records, "SEALED_REKEY_RECORDS", count)
    monkeypatch.setattr(records, "SEALED_REKEY_BYTES", size)
    sealer, opener = pair()
    bare = CipherState(KEY)
    text = b"x" * 1024
    for _ in range(3):
        record = sealer.seal(text)
        assert bare.decrypt(record[10:]) == opened(opener, record) == text
    record = sealer.seal(text)
    with pytest.raises(InvalidTag):
        bare.decrypt(record[10:])
    bare.n = 3
    bare.rekey()
    assert bare.decrypt(record[10:]) == opened(opener, record) == text
    for _ in range(10):  # across several rekeyings
        assert opened(opener, sealer.seal(text)) == text


def test_the_count_goes_on_across_a_rekey(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "SEALED_REKEY_RECORDS", 1)
    sealer, _ = pair()
    assert [int.from_bytes(sealer.seal(b"")[2:10], "big") for _ in range(4)] == [0, 1, 2, 3]


@given(st.lists(st.binary(max_size=50), max_size=20), st.lists(st.integers(1, 40), min_size=1, max_size=20))
def test_messages_cut_anywhere_come_whole(bodies: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(records.framed, bodies))
    splitter, got, at, turn = Splitter(), [], 0, 0
    while at < len(stream):
        size = cuts[turn % len(cuts)]
        got += [bytes(body) for body in splitter.split(stream[at : at + size], lambda: 50)]
        at, turn = at + size, turn + 1
    assert got == bodies


def test_a_length_past_the_limit_is_refused_before_its_bytes_come() -> None:
    with pytest.raises(SealedError) as e:
        list(Splitter().split(b"\0\x33", lambda: 50))
    assert e.value.reason == "too_long"


def test_the_longest_record_fits_its_length() -> None:
    assert records.BODY_BYTES_MAX < 1 << 16
    sealer, opener = pair()
    text = b"x" * limits.SEALED_RECORD_BYTES
    assert opened(opener, sealer.seal(text)) == text
