"""How `hold logs` prints chunks, whatever their borders."""

from __future__ import annotations

import json

import pytest

from holdfast.cli.output import log_formats
from holdfast.client.types import Chunk
from holdfast.model.patterns import pattern


def printed(capfdbinary: pytest.CaptureFixture[bytes], chunks: list[Chunk], **options: object) -> tuple[bytes, bytes]:
    asked: dict[str, object] = {"as_json": False, "raw": False, "pipes": False, "grep": None, "tail": None, "end": 0}
    writer = log_formats.choose(**{**asked, **options})  # type: ignore[arg-type]
    for chunk in chunks:
        writer.chunk(chunk)
    writer.close()
    found = capfdbinary.readouterr()
    return found.out, found.err


def cut(data: bytes, size: int) -> list[Chunk]:
    return [Chunk(n, data[n : n + size]) for n in range(0, len(data), size)]


OUTPUT = "\x1b[31mred\x1b[0m\r\n10%\r100%\r\nnaïve\r\nunfinished".encode()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_a_pipe_gets_plain_text_wherever_chunks_are_cut(capfdbinary: pytest.CaptureFixture[bytes], size: int) -> None:
    out, err = printed(capfdbinary, cut(OUTPUT, size))
    assert out.decode() == "red\n100%\nnaïve\nunfinished"
    assert err == b""


def test_raw_is_exact(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert printed(capfdbinary, cut(OUTPUT, 3), raw=True)[0] == OUTPUT


def test_streams_of_pipes_come_out_apart_and_as_they_are(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    chunks = [Chunk(0, b"a\x1b[1m", "stdout"), Chunk(5, b"e\xff", "stderr"), Chunk(7, b"b", "stdout")]
    assert printed(capfdbinary, chunks, pipes=True) == (b"a\x1b[1mb", b"e\xff")


def test_a_gap_is_told_on_stderr_and_ends_the_line_before_it(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    chunks = [Chunk(0, b"half"), Chunk(4, b"", gap=(4, 9)), Chunk(9, b"rest\r\n")]
    out, err = printed(capfdbinary, chunks)
    assert out == b"halfrest\n"
    assert err == b"hold: output 4 to 9 is gone\n"


def test_records_carry_every_byte_and_every_gap(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    chunks = [Chunk(0, b"\xff\x00"), Chunk(2, b"", gap=(2, 9)), Chunk(9, b"x")]
    out, _ = printed(capfdbinary, chunks, as_json=True)
    records = [json.loads(line) for line in out.splitlines()]
    assert [(r["offset"], r["bytes_base64"], r["gap"]) for r in records] == [
        (0, "/wA=", None),
        (2, "", {"from": 2, "to": 9}),
        (9, "eA==", None),
    ]


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_matching_goes_by_the_plain_text_of_whole_lines(capfdbinary: pytest.CaptureFixture[bytes], size: int) -> None:
    data = b"one \x1b[1mer\x1b[0mror\r\ntwo\r\nlast error"
    out, _ = printed(capfdbinary, cut(data, size), grep=pattern("error$"), end=len(data))
    assert out == b"one error\nlast error\n"


def test_matching_records_and_raw_lines_keep_their_offsets_and_bytes(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    data = b"one\r\n\x1b[1mtwo\x1b[0m\r\n"
    out, _ = printed(capfdbinary, cut(data, 4), grep=pattern("two"), as_json=True, end=len(data))
    assert json.loads(out)["offset"] == 5
    out, _ = printed(capfdbinary, cut(data, 4), grep=pattern("two"), raw=True, end=len(data))
    assert out == b"\x1b[1mtwo\x1b[0m\r\n"


@pytest.mark.parametrize(("tail", "expected"), [(0, b"c4\n"), (1, b"c3\nc4\n"), (9, b"c1\nc2\nc3\nc4\n")])
def test_of_the_matches_that_were_there_only_the_last_are_printed_and_all_that_come(
    capfdbinary: pytest.CaptureFixture[bytes], tail: int, expected: bytes
) -> None:
    data = b"c1\nx\nc2\nc3\nc4\n"
    out, _ = printed(capfdbinary, cut(data, 2), grep=pattern("c"), tail=tail, end=data.index(b"c4"))
    assert out == expected


def test_a_line_without_end_is_printed_before_it_fills_the_memory(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_formats, "_LINE_BYTES_MAX", 10)
    writer = log_formats.choose(as_json=False, raw=False, pipes=False, grep=None, tail=None, end=0)
    writer.chunk(Chunk(0, b"a" * 20))
    assert capfdbinary.readouterr().out == b"a" * 20
    writer.close()
