"""A recording, page by page, out of a real log."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast.host.channels.recording import recording
from holdfast.host.sessions.session import Session
from holdfast.log.writer import OutputLog
from holdfast.model.errors import HoldfastError
from holdfast.model.home import SessionFolder

SECOND = 1_000_000


def session(path: Path) -> Session:
    return Session(SessionFolder(str(path)), {"id": "ses_1", "name": "s", "size": [80, 24], "created_at": 1.0})


def log(path: Path, segment_bytes: int = 1 << 20) -> OutputLog:
    return OutputLog(str(path / "out"), 0, segment_bytes, 1 << 30)


def told(page: dict[str, Any]) -> list[tuple[float, str, object]]:
    return [(at, code, base64.b64decode(v) if code in "oe" else v) for at, code, v in page["events"]]


def test_output_sizes_and_streams_come_with_their_times(tmp_path: Path) -> None:
    out = log(tmp_path)
    out.resized(80, 24, 10 * SECOND)
    out.add(0, b"one", 11 * SECOND)
    out.resized(100, 30, 12 * SECOND)
    out.add(1, b"two", 13 * SECOND)
    out.add(2, b"three", 14 * SECOND)
    out.close()
    page = recording(session(tmp_path), None)
    assert page["next"] is None
    assert told(page) == [
        (10, "r", "80x24"),
        (11, "o", b"one"),
        (12, "r", "100x30"),
        (13, "o", b"two"),
        (14, "e", b"three"),
    ]


@pytest.mark.parametrize("segment_bytes", [1 << 20, 7])
def test_pages_put_together_are_the_whole_and_no_size_is_lost(tmp_path: Path, segment_bytes: int) -> None:
    out = log(tmp_path, segment_bytes)
    for n in range(20):
        out.resized(80 + n, 24, n * SECOND)
        out.add(0, b"%03d" % n, n * SECOND + 1)
    out.close()
    found, at, pages = [], None, 0
    while True:
        page = recording(session(tmp_path), at, limit_bytes=5)
        found += told(page)
        at, pages = page["next"], pages + 1
        if at is None:
            break
    assert pages > 5
    assert b"".join(v for _, code, v in found if code == "o" and isinstance(v, bytes)) == b"".join(
        b"%03d" % n for n in range(20)
    )
    sizes = [v for _, code, v in found if code == "r"]
    assert list(dict.fromkeys(sizes)) == [f"{80 + n}x24" for n in range(20)]


def test_what_is_gone_is_a_gap(tmp_path: Path) -> None:
    out = log(tmp_path, 4)
    for n in range(4):
        out.add(0, b"%04d" % n, n * SECOND + 1)
    out.close()
    os.unlink(tmp_path / "out" / f"{4:020d}.out")
    assert [code for _, code, _ in told(recording(session(tmp_path), None))] == ["o", "gap", "o", "o"]


def test_an_empty_session_has_no_events_and_a_negative_offset_is_refused(tmp_path: Path) -> None:
    assert recording(session(tmp_path), None) == {"start": 0, "next": None, "events": []}
    with pytest.raises(HoldfastError):
        recording(session(tmp_path), -1)
