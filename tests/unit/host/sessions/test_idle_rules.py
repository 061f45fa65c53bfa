"""When an idle session is warned and ended: by time that passed, whatever the clock on the wall does."""

from __future__ import annotations

from typing import Any

from holdfast.host.sessions.idle_rules import Idleness, may_be_idle, warn_before_s

Json = dict[str, Any]
TTL_S = 100.0  # warned after 75 s


def sample(at: float, attached: int = 0) -> Json:
    return {"input_at": at, "output_at": at, "attached": [{}] * attached}


class Session:
    """One that is looked at when it is due; `wall` is the time of day, `moment` the time that passes."""

    def __init__(self) -> None:
        self.moment, self.wall, self.moved, self.cpu = 1000.0, 5_000_000.0, 5_000_000.0, 1.0
        self.idleness = Idleness(TTL_S, self.moment)

    def passes(self, seconds: float) -> None:
        self.moment += seconds
        self.wall += seconds

    def look(self, *, idle: bool = True) -> str:
        return self.idleness.look(sample(self.moved), self.cpu, idle, self.moment, self.wall)


def test_a_session_that_stays_idle_is_warned_and_then_ended() -> None:
    s = Session()
    assert s.look() == "wait"
    s.passes(s.idleness.due() - s.moment)
    assert (s.look(), s.moment) == ("warn", 1075.0)
    s.passes(s.idleness.due() - s.moment)
    assert (s.look(), s.moment) == ("end", 1100.0)


def test_a_clock_that_is_set_forward_ends_nobody() -> None:
    s = Session()
    s.look()
    s.passes(10)
    s.wall += 86400
    assert s.look() == "wait"
    s.passes(65)
    assert s.look() == "warn"
    s.passes(24)
    assert s.look() == "wait"


def test_a_clock_that_is_set_back_keeps_nobody_for_ever() -> None:
    s = Session()
    s.look()
    s.wall -= 86400
    s.passes(75)
    assert s.look() == "warn"
    s.passes(25)
    assert s.look() == "end"


def test_what_moved_between_two_looks_counts_from_when_it_moved() -> None:
    s = Session()
    s.look()
    s.passes(30)
    s.moved = s.wall
    s.passes(45)
    assert s.look() == "wait"
    assert s.idleness.due() == 1000 + 30 + 75


def test_work_that_only_used_the_processor_counts_as_of_the_look_that_saw_it() -> None:
    s = Session()
    s.look()
    s.passes(75)
    s.cpu += 1
    assert s.look() == "wait"
    assert s.idleness.due() == s.moment + 75


def test_somebody_who_watched_in_silence_and_left_is_followed_by_a_warning() -> None:
    """It was not idle while somebody was there, however long ago the last key was."""
    s = Session()
    for _ in range(5):
        assert s.look(idle=False) == "wait"
        s.passes(75)
    assert s.look(idle=False) == "wait"
    s.passes(1)
    assert s.look() == "wait"
    s.passes(75)
    assert s.look() == "warn"


def test_nobody_is_ended_without_a_warning_also_when_nobody_could_look() -> None:
    s = Session()
    s.look()
    s.passes(10_000)  # its keeper was silent
    assert s.look() == "warn"
    assert s.idleness.due() == s.moment + 25
    s.passes(25)
    assert s.look() == "end"


def test_a_warning_is_taken_back_when_somebody_comes() -> None:
    s = Session()
    s.look()
    s.passes(75)
    assert s.look() == "warn"
    s.passes(10)
    assert s.look(idle=False) == "wait"
    assert s.idleness.ends_at is None


def test_what_may_be_idle() -> None:
    assert may_be_idle(sample(0.0), at_shell=True, listening=False)
    assert not may_be_idle(sample(0.0, attached=1), at_shell=True, listening=False)
    assert not may_be_idle(sample(0.0), at_shell=True, listening=True)
    assert not may_be_idle(sample(0.0), at_shell=False, listening=False)


def test_a_warning_comes_a_minute_before_or_a_quarter_of_a_short_time() -> None:
    assert (warn_before_s(3600), warn_before_s(4)) == (60.0, 1.0)
