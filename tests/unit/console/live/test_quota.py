"""Nobody takes up all the room: whoever comes next still finds some."""

from __future__ import annotations

import contextlib

from holdfast.console.live.quota import Quota


def filled(room: Quota, person: str, until: contextlib.ExitStack) -> int:
    """As many as this person gets."""
    while room.has(person):
        until.enter_context(room.take(person))
    return room.of(person)


def test_one_person_has_half_and_each_further_one_still_finds_room() -> None:
    room = Quota(96)
    with contextlib.ExitStack() as until:
        assert filled(room, "ada", until) == 48
        assert [filled(room, person, until) for person in ("bob", "cyd", "dan")] == [24, 12, 6]
        assert not room.has("ada")
        assert room.has("eve")


def test_what_is_given_back_is_there_for_everybody() -> None:
    room = Quota(8)
    with contextlib.ExitStack() as until:
        assert filled(room, "ada", until) == 4
        with contextlib.ExitStack() as shorter:
            assert filled(room, "bob", shorter) == 2
        assert filled(room, "bob", until) == 2
    assert filled(room, "bob", contextlib.ExitStack()) == 4
