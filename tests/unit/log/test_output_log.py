"""The output log: byte-exact, addressed by offset, honest about what is gone."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from holdfast.log.layout import STDERR, STDOUT, TERMINAL, end_on_disk
from holdfast.log.reader import LogReader
from holdfast.log.writer import OutputLog


def text(folder: Path, start: int = 0, to: int = 1 << 60) -> bytes:
    return b"".join(p.data or b"" for p in LogReader(str(folder)).pieces(start, to))


def gaps(folder: Path, start: int, to: int) -> list[tuple[int, int]]:
    return [(p.offset, p.end) for p in LogReader(str(folder)).pieces(start, to) if p.data is None]


def test_every_byte_comes_back_at_its_offset_across_segments(tmp_path: Path) -> None:
    rng = random.Random(7)
    log = OutputLog(str(tmp_path), 0, segment_bytes=1000, retain_bytes=1 << 20)
    source = b""
    for n in range(300):
        chunk = rng.randbytes(rng.randrange(1, 200))
        log.add(TERMINAL, chunk, n * 3000)
        source += chunk
    assert log.end == len(source)
    assert text(tmp_path) == source
    for _ in range(200):
        a = rng.randrange(len(source))
        b = rng.randrange(a, len(source) + 1)
        assert text(tmp_path, a, b) == source[a:b]


def test_a_pruned_range_is_one_explicit_gap(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 0, segment_bytes=100, retain_bytes=300)
    for n in range(20):
        log.add(TERMINAL, bytes([65 + n]) * 50, n * 20_000)
    assert log.start > 0
    assert gaps(tmp_path, 0, log.end) == [(0, log.start)]
    assert len(text(tmp_path)) == log.end - log.start


def test_streams_keep_their_order_and_their_names(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 0, segment_bytes=1 << 20, retain_bytes=1 << 21)
    log.add(STDOUT, b"out", 0)
    log.add(STDERR, b"err", 1)
    log.add(STDOUT, b"more", 2)
    found = [(p.stream, p.data) for p in LogReader(str(tmp_path)).pieces(0, log.end)]
    assert found == [(STDOUT, b"out"), (STDERR, b"err"), (STDOUT, b"more")]


def test_a_flipped_bit_costs_one_record_and_is_told(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 0, segment_bytes=1 << 20, retain_bytes=1 << 21)
    for n in range(5):
        log.add(TERMINAL, bytes([97 + n]) * 10, n * 20_000)
    log.close()
    path = next(tmp_path.glob("*.out"))
    data = bytearray(path.read_bytes())
    data[25] ^= 1
    path.write_bytes(data)
    assert gaps(tmp_path, 0, 50) == [(20, 30)]
    assert text(tmp_path) == b"a" * 10 + b"b" * 10 + b"d" * 10 + b"e" * 10


def test_a_missing_segment_in_the_middle_is_a_gap_and_the_rest_is_served(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 0, segment_bytes=10, retain_bytes=1 << 20)
    for n in range(5):
        log.add(TERMINAL, bytes([97 + n]) * 10, n * 20_000)
    for path in tmp_path.glob(f"{20:020d}.*"):
        path.unlink()
    assert gaps(tmp_path, 0, 50) == [(20, 30)]
    assert text(tmp_path) == b"a" * 10 + b"b" * 10 + b"d" * 10 + b"e" * 10


def test_a_log_without_its_index_is_still_readable(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 0, segment_bytes=1 << 20, retain_bytes=1 << 21)
    log.add(TERMINAL, b"hello", 0)
    log.close()
    next(tmp_path.glob("*.idx")).unlink()
    assert text(tmp_path) == b"hello"


def test_a_next_generation_goes_on_at_the_end(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 0, segment_bytes=1 << 20, retain_bytes=1 << 21)
    log.add(TERMINAL, b"one", 0)
    log.close()
    again = OutputLog(str(tmp_path), end_on_disk(str(tmp_path)), 1 << 20, 1 << 21)
    again.add(TERMINAL, b"two", 50_000)
    assert again.end == 6
    assert text(tmp_path) == b"onetwo"


def test_offsets_jump_over_a_power_cut_as_a_gap(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 0, segment_bytes=1 << 20, retain_bytes=1 << 21)
    log.add(TERMINAL, b"one", 0)
    log.close()
    again = OutputLog(str(tmp_path), 1 << 32, 1 << 20, 1 << 21)
    again.add(TERMINAL, b"two", 50_000)
    assert gaps(tmp_path, 0, again.end) == [(3, 1 << 32)]


def test_resizes_are_remembered_at_their_offset(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 0, segment_bytes=1 << 20, retain_bytes=1 << 21)
    log.resized(80, 24, 0)
    log.add(TERMINAL, b"abc", 1)
    log.resized(100, 30, 2)
    log.add(TERMINAL, b"def", 3)
    found = [(p.offset, p.size, p.data) for p in LogReader(str(tmp_path)).pieces(0, 6, resizes=True)]
    assert found == [(0, (80, 24), b""), (0, None, b"abc"), (3, (100, 30), b""), (3, None, b"def")]


def test_output_of_a_time_is_found_by_that_time(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path), 0, segment_bytes=10, retain_bytes=1 << 20)
    for n in range(5):
        log.add(TERMINAL, b"0123456789", n * 1_000_000)
    reader = LogReader(str(tmp_path))
    assert reader.offset_at(0) == 0
    assert reader.offset_at(2_500_000) == 30
    assert reader.offset_at(9_000_000) == 50


@pytest.mark.skipif(os.getuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_drops_the_oldest_output_and_never_raises(tmp_path: Path) -> None:
    import subprocess

    mount = tmp_path / "small"
    mount.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(mount)], check=False, capture_output=True
    )
    if made.returncode:
        pytest.skip("this machine mounts nothing")
    try:
        log = OutputLog(str(mount / "out"), 0, segment_bytes=32 << 10, retain_bytes=10 << 20)
        for n in range(100):
            log.add(TERMINAL, b"x" * 8192, n * 20_000)
        assert log.end == 100 * 8192
        read = text(mount / "out", log.start)
        lost = sum(b - a for a, b in gaps(mount / "out", log.start, log.end))
        assert len(read) + lost + (log.end - log.start - len(read) - lost) == log.end - log.start
        assert len(read) > 64 << 10
        log.close()
    finally:
        subprocess.run(["umount", str(mount)], check=True)


def test_files_come_with_the_first_byte_and_know_the_size_from_before(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path / "out"), 0, 1 << 20, 1 << 22)
    log.resized(80, 24, 1)
    assert not (tmp_path / "out").exists()
    log.add(TERMINAL, b"x", 2)
    pieces = list(LogReader(str(tmp_path / "out")).pieces(0, 1, resizes=True))
    assert [(p.size, p.data) for p in pieces] == [((80, 24), b""), (None, b"x")]


def test_a_change_of_size_is_on_disk_before_any_output(tmp_path: Path) -> None:
    log = OutputLog(str(tmp_path / "out"), 0, 1 << 20, 1 << 22)
    log.resized(80, 24, 1)
    log.resized(100, 30, 2)
    pieces = list(LogReader(str(tmp_path / "out")).pieces(0, 0, resizes=True))
    assert [p.size for p in pieces] == [(80, 24), (100, 30)]


def test_an_offset_past_what_is_on_disk_is_kept_without_output(tmp_path: Path) -> None:
    folder = str(tmp_path / "out")
    first = OutputLog(folder, 0, 1 << 20, 1 << 22)
    first.add(TERMINAL, b"x", 1)
    first.close()
    OutputLog(folder, 1 << 32, 1 << 20, 1 << 22).close()
    assert LogReader(folder).bounds() == (0, 1 << 32)


def test_a_disk_that_never_syncs_costs_a_bounded_number_of_open_files(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    log = OutputLog(str(tmp_path), 0, segment_bytes=100, retain_bytes=1 << 20)
    for n in range(200):
        log.add(TERMINAL, b"x" * 100, n * 20_000)
    assert len(os.listdir("/proc/self/fd")) < before + 80
    log.close()
    assert len(os.listdir("/proc/self/fd")) == before
