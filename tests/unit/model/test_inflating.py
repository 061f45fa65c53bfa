"""What a few hundred bytes can become is bounded, whatever they say of themselves."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
import zstandard

from holdfast.delta import encode
from holdfast.model import inflating
from holdfast.model.errors import HoldfastError
from holdfast.model.inflating import Inflated, inflate
from holdfast.model.limits import STATE_BYTES_MAX
from holdfast.model.work import file_changes

COMPRESS = zstandard.ZstdCompressor(level=1).compress


def saying(size: int) -> bytes:
    """A valid frame of a thousand zeros that says it becomes `size` bytes."""
    packed = COMPRESS(bytes(1000))
    block = packed[len(packed) - 3 - _block_length(packed) :]
    return packed[:4] + b"\xe0" + struct.pack("<Q", size) + block


def _block_length(packed: bytes) -> int:
    """The first block's content is what follows its header of three bytes; the frame's header has 7 (FCS of two)."""
    return len(packed) - 7 - 3


def unsaid(content: bytes) -> bytes:
    made = zstandard.ZstdCompressor().compressobj()
    return made.compress(content) + made.flush()


def test_as_much_as_there_is_room_for_comes_out_and_not_a_byte_more() -> None:
    assert inflate(COMPRESS(bytes(1000)), 1000) == bytes(1000)
    assert inflate(saying(1000), 1000) == bytes(1000)
    assert inflate(COMPRESS(b""), 0) == b""
    with pytest.raises(Inflated, match="1,001 bytes where at most 1,000 belong"):
        inflate(COMPRESS(bytes(1001)), 1000)


@pytest.mark.parametrize(
    "data",
    [saying(1 << 40), saying(10), unsaid(bytes(100)), COMPRESS(bytes(1000))[:-2], b"", b"no frame", bytes(20)],
    ids=["says more", "says less", "does not say", "cut", "nothing", "no frame", "zeros"],
)
def test_what_is_not_a_whole_frame_within_its_bounds_is_one_error(data: bytes) -> None:
    with pytest.raises(Inflated):
        inflate(data, 1000)


def test_a_record_that_says_more_than_a_state_can_have_is_damaged_and_allocates_nothing() -> None:
    for record in (b"\1" + saying(1 << 40), b"\1" + saying(2 * STATE_BYTES_MAX + 1), b"\1" + unsaid(bytes(9))):
        with pytest.raises(HoldfastError, match="cannot be read") as refused:
            encode.restore([record], "0" * 64)
        assert refused.value.code == "damaged"


def test_records_that_each_add_a_little_too_much_are_damaged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "STATE_BYTES_MAX", 10_000)
    records = [encode._pack({f"k{n}": [(0, 0, bytes(4000))]}, []) for n in range(3)]
    with pytest.raises(HoldfastError, match="larger than the limit"):
        encode.restore(records, "0" * 64)


def test_the_files_at_an_attempts_start_are_bounded() -> None:
    for data in (saying(1 << 40), unsaid(bytes(100))):
        with pytest.raises(HoldfastError, match="cannot be read") as refused:
            file_changes.unpack(data)
        assert refused.value.code == "damaged"


def test_nothing_else_in_the_package_inflates() -> None:
    """Whatever inflates bytes has a bound of its own. A new place belongs into this list, with its test."""
    bounded = {"model/inflating.py", "client/admin/backup.py"}
    inflates = re.compile(
        r"\bdecompress|\bGzipFile|\bgzip\.open|\blzma\b|\bbz2\b|\bzipfile\b|\btarfile\.open|unpack_archive"
    )
    package = Path(inflating.__file__).parents[1]
    found = {str(p.relative_to(package)) for p in package.rglob("*.py") if inflates.search(p.read_text())}
    assert found == bounded
    assert "ws_per_message_deflate=False" in (package / "console/server.py").read_text()
