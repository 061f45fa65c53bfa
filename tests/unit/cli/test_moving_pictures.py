"""The pure halves of `hold replay` and `hold top`."""

from __future__ import annotations

from typing import Any

from holdfast.cli.output.replay import delays
from holdfast.cli.sessions import top


def test_pauses_follow_the_recording_its_speed_and_the_longest_allowed() -> None:
    events: list[Any] = [(10.0, "o", b"a"), (12.0, "o", b"b"), (72.0, "o", b"c"), (71.0, "o", b"d")]
    assert [d for d, _ in delays(iter(events), 1, None)] == [0, 2, 60, 0]
    assert [d for d, _ in delays(iter(events), 2, 3)] == [0, 1, 1.5, 0]


def session(at: int, cpu: dict[int, float], **more: Any) -> dict[str, Any]:
    return {
        "id": "ses_1",
        "name": "web",
        "state": "live",
        "observed_at": f"2026-01-01T00:00:{at:02d}.000Z",
        "processes": [{"pid": pid, "cpu_s": s, "rss": 1_000_000} for pid, s in cpu.items()],
        "exit": None,
        "activity": {"kind": "running", "prompt": None},
        "ports": [],
        "attached_count": 0,
        "created_at": "2026-01-01T00:00:00.000Z",
        "command": ["npm", "run"],
        **more,
    }


def test_cpu_is_what_the_processes_that_are_there_used_since_the_last_look() -> None:
    before = top.usage([session(10, {1: 5.0, 2: 100.0})])
    assert top.percent(session(12, {1: 6.0, 3: 0.5}), before) == 75  # 2 ended, 3 is new
    assert top.percent(session(10, {1: 6.0}), before) is None
    assert top.percent(session(12, {1: 6.0}), {}) is None


def test_a_frame_fits_its_window_and_says_what_it_left_out() -> None:
    sessions = [session(10, {1: 1.0}, id=f"ses_{n}", name=f"s{n}") for n in range(50)]
    for lines in (2, 5, 24):
        text = top.frame(sessions, {}, 1767225612.0, (60, lines), colour=False)
        assert text.count("\r\n") <= lines - 1
    assert "and 31 more" in top.frame(sessions, {}, 1767225612.0, (60, 24), colour=False)


def test_a_waiting_session_shows_its_prompt_and_nothing_it_printed_moves_the_cursor() -> None:
    waiting = session(10, {1: 1.0}, activity={"kind": "waiting_for_input", "prompt": "sure\x1b[2J? "})
    text = top.frame([waiting], {}, 1767225612.0, (200, 24), colour=False)
    assert "1 waiting for input" in text
    assert "sure\ufffd[2J?" in text
