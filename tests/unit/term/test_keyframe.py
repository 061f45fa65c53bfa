"""A keyframe is the exact state; anything else is refused, never half read."""

from __future__ import annotations

import random

import pytest

from holdfast.term.screen import Screen
from holdfast.term.snapshot import MAGIC, PAGE, RECORD
from holdfast.term.split_wide_cells import crc32c
from tests.unit.term.compare import assert_same
from tests.unit.term.test_restore import CASES


@pytest.mark.parametrize("name", CASES)
def test_a_keyframe_brings_back_the_state_and_goes_on_the_same(name: str) -> None:
    before, after = CASES[name]
    with Screen(30, 8) as original:
        original.feed(before)
        with Screen.from_keyframe(original.keyframe()) as copy:
            assert_same(original, copy, "right after")
            assert copy.at_ground == original.at_ground
            assert original.feed(after) == copy.feed(after)
            assert_same(original, copy, "after more output")


def test_a_keyframe_of_a_keyframe_is_the_same() -> None:
    with Screen(30, 8, scrollback_lines=50) as original:
        original.feed(b"\x1b[>4;1m" + b"".join(b"line %d\r\n" % n for n in range(3000)) + b"\x1b]2;unfin")
        with Screen.from_keyframe(original.keyframe()) as once, Screen.from_keyframe(once.keyframe()) as twice:
            assert_same(original, twice, "twice")
            assert len(twice.dump()["history"]) == 50
            twice.feed(b"ished\x07\x1b[c")
            assert twice.title == "unfinished"


def test_a_split_query_is_answered_after_a_keyframe() -> None:
    with Screen(30, 8) as original:
        original.feed(b"abc\x1b[?6")
        with Screen.from_keyframe(original.keyframe()) as copy:
            assert copy.feed(b"n") == original.feed(b"n") == b"\x1b[?1;4R"


def test_the_limit_on_history_is_part_of_it() -> None:
    with Screen(30, 8, scrollback_lines=0) as original, Screen.from_keyframe(original.keyframe()) as copy:
        copy.feed(b"x\r\n" * 1000)
        assert copy.dump()["history"] == []


@pytest.fixture(scope="module")
def keyframe() -> bytes:
    with Screen(30, 8) as screen:
        screen.feed(
            "".join(f"\x1b[3{n % 8}mline {n} 漢字 e\u0301\r\n" for n in range(50)).encode() + b"\x1b[?1049hover\x1b]2;"
        )
        return screen.keyframe()


def test_every_truncation_is_refused(keyframe: bytes) -> None:
    for length in [*range(64), *range(64, len(keyframe), 97), len(keyframe) - 1]:
        with pytest.raises(ValueError, match=r"snapshot|keyframe"):
            Screen.from_keyframe(keyframe[:length])


def test_a_changed_byte_is_refused_or_harmless(keyframe: bytes) -> None:
    source = random.Random(7)
    refused = 0
    for _ in range(400):
        data = bytearray(keyframe)
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)
        try:
            Screen.from_keyframe(bytes(data)).close()
        except ValueError:
            refused += 1
    assert refused > 350  # the checksums cover all but our own few bytes in front


@pytest.mark.parametrize("data", [b"", b"HFK1", b"GHOSTSNP\x01\x00", b"\x00" * 4096, b"HFK1" + b"\xff" * 4096])
def test_what_is_no_keyframe_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"snapshot|keyframe"):
        Screen.from_keyframe(data)


def test_random_bytes_with_the_right_beginning_are_refused(keyframe: bytes) -> None:
    source = random.Random(8)
    for _ in range(200):
        with pytest.raises(ValueError, match=r"snapshot|keyframe|columns"):
            Screen.from_keyframe(keyframe[: source.randrange(22, 60)] + source.randbytes(source.randrange(2000)))


def test_a_keyframe_that_asks_for_gigabytes_is_refused(keyframe: bytes) -> None:
    """With its checksum right, as someone who means it would have it."""
    at = keyframe.index(MAGIC) + len(MAGIC)
    while (record := RECORD.unpack_from(keyframe, at))[0] != PAGE:
        at += RECORD.size + record[1]
    data = bytearray(keyframe)
    data[at + RECORD.size + 15] = 0xFF  # the highest byte of a size that the engine would allocate unseen
    end = at + RECORD.size + record[1]
    RECORD.pack_into(data, at, PAGE, record[1], crc32c(data[at : at + 6] + data[at + RECORD.size : end]))
    with pytest.raises(ValueError, match="memory"):
        Screen.from_keyframe(bytes(data))


def test_the_checksum_is_castagnolis() -> None:
    assert crc32c(b"123456789") == 0xE3069283
