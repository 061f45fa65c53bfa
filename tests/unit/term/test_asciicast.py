"""asciinema recordings: both versions, from the same events."""

from __future__ import annotations

import json
from typing import Any

from holdfast.term.asciicast import Event, cast

EVENTS: list[Event] = [
    (100.0, "r", (100, 30)),
    (100.5, "o", b"one\r\n"),
    (101.25, "o", b"two"),
    (101.25, "r", (80, 24)),
    (104.0, "m", "output 8-16 is gone"),
    (105.0, "o", b"\x1b[1mthree"),
    (105.0, "x", 7),
]


def written(events: list[Event], **options: Any) -> tuple[dict[str, Any], list[Any]]:
    lines = list(cast(events, **options))
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in lines)
    return json.loads(lines[0]), [json.loads(line) for line in lines[1:]]


def test_version_3_has_intervals_and_the_exit_status() -> None:
    header, events = written(EVENTS, title="web", command="npm run dev")
    assert header == {
        "version": 3,
        "term": {"cols": 100, "rows": 30, "type": "xterm-256color"},
        "timestamp": 100,
        "title": "web",
        "command": "npm run dev",
    }
    assert events == [
        [0.0, "o", "one\r\n"],
        [0.75, "o", "two"],
        [0.0, "r", "80x24"],
        [2.75, "m", "output 8-16 is gone"],
        [1.0, "o", "\x1b[1mthree"],
        [0.0, "x", "7"],
    ]


def test_version_2_has_times_since_the_beginning_and_no_exit_status() -> None:
    header, events = written(EVENTS, version=2)
    assert (header["version"], header["width"], header["height"]) == (2, 100, 30)
    assert events == [
        [0.0, "o", "one\r\n"],
        [0.75, "o", "two"],
        [0.75, "r", "80x24"],
        [3.5, "m", "output 8-16 is gone"],
        [4.5, "o", "\x1b[1mthree"],
    ]


def test_a_character_cut_by_two_events_is_whole() -> None:
    raw = "é→🙂".encode()
    _, events = written([(float(n), "o", raw[n : n + 1]) for n in range(len(raw))])
    assert "".join(e[2] for e in events) == "é→🙂"
    assert sum(e[0] for e in events) == len(raw) - 1


def test_bytes_that_are_no_text_are_replaced_also_at_the_very_end() -> None:
    _, events = written([(1.0, "o", b"a\xff"), (2.0, "o", b"b\xe2\x86")])
    assert "".join(e[2] for e in events) == "a\ufffdb\ufffd"


def test_a_size_told_twice_is_written_once() -> None:
    _, events = written([(1.0, "r", (80, 24)), (1.0, "o", b"x"), (2.0, "r", (80, 24)), (3.0, "o", b"y")])
    assert events == [[0.0, "o", "x"], [2.0, "o", "y"]]


def test_a_clock_that_was_set_back_makes_no_negative_time() -> None:
    for version in (2, 3):
        _, events = written([(10.0, "o", b"a"), (5.0, "o", b"b"), (12.0, "o", b"c")], version=version)
        assert all(e[0] >= 0 for e in events)
        assert [e[2] for e in events] == ["a", "b", "c"]


def test_nothing_recorded_is_a_header_alone() -> None:
    header, events = written([])
    assert (header["term"]["cols"], events) == (80, [])


def test_a_command_line_that_is_not_utf8_can_be_written() -> None:
    lines = list(cast([], command="cat \udcff"))
    assert lines[0].encode()
