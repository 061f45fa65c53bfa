"""When a session is looked at again: soon after it changed, ever less often, and not at all while it rests."""

from __future__ import annotations

from holdfast.console.live.poll_schedule import ALL_S, FIRST_S, MOST_S, PollSchedule


def _begun() -> PollSchedule:
    rounds = PollSchedule(0.0)
    rounds.saw_all(0.0)
    return rounds


def test_at_first_everything_is_due() -> None:
    assert PollSchedule(5.0).due(5.0) is None


def test_nobody_looks_at_what_rests_until_all_are_due() -> None:
    rounds = _begun()
    for n in range(20):
        rounds.saw(f"s{n}", still=True, changed=True, now=0.0)
    assert rounds.wait(0.0) == ALL_S
    assert rounds.due(ALL_S - 1) == set()
    assert rounds.due(ALL_S) is None


def test_what_goes_on_is_looked_at_ever_less_often() -> None:
    rounds, now, pauses = _begun(), 0.0, []
    rounds.saw("s", still=False, changed=True, now=now)
    for _ in range(5):
        pauses.append(rounds.wait(now))
        now += pauses[-1]
        assert rounds.due(now) == {"s"}
        rounds.saw("s", still=False, changed=False, now=now)
    assert pauses == [FIRST_S, 4.0, 8.0, MOST_S, MOST_S]
    rounds.saw("s", still=False, changed=True, now=now)
    assert rounds.wait(now) == FIRST_S


def test_what_is_gone_is_not_due() -> None:
    rounds = _begun()
    rounds.saw("s", still=False, changed=True, now=0.0)
    rounds.gone("s")
    assert rounds.due(FIRST_S) == set()
