"""A backup from elsewhere: what a few kilobytes of it can become in memory is bounded."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path

import pytest

from holdfast.client.admin import backup as archive
from holdfast.model.errors import HoldfastError

LARGE = 40 << 20  # zeros: forty kilobytes when packed


def backup(*members: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    raw = io.BytesIO()
    with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=1) as packed:
        about = json.dumps({"holdfast_backup": 1}).encode()
        for member, data in ((header(archive.HEADER, tarfile.REGTYPE, len(about)), about), *members):
            packed.write(member.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512))
        packed.write(bytes(1024))
    raw.seek(0)
    return raw


def header(name: str, kind: bytes, size: int) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.size = kind, size
    return made


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_that_becomes_large_is_refused_before_it_is_read(tmp_path: Path, kind: bytes) -> None:
    source = backup((header("x", kind, LARGE), bytes(LARGE)))
    whole = source.getbuffer().nbytes
    with pytest.raises(HoldfastError, match="damaged: a header of 41,943,040 bytes") as refused:
        archive.unpack(source, str(tmp_path), 1 << 40)
    assert refused.value.code == "invalid"
    assert source.tell() < whole  # it was not read to its end


def test_headers_in_headers_and_sparse_maps_end_as_one_line(tmp_path: Path) -> None:
    nested = [(header("x", tarfile.XHDTYPE, 10), b"10 a=bcde\n")] * 3000
    sparse = header("config.toml", tarfile.XHDTYPE, 0)
    said = b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n"
    sparse.size = len(said)
    for members in (
        nested,
        [(sparse, said), (header("config.toml", tarfile.REGTYPE, 1024), b"99999999\n" + bytes(1015))],
        [(header("config.toml", tarfile.GNUTYPE_SPARSE, 10), bytes(10))],
    ):
        with pytest.raises(HoldfastError) as refused:
            archive.unpack(backup(*members), str(tmp_path), 1 << 40)
        assert refused.value.code == "invalid"


def test_more_members_than_a_home_can_have_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "_MEMBERS_MAX", 3)
    members = [(header(f"sessions/ses_{n}", tarfile.DIRTYPE, 0), b"") for n in range(4)]
    with pytest.raises(HoldfastError, match="more than 3 files"):
        archive.unpack(backup(*members), str(tmp_path), 1 << 40)
    assert archive.unpack(backup(*members[:3]), str(tmp_path / "b"), 1 << 40)["files"] == 0
